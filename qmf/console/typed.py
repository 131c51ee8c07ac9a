"""Runtime base of generated console proxies: remote objects, events and results with the types of their schema.

`qmf-codegen` makes a module ``console.py`` for a schema. Its classes declare; what they declare works through here.
They are wrappers: `TypedObject` around a `RemoteObject`, `TypedEvent` around what a `RemoteEvent` says. Generated
modules import this module by its own name, so it says itself what is public.

Names within a proxy belong to its schema: what `TypedObject` needs itself starts with ``_qmf_``, which no schema name
can, and what a program wants besides is a function here (`object_id`, `agent_of`, `update`, `follow`, `remote_of`).

Classes are matched by package and name, not by hash: an agent may have another version of the class than the generated
one. Each value is checked when it is read, so that a difference shows where it matters and nowhere else.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, Never, NoReturn, Protocol, Self, TypeAlias, TypeVar, overload

import attrs

from qmf.console.aio.agents.registry import Agent
from qmf.console.aio.objects.class_view import with_agent
from qmf.console.aio.objects.remote_event import RemoteEvent
from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.errors import CallerError, PeerError, ProtocolError
from qmf.protocol import ObjectId, from_wire
from qmf.schema import Argument, ClassKey, ClassSchema, EventSchema, Property, QmfType, Statistic
from qmf.schema.documentation import FieldDocstring, document

__all__ = [
    "UNSET",
    "Attribute",
    "HiLo",
    "HiLoAttribute",
    "MissingValueError",
    "Mma",
    "MmaAttribute",
    "ObjectId",
    "Ref",
    "TypedEvent",
    "TypedObject",
    "TypedResult",
    "Unset",
    "agent_of",
    "follow",
    "object_id",
    "remote_of",
    "typed_event",
    "typed_object",
    "update",
]

T = TypeVar("T")
TObject = TypeVar("TObject", bound="TypedObject")
TEvent = TypeVar("TEvent", bound="TypedEvent")
TResult = TypeVar("TResult", bound="TypedResult")

#: What a reference can be set to.
Ref: TypeAlias = "TypedObject | RemoteObject | ObjectId"


class Unset(enum.Enum):
    """The type of `UNSET`."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


#: Stands for a property that `set` leaves as it is; None clears an optional one.
UNSET = Unset.UNSET


class MissingValueError(PeerError, AttributeError):
    """An agent did not send a value that its class should have.

    It may come with the next publication, or the agent has another version of the class. `getattr` with a default and
    `hasattr` take it for a missing attribute.

    Attributes:
        where: which value, e.g. ``queue.msgDepth``.
        agent: name of the agent.
    """

    def __init__(self, where: str, agent: str) -> None:
        self.where = where
        self.agent = agent
        super().__init__(where, agent)

    def __str__(self) -> str:
        return f"agent {self.agent} has not sent {self.where}"


@attrs.frozen
class HiLo:
    """A number with its marks of the agent's current interval.

    Attributes:
        value: now.
        high, low: largest and smallest in the interval.
    """

    value: int
    high: int
    low: int


@attrs.frozen
class Mma:
    """What samples of the agent's current interval amount to; times are in nanoseconds.

    Attributes:
        samples: how many there were.
        min, max, average: of the samples; 0 without any.
    """

    samples: int
    min: int
    max: int
    average: int


class _Descriptor:
    """A property or statistic; type and wire names come from the schema of the class.

    Args:
        schema_name: its name in the schema, where it differs from that of the class attribute.
    """

    _keys: tuple[str, ...]
    _wheres: tuple[str, ...]
    _type: QmfType
    _optional: bool

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__doc__ = FieldDocstring(cls.__doc__)  # type: ignore[assignment]

    def __init__(self, schema_name: str = "") -> None:
        self.schema_name = schema_name
        self.item: Property | Statistic | None = None

    def __set_name__(self, owner: type[TypedObject], name: str) -> None:
        schema = owner._qmf_schema_
        self.schema_name = self.schema_name or name
        item = schema.property(self.schema_name)
        statistic = schema.statistic(self.schema_name)
        if item is not None:
            self._keys, self._type = (item.name,), item.type
            self._optional = item.optional or item.type.name == "objId"
        elif statistic is not None:
            self._keys, self._type = tuple(entry.name for entry in statistic.entries), statistic.type
            self._optional = statistic.type.name == "objId"
        else:
            raise TypeError(f"class {schema.name} has no property or statistic {self.schema_name!r}")
        self._wheres = tuple(f"{schema.name}.{key}" for key in self._keys)
        self.item = item or statistic

    def __set__(self, obj: TypedObject, value: Never) -> NoReturn:
        # For type checkers, and for `help()`, which lists it as data; at run time `TypedObject` refuses first.
        raise AttributeError(f"{self.schema_name} can't be assigned")

    def _read(self, obj: TypedObject) -> list[Any]:
        remote = obj._qmf_remote
        values = remote.data.values
        return [
            _value(self._type, values.get(key), where, remote.agent, optional=self._optional)
            for key, where in zip(self._keys, self._wheres, strict=True)
        ]


