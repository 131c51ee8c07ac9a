"""What objects a query wants: predicates for agents that evaluate them, and the same test made here.

qpidd ignores predicates, and agents differ in what they make of them (QMF2.md 4.4, 4.4.2), so an agent is only sent
what narrows its answer safely, and every answer is tested here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from qmf.console.aio.objects.class_view import ClassView
from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.errors import CallerError, ConstraintError, NotFoundError, ProtocolError
from qmf.protocol import ObjectId, Predicate, compile_predicate

#: A filter as callers write it: values by name that must be equal, or a predicate of QMF2.md 4.4.2.
Where = Mapping[str, object] | Predicate

Test = Callable[[RemoteObject], bool]


def anything(_: RemoteObject) -> bool:
    """The test that every object passes."""
    return True


def prepare(where: Where | None, views: Sequence[ClassView]) -> tuple[Predicate, Test]:
    """Take a filter apart.

    Args:
        where: the filter, or None for everything.
        views: the classes asked for, as far as known already.

    Returns:
        the predicate to send to agents that evaluate them, and the test for each object that comes back.

    Raises:
        ConstraintError: not a valid predicate; says why.
        NotFoundError: no class asked for has a value of that name.
    """
    if not where:
        return (), anything
    if isinstance(where, Mapping):
        for name in where:
            if views and all(view.slot(name) is None for view in views):
                raise NotFoundError(f"value of {views[0].schema.key.name}", name, views[0].names())
        return _equality(where, views), _equals(where)
    if isinstance(where, str) or not isinstance(where, Sequence):
        hint = "must be values by name, or a list like ['eq', name, ['quote', value]]"
        raise ConstraintError("where", "predicate", where, hint)
    try:
        matches = compile_predicate(where)
    except ProtocolError as error:
        raise ConstraintError("where", "predicate", where, str(error)) from error
    # libqmf2 parses `re_match` and then never matches: sent there, it would hide every object.
    return (() if _uses_re_match(where) else where), lambda obj: matches(obj.data.values)


def _equality(where: Mapping[str, object], views: Sequence[ClassView]) -> Predicate:
    """The part of an equality filter that the agents' comparison of texts can't get wrong."""
    tests = []
    for name, value in where.items():
        slots = [view.slot(name) for view in views]
        whole = bool(slots) and all(slot is not None and slot.type.is_integer for slot in slots)
        # Of a number, agents write 1, 1.0 or 1.000000: safe only where both sides are known to be whole.
        if isinstance(value, (str, bool)) or (isinstance(value, int) and whole):
            key = next((slot.key for slot in slots if slot), name)
            tests.append(["eq", key, ["quote", value]])
    return ["and", *tests] if tests else ()


def _equals(where: Mapping[str, object]) -> Test:
    def test(obj: RemoteObject) -> bool:
        return all(_same(_value(obj, name), wanted) for name, wanted in where.items())

    return test


def _value(obj: RemoteObject, name: str) -> object:
    try:
        return obj[name]
    except CallerError:
        return None


def _same(value: object, wanted: object) -> bool:
    if isinstance(wanted, RemoteObject):
        wanted = wanted.object_id
    if isinstance(value, ObjectId) and isinstance(wanted, ObjectId):
        # Persistent objects are referred to with and without epoch; an agent left out means "mine".
        return value.object_name == wanted.object_name and (wanted.agent_name in (None, value.agent_name))
    return isinstance(value, bool) == isinstance(wanted, bool) and value == wanted


def _uses_re_match(predicate: object) -> bool:
    if isinstance(predicate, Sequence) and not isinstance(predicate, (str, bytes)):
        if predicate and predicate[0] == "quote":
            return False
        return any(_uses_re_match(item) for item in predicate) or bool(predicate and predicate[0] == "re_match")
    return False
