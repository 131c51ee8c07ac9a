"""Runtime base of generated classes: `ManagedObject`, `Event` and `Result`.

Generated code declares; what it declares works through here. Every name that is not generated starts with ``_qmf_``,
which no schema name can. Knows neither agent nor messages: an agent gives an object its id and time stamps, takes its
values, and calls its methods.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Mapping
from typing import Any, ClassVar, TypeAlias, TypeVar

from qmf.agent.accessors import Interval
from qmf.agent.attributes import Descriptor
from qmf.agent.checks import Check, make_check
from qmf.agent.layout import BOTH, PENDING, PROPERTIES, STATISTICS, Field, Layout, numbers
from qmf.agent.references import Referable, is_pending, resolve
from qmf.codec import typed
from qmf.errors import CallerError, ConstraintError
from qmf.protocol.values import ObjectId
from qmf.schema import Argument, ClassSchema, EventSchema

T = TypeVar("T")

#: What a method may return: its result, or an awaitable that gives it.
MaybeAwaitable: TypeAlias = T | Awaitable[T]


class ManagedObject(Referable):
    """A thing that is managed: base of generated classes, whose docstrings list properties, statistics and methods.

    Make one, hand it to `Agent.add`, and set its values from any thread, whether or not an agent has it. Subclass the
    generated class to implement its methods: synchronous ones run on the agent's event loop and must not block; others
    are `async def`.
    """

    _qmf_schema_: ClassVar[ClassSchema]

    def __init__(self, **values: object) -> None:
        """Make an object; generated classes state the arguments.

        Args:
            values: properties and plain statistics by name; None stands for unset.

        Raises:
            ConstraintError: a value does not fit, or a required one is missing.
        """
        self._qmf_layout = layout_of(type(self))
        self._qmf_lock = threading.Lock()
        self._qmf_marks = BOTH
        self._qmf_home: object | None = None
        self._qmf_create_ts = self._qmf_update_ts = 0
        owner = _schema_class(type(self))
        given = {self._qmf_field(name).name: value for name, value in values.items()}
        for field in self._qmf_layout:
            value = given.get(field.name)
            if value is not None:
                if field.formula is not None or not field.direct:
                    raise ConstraintError(field.where, field.type.name, value, "cannot be given to a new object")
                value = field.check(value)
            elif field.required:
                raise ConstraintError(field.where, field.type.name, value, "must be given to a new object")
            else:
                value = field.initial()
            owner.__dict__[field.python_name]._place(self, value)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._qmf_id or 'without agent'}>"

    def _qmf_set_property(self, name: str, value: Any) -> MaybeAwaitable[None]:
        """Called when a console sets a property: override to act on it, and to refuse.

        Args:
            name: schema name of a property with access RW.
            value: has passed all checks of the schema.

        Raises:
            MethodError: what the console gets to read as the reason of the refusal.
        """
        setattr(self, self._qmf_field(name).python_name, value)
        return None  # overriding methods may return an awaitable

    def _qmf_field(self, name: str) -> Field:
        field = self._qmf_layout.by_name.get(name)
        if field is None:
            raise CallerError(f"class {self._qmf_layout.schema.name} has no property or statistic {name!r}")
        return field

    def _qmf_values(self, *, properties: bool = True, statistics: bool = True) -> dict[str, object]:
        """Values for the wire, by wire name, typed as in the schema (QMF2.md 6).

        Optional properties that are unset are absent. So are references that are unset or whose object has no id,
        optional or not: an empty object id on the wire looks like a real one, and consoles would query it.
        """
        groups = (PROPERTIES if properties else 0) | (STATISTICS if statistics else 0)
        with self._qmf_lock:
            raw, sources = self._qmf_read(groups)
        return self._qmf_encode(groups, raw, sources)

    def _qmf_take(self) -> Taken | None:
        """For the publisher: the values of the groups that changed, and a new interval. None if nothing changed."""
        with self._qmf_lock:
            marks = self._qmf_marks
            if marks & PENDING:
                pending = any(is_pending(self.__dict__[field.slot]) for field in self._qmf_layout.references)
                # A reference became valid without anybody setting it; which group it is in is not worth knowing.
                marks = marks if pending else BOTH
            groups = marks & BOTH
            if not groups:
                return None
            raw, sources = self._qmf_read(groups)
            self._qmf_marks = marks & PENDING
            intervals = self._qmf_restart() if groups & STATISTICS else {}
        return Taken(self, groups, self._qmf_encode(groups, raw, sources), intervals)

    def _qmf_read(self, groups: int) -> tuple[list[Any], Mapping[str, int | float]]:
        values = self.__dict__
        raw = [
            values[field.slot] if field.direct else values[field.slot]._read()
            for field in self._qmf_layout.fields(groups)
        ]
        return raw, numbers(self._qmf_layout, values) if self._qmf_layout.derived else {}

    def _qmf_restart(self) -> dict[str, Interval]:
        """Begin a new interval. Marks that went back to rest are a change: consoles shall not show old ones."""
        intervals = {}
        for field in self._qmf_layout.statistics:
            if not field.direct and (interval := self.__dict__[field.slot]._restart()) is not None:
                intervals[field.slot] = interval
                self._qmf_marks |= STATISTICS
        return intervals

    def _qmf_encode(self, groups: int, raw: list[Any], sources: Mapping[str, int | float]) -> dict[str, object]:
        result: dict[str, object] = {}
        for field, value in zip(self._qmf_layout.fields(groups), raw, strict=True):
            if field.formula is not None:
                value = (field.derived(sources),) * len(field.wire)
            elif field.direct:
                value = (resolve(value) if isinstance(value, Referable) else value,)
            for (name, base), item in zip(field.wire, value, strict=True):
                if item is not None:
                    result[name] = item if isinstance(item, ObjectId) else typed(base, item)
        return result


class Taken:
    """What the publisher took from an object, until it is known to have been sent.

    Attributes:
        object: whose it is.
        groups: marks of the groups in it.
        values: for the wire.
    """

    __slots__ = ("_intervals", "groups", "object", "values")

    def __init__(
        self, obj: ManagedObject, groups: int, values: dict[str, object], intervals: dict[str, Interval]
    ) -> None:
        self.object = obj
        self.groups = groups
        self.values = values
        self._intervals = intervals

    def restore(self) -> None:
        """Give it back: the groups are marked as changed, and the running interval includes the one taken."""
        obj = self.object
        with obj._qmf_lock:
            obj._qmf_marks |= self.groups
            for slot, interval in self._intervals.items():
                obj.__dict__[slot]._restore(interval)


#: What a reference can be set to.
Ref: TypeAlias = ManagedObject | ObjectId | None


class Result:
    """Outputs of a method: base of generated result classes, which have one field per output argument."""

    __slots__ = ()


class Event:
    """Something that happened: base of generated event classes, which have one field per argument."""

    __slots__ = ()

    _qmf_schema_: ClassVar[EventSchema]

    def _qmf_values(self) -> dict[str, object]:
        """Arguments for the wire, by name, typed as in the schema. References that are None are absent.

        Raises:
            ConstraintError: a value does not fit its argument.
        """
        return typed_arguments(self, self._qmf_schema_.arguments, f"event {self._qmf_schema_.name}")


def typed_arguments(source: Event | Result, arguments: tuple[Argument, ...], where: str) -> dict[str, object]:
    """Values of an event or result, checked, for the wire.

    Args:
        source: has an attribute for each argument.
        arguments: what to read, in order.
        where: what they belong to, for errors.

    Raises:
        ConstraintError: a value does not fit.
    """
    result = {}
    for item in arguments:
        value = argument_check(item, where)(getattr(source, python_name(type(source), item.name)))
        if isinstance(value, Referable):
            value = resolve(value)
        if value is not None:
            result[item.name] = value if isinstance(value, ObjectId) else typed(item.type, value)
    return result


def argument_check(item: Argument, where: str) -> Check:
    """The check of one argument of `where`."""
    return make_check(item, f"argument {item.name!r} of {where}")


def python_name(cls: type, name: str) -> str:
    """The Python name for a schema name: with a trailing underscore where generated code had to evade a clash."""
    return f"{name}_" if hasattr(cls, f"{name}_") else name


def layout_of(cls: type[ManagedObject]) -> Layout:
    """The layout of a managed class, built at the first call.

    Raises:
        CallerError: `cls` is not a generated class, or does not fit its schema.
    """
    owner = _schema_class(cls)
    layout = owner.__dict__.get("_qmf_layout_")
    if isinstance(layout, Layout):
        return layout
    descriptors = {item.schema_name: (name, item) for name, item in vars(owner).items() if isinstance(item, Descriptor)}
    layout = Layout(owner._qmf_schema_, {schema_name: name for schema_name, (name, _) in descriptors.items()})
    for field in layout:
        descriptors[field.name][1]._bind(field)
    # Two threads may build it at once: the same twice, and the last one stays.
    owner._qmf_layout_ = layout  # type: ignore[attr-defined]
    return layout


def _schema_class(cls: type[ManagedObject]) -> type[ManagedObject]:
    for owner in cls.__mro__:
        if "_qmf_schema_" in vars(owner):
            return owner
    raise CallerError(f"{cls.__name__} has no schema: subclass a class made by qmf-codegen")
