"""Filters of queries: the predicate for agents that evaluate it, and the same test for the console.

qpidd ignores predicates, and agents differ in how they evaluate them (QMF2.md 4.4, 4.4.2). So an agent gets only the
parts of a filter that all agents evaluate in the same way, and every object of an answer is tested by the console.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from qmf.console.aio.objects.class_view import ClassView
from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.errors import CallerError, ConstraintError, NotFoundError, ProtocolError
from qmf.protocol import ObjectId, Predicate, compile_predicate

#: A filter: values by name that must be equal, or a predicate (QMF2.md 4.4.2).
Where = Mapping[str, object] | Predicate

Test = Callable[[RemoteObject], bool]


def match_all(_: RemoteObject) -> bool:
    """The test that every object passes."""
    return True


def compile_filter(where: Where | None, views: Sequence[ClassView]) -> tuple[Predicate, Test]:
    """Compile a filter.

    Args:
        where: the filter, or None for all objects.
        views: the classes of the query that are known already.

    Returns:
        the predicate for agents that evaluate them, and the test for each object of an answer.

    Raises:
        ConstraintError: not a valid predicate; the message says why.
        NotFoundError: none of the classes has a value of that name.
    """
    if not where:
        return (), match_all
    if isinstance(where, Mapping):
        for name in where:
            if views and all(view.field(name) is None for view in views):
                raise NotFoundError(f"value of {views[0].schema.key.name}", name, views[0].names())
        return _equality(where, views), _equals(where)
    if isinstance(where, str) or not isinstance(where, Sequence):
        hint = "must be values by name, or a list like ['eq', name, ['quote', value]]"
        raise ConstraintError("where", "predicate", where, hint)
    try:
        matches = compile_predicate(where)
    except ProtocolError as error:
        raise ConstraintError("where", "predicate", where, str(error)) from error
    # libqmf2 accepts `re_match` but never matches it, so it would hide every object.
    return (() if _uses_re_match(where) else where), lambda obj: matches(obj.data.values)


def _equality(where: Mapping[str, object], views: Sequence[ClassView]) -> Predicate:
    """The part of an equality filter that agents, which compare texts, evaluate correctly."""
    tests = []
    for name, value in where.items():
        fields = [view.field(name) for view in views]
        whole = bool(fields) and all(field is not None and field.type.is_integer for field in fields)
        # Agents write a number as 1, 1.0 or 1.000000: sent only when both sides are known to be integers.
        if isinstance(value, (str, bool)) or (isinstance(value, int) and whole):
            key = next((field.key for field in fields if field), name)
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
        # References to persistent objects come with and without epoch; a missing agent name means the object's agent.
        return value.object_name == wanted.object_name and (wanted.agent_name in (None, value.agent_name))
    return isinstance(value, bool) == isinstance(wanted, bool) and value == wanted


def _uses_re_match(predicate: object) -> bool:
    if isinstance(predicate, Sequence) and not isinstance(predicate, (str, bytes)):
        if predicate and predicate[0] == "quote":
            return False
        return any(_uses_re_match(item) for item in predicate) or bool(predicate and predicate[0] == "re_match")
    return False