class Attribute(_Descriptor, Generic[T]):
    """A property, counter or plain statistic; reading raises `MissingValueError` or `ProtocolError`."""

    @overload
    def __get__(self, obj: None, owner: type[TypedObject]) -> Self: ...

    @overload
    def __get__(self, obj: TypedObject, owner: type[TypedObject]) -> T: ...

    def __get__(self, obj: TypedObject | None, owner: type[TypedObject]) -> Self | T:
        if obj is None:
            return self
        value: T = self._read(obj)[0]
        return value


class HiLoAttribute(_Descriptor):
    """A statistic with high and low marks; reading raises as of `Attribute`."""

    @overload
    def __get__(self, obj: None, owner: type[TypedObject]) -> Self: ...

    @overload
    def __get__(self, obj: TypedObject, owner: type[TypedObject]) -> HiLo: ...

    def __get__(self, obj: TypedObject | None, owner: type[TypedObject]) -> Self | HiLo:
        return self if obj is None else HiLo(*self._read(obj))


class MmaAttribute(_Descriptor):
    """A statistic over samples; reading raises as of `Attribute`."""

    @overload
    def __get__(self, obj: None, owner: type[TypedObject]) -> Self: ...

    @overload
    def __get__(self, obj: TypedObject, owner: type[TypedObject]) -> Mma: ...

    def __get__(self, obj: TypedObject | None, owner: type[TypedObject]) -> Self | Mma:
        return self if obj is None else Mma(*self._read(obj))


class TypedObject:
    """An object at an agent, with the types of its schema: base of generated proxies.

    ``Queue(remote)`` makes one of a `RemoteObject`; ``client.objects(Queue)`` asks for them. Values are as last
    received, see `RemoteObject`. Two proxies are equal when they stand for the same object.
    """

    __slots__ = ("_qmf_remote",)

    _qmf_schema_: ClassVar[ClassSchema]
    _qmf_remote: RemoteObject

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        document(cls, "seconds to wait for the answer; None for the client's timeout")

    def __init__(self, remote: RemoteObject) -> None:
        """Wrap a remote object.

        Raises:
            CallerError: it is of another class.
        """
        if not _is(remote.class_key, self._qmf_schema_.key):
            raise CallerError(f"{remote!r} is no {_name(self._qmf_schema_)}")
        object.__setattr__(self, "_qmf_remote", remote)

    @classmethod
    def _qmf_wrap(cls, remote: RemoteObject) -> Self:
        """The proxy of a remote object; raises as the constructor."""
        return cls(remote)

    def __setattr__(self, name: str, value: Never) -> NoReturn:
        raise AttributeError(
            f"{name} can't be assigned; properties with access RW are set by: await obj.set({name}=...)"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedObject) and other._qmf_remote == self._qmf_remote

    def __hash__(self) -> int:
        return hash(self._qmf_remote)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._qmf_remote.object_id} at {self._qmf_remote.agent}>"

    @overload
    async def _qmf_call(
        self, method: str, timeout: float | None, result: type[TResult], /, *inputs: object
    ) -> TResult: ...

    @overload
    async def _qmf_call(self, method: str, timeout: float | None, result: None, /, *inputs: object) -> None: ...

    async def _qmf_call(
        self, method: str, timeout: float | None, result: type[TypedResult] | None, /, *inputs: object
    ) -> TypedResult | None:
        """Call a method with its inputs in the order of the generated class's schema.

        Raises:
            ProtocolError: an output is missing, or of another type than the schema says. The method was carried out.
            Others as of `RemoteObject.call`.
        """
        schema = self._qmf_schema_.method(method)
        if schema is None:
            raise TypeError(f"class {self._qmf_schema_.name} has no method {method!r}")
        names = [item.name for item in schema.inputs]
        given = {name: _plain(value) for name, value in zip(names, inputs, strict=True)}
        remote = self._qmf_remote
        outputs = await remote.call(method, _timeout=timeout, **given)
        if result is None:
            return None
        where = f"{self._qmf_schema_.name}.{method}"
        values = {item.name: _argument(item, outputs, where, remote.agent) for item in schema.outputs}
        return _make(result, values)

    async def _qmf_set(self, timeout: float | None, values: Mapping[str, object]) -> None:
        """Set the properties that are given; nothing is sent when none is. Raises as `RemoteObject.set`."""
        given = {name: _plain(value) for name, value in values.items() if value is not UNSET}
        if given:
            await self._qmf_remote.set(_timeout=timeout, **given)


class TypedResult:
    """Outputs of a method: base of generated result classes, which have one field per output."""

    __slots__ = ()


