"""Object queries: which objects a program wants, by class or id, and the filters in them.

qpidd ignores predicates, and agents differ in how they evaluate them (QMF2.md 4.4, 4.4.2). So an agent gets only the
parts of a filter that all agents evaluate in the same way, and every object of an answer is tested by the console.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self, TypedDict, TypeVar

import attrs

from qmf.console.aio.agents import Agent
from qmf.console.aio.objects.class_fields import ClassFields, ValueField
from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.errors import CallerError, ConstraintError, NotFoundError, ProtocolError
from qmf.protocol import BROKER, ObjectId, OrderKey, Predicate, compile_predicate
from qmf.schema import ClassKey, ClassSchema

#: A filter: values by name that must be equal, or a predicate (QMF2.md 4.4.2).
Where = Mapping[str, object] | Predicate

Test = Callable[[RemoteObject], bool]

#: Operators of predicates whose operands are conditions; and those whose operands need not be names of the class.
_LOGIC = ("and", "or", "not")
_WITHOUT_NAMES = ("exists", "true", "false")


class GeneratedClass(Protocol):
    """A class generated from a schema; its base is `qmf.console.typed.TypedObject`."""

    _qmf_schema_: ClassVar[ClassSchema]

    @classmethod
    def _qmf_wrap(cls, remote: RemoteObject) -> Self: ...


P = TypeVar("P", bound=GeneratedClass)


@attrs.frozen
class ObjectQuery:
    """Which objects are wanted: the arguments of `Client.objects`.

    Attributes:
        name: class name in any case, or None.
        package: package of that class; None for any.
        class_key: class, or None.
        object_id: id of one object, or None. Exactly one of the three is given.
        agent: name of the only agent to ask; None for all.
        where: filter, or None.
        limit: how many objects are enough; None for all.
        order: which come first, if there is a limit.
        select: names of the values that are enough; empty for all.
        text: the objects contain it (`TextSearch`); empty for any.
        in_turn: with a limit, the objects may be those of the first agents by name, each in order.
    """

    name: str | None = None
    package: str | None = None
    class_key: ClassKey | None = None
    object_id: ObjectId | None = None
    agent: str | None = None
    where: Where | None = None
    limit: int | None = None
    order: tuple[OrderKey, ...] = ()
    select: tuple[str, ...] = ()
    text: str = ""
    in_turn: bool = False

    def __attrs_post_init__(self) -> None:
        if sum(item is not None for item in (self.name, self.class_key, self.object_id)) != 1:
            raise CallerError("objects: give exactly one of name, class_key and object_id")
        if self.limit is not None and self.limit < 1:
            raise CallerError(f"objects: limit {self.limit} must be above 0")
        if self.order and self.limit is None:
            raise CallerError("objects: an order needs a limit")
        if self.text and self.select:
            raise CallerError("objects: a text is searched for in all values, so none can be selected")

    @property
    def class_name(self) -> tuple[str | None, str | None]:
        """Name and package of the class, each None where not given."""
        return (self.class_key.name, self.class_key.package) if self.class_key else (self.name, self.package)

    @property
    def only_agent(self) -> str | None:
        """Name of the only agent to ask; None for all."""
        return self.agent or (self.object_id.agent_name if self.object_id else None)

    @property
    def sent_select(self) -> tuple[str, ...]:
        """What agents are asked for: the names in `select`, and those that filter and order look at."""
        if not self.select:
            return ()
        ordered = (key.name for key in self.order if key.name != OrderKey.OBJECT_NAME)
        return tuple(dict.fromkeys([*self.select, *_names(self.where), *ordered]))

    def is_for(self, agent: Agent) -> bool:
        """True when the agent is to be asked."""
        only = self.only_agent
        return only in (None, agent.name) or (agent.is_broker and only == BROKER)

    def __str__(self) -> str:
        if self.object_id is not None:
            return f"object {self.object_id}"
        name, package = self.class_name
        return f"objects of {package}:{name}" if package else f"objects of {name}"


class FilterArguments(TypedDict, total=False):
    """Keyword arguments that select among the objects of a generated class, see `Client.objects`."""

    agent: str | Agent | None
    where: Where | None


class QueryArguments(FilterArguments, total=False):
    """Keyword arguments that select objects, see `Client.objects`."""

    package: str | None
    class_key: ClassKey | None
    object_id: ObjectId | None


class ListArguments(TypedDict, total=False):
    """Keyword arguments that say which and how much is wanted of the objects, see `Client.objects`."""

    limit: int | None
    order: Sequence[OrderKey]
    select: Sequence[str]
    text: str
    in_turn: bool


class ListFilterArguments(FilterArguments, ListArguments, total=False):
    """Keyword arguments of `Client.objects` for a generated class."""


class ListQueryArguments(QueryArguments, ListArguments, total=False):
    """Keyword arguments of `Client.objects`."""


def make_query(
    name: str | type[Any] | None,
    package: str | None,
    class_key: ClassKey | None,
    object_id: ObjectId | None,
    agent: str | Agent | None,
    where: Where | None,
) -> tuple[ObjectQuery, Callable[[RemoteObject], Any] | None]:
    """Read the arguments of `Client.objects`.

    Returns:
        the query; and, for a generated class, the function that makes its instances. The query asks for any version of
        a generated class, because an instance reads every object that has the values.

    Raises:
        CallerError: not exactly one of `name`, `class_key` and `object_id`.
    """
    only = agent.name if isinstance(agent, Agent) else agent
    if not isinstance(name, type):
        return ObjectQuery(name, package, class_key, object_id, only, where), None
    if package or class_key or object_id:
        raise CallerError(f"objects: {name.__name__} is a class already; give no package, class_key or object_id")
    key = name._qmf_schema_.key
    query = ObjectQuery(class_key=ClassKey(key.package, key.name), agent=only, where=where)
    return query, name._qmf_wrap


def match_all(_: RemoteObject) -> bool:
    """The test that every object passes."""
    return True


def compile_filter(where: Where | None, classes: Sequence[ClassFields]) -> tuple[Predicate, Test]:
    """Compile a filter.

    Args:
        where: the filter, or None for all objects.
        classes: the classes of the query that are known already.

    Returns:
        the predicate for agents that evaluate them, and the test for each object of an answer.

    Raises:
        ConstraintError: not a valid predicate; names the reason.
        NotFoundError: none of the classes has a value of that name.
    """
    if not where:
        return (), match_all
    if isinstance(where, Mapping):
        check_names(where, classes)
        return _equality(where, classes), _equals(where)
    if isinstance(where, str) or not isinstance(where, Sequence):
        hint = "must be values by name, or a list like ['eq', name, ['quote', value]]"
        raise ConstraintError("where", "predicate", where, hint)
    try:
        matches = compile_predicate(where)
    except ProtocolError as error:
        raise ConstraintError("where", "predicate", where, str(error)) from error
    check_names(where, classes)
    # libqmf2 accepts `re_match` but never matches it, so it would hide every object.
    return (() if _uses_re_match(where) else where), lambda obj: matches(obj.data.values)


def agents_decide(query: ObjectQuery, predicate: Predicate, classes: Sequence[ClassFields]) -> bool:
    """True if agents that evaluate predicates find the same objects as the console, so that they can count them.

    Args:
        query: the query.
        predicate: what agents get of its filter.
        classes: its classes, as far as they are known.
    """
    where = query.where
    if query.class_key is not None and query.class_key.hash is not None:
        return False
    if not isinstance(where, Mapping):
        return not where or predicate is where
    return all(
        bool(classes) and all(_compares(item.field(name), value) for item in classes) for name, value in where.items()
    )


def _compares(field: ValueField | None, value: object) -> bool:
    """True if agents, which compare texts, find values of a field equal to `value` as the console does."""
    if field is None:
        return False
    kinds = {"bool": bool, "sstr": str, "lstr": str}
    kind = int if field.type.is_integer else kinds.get(field.type.name)
    return type(value) is kind


def check_names(where: Where | None, classes: Sequence[ClassFields]) -> None:
    """Refuse a valid filter that compares a value which none of the classes has.

    Args:
        where: the filter, or None.
        classes: the classes of the query that are known; without any, nothing is refused.

    Raises:
        NotFoundError: there is no such value; has similar names.
    """
    for name in _names(where):
        if classes and all(item.field(name) is None for item in classes):
            raise NotFoundError(f"value of {classes[0].schema.key.name}", name, classes[0].names())


def _names(where: object) -> Iterator[str]:
    """The names that a filter compares; `exists` asks for a name that need not exist."""
    if isinstance(where, Mapping):
        yield from where
        return
    if not isinstance(where, Sequence) or not where:
        return
    operator, *operands = where
    if operator in _LOGIC:
        for operand in operands:
            yield from _names(operand)
    elif operator not in _WITHOUT_NAMES:
        yield from (operand for operand in operands if isinstance(operand, str))


def _equality(where: Mapping[str, object], classes: Sequence[ClassFields]) -> Predicate:
    """The part of an equality filter that agents, which compare texts, evaluate correctly."""
    tests = []
    for name, value in where.items():
        fields = [item.field(name) for item in classes]
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