@attrs.frozen(kw_only=True)
class TypedEvent:
    """Something that happened at an agent: base of generated events, which have one more field per argument.

    Arguments of these names get a trailing underscore in the generated class.

    Attributes:
        agent: who raised it.
        severity: 0 (emergency) to 7 (debug), as a `Severity`; another number as it was sent.
        timestamp: nanoseconds since 1970, by the agent's clock.
        object_id: the object it is about, where the agent said.
    """

    _qmf_schema_: ClassVar[EventSchema]

    agent: Agent = attrs.field(repr=str)
    severity: int
    timestamp: int
    object_id: ObjectId | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        document(cls)

    @classmethod
    def _qmf_wrap(cls, event: RemoteEvent) -> Self:
        """The typed form of an event.

        Raises:
            CallerError: it is of another class.
            ProtocolError: an argument is missing, or of another type than the schema says.
        """
        schema = cls._qmf_schema_
        if not _is(event.class_key, schema.key):
            raise CallerError(f"event {event.class_key or 'without class'} is no {_name(schema)}")
        values = {
            item.name: _argument(item, event.arguments, schema.name, event.agent.name) for item in schema.arguments
        }
        level = event.level
        return _make(
            cls,
            values,
            agent=event.agent,
            severity=event.severity if level is None else level,
            timestamp=event.timestamp,
            object_id=event.object_id,
        )


def remote_of(obj: TypedObject) -> RemoteObject:
    """The remote object that a proxy wraps, for everything that has no type: its schema, timestamps, other values."""
    return obj._qmf_remote


def object_id(obj: TypedObject) -> ObjectId:
    """The id of a proxy's object, agent name included."""
    return obj._qmf_remote.object_id


def agent_of(obj: TypedObject) -> str:
    """Name of the agent that a proxy's object lives in."""
    return obj._qmf_remote.agent


async def update(obj: TypedObject, timeout: float | None = None) -> None:
    """Ask the agent for the present values; see `RemoteObject.update`."""
    await obj._qmf_remote.update(timeout)


async def follow(
    obj: TypedObject, reference: Attribute[ObjectId | None], kind: type[TObject], timeout: float | None = None
) -> TObject | None:
    """The object that a reference names: ``await follow(binding, Binding.queueRef, Queue)``.

    Args:
        obj: has the reference.
        reference: the attribute of its class.
        kind: the class that it refers to.
        timeout: seconds to wait; None for the client's.

    Returns:
        the object, or None when the reference is not set.

    Raises:
        CallerError: the object found is of another class.
        Others as of `RemoteObject.follow`.
    """
    found = await obj._qmf_remote.follow(reference.schema_name, timeout)
    return None if found is None else kind(found)


def typed_object(remote: RemoteObject, *kinds: type[TObject]) -> TObject | None:
    """A remote object as that one of some generated classes that it belongs to; None when it is of none of them."""
    return next((kind(remote) for kind in kinds if _is(remote.class_key, kind._qmf_schema_.key)), None)


def typed_event(event: RemoteEvent, *kinds: type[TEvent]) -> TEvent | None:
    """An event as that one of some generated classes that it belongs to; None when it is of none of them.

    Raises:
        ProtocolError: as of the class's own `_qmf_wrap`.
    """
    return next((kind._qmf_wrap(event) for kind in kinds if _is(event.class_key, kind._qmf_schema_.key)), None)


class _HasKey(Protocol):
    @property
    def key(self) -> ClassKey: ...


def _name(schema: _HasKey) -> str:
    return f"{schema.key.package}:{schema.key.name}"


def _is(key: ClassKey | None, own: ClassKey) -> bool:
    return key is not None and (key.package, key.name) == (own.package, own.name)


def _plain(value: object) -> object:
    return value._qmf_remote if isinstance(value, TypedObject) else value


def _make(kind: Callable[..., T], values: Mapping[str, object], **others: object) -> T:
    """An instance of an attrs class whose fields are named by the rule of generated code: ``x_`` where it has one."""
    return kind(
        **{f"{name}_" if hasattr(kind, f"{name}_") else name: value for name, value in values.items()}, **others
    )


def _argument(item: Argument, values: Mapping[str, object], where: str, agent: str) -> object:
    value = values.get(item.name)
    if value is None:
        value = item.default
    if value is None and item.type.name != "objId":
        raise ProtocolError(f"agent {agent} left out {item.name!r} of {where}")
    return _value(item.type, value, f"{where}.{item.name}", agent, optional=True)


def _value(type: QmfType, value: object, where: str, agent: str, *, optional: bool) -> object:
    """A value from the wire as its type says."""
    if value is None:
        if optional:
            return None
        raise MissingValueError(where, agent)
    try:
        result = from_wire(type, value)
    except ProtocolError as error:
        raise ProtocolError(f"{where} of agent {agent}: {error}") from error
    return with_agent(result, agent) if isinstance(result, ObjectId) else result
