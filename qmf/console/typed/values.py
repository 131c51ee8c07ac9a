"""Values of typed proxies: high and low marks, samples, and conversion from the wire with checks."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

import attrs

from qmf.console.aio.objects.values import with_agent
from qmf.errors import PeerError, ProtocolError
from qmf.protocol import ObjectId, from_wire
from qmf.schema import Argument, ClassKey, QmfType

T = TypeVar("T")


class Unset(enum.Enum):
    """The type of `UNSET`."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


#: For a property that `set` does not change; None clears an optional property.
UNSET = Unset.UNSET


class MissingValueError(PeerError, AttributeError):
    """An agent did not send a value that its class should have.

    The next publication may hold it, or the agent has another version of the class. For `hasattr`, and for `getattr`
    with a default, it is a missing attribute.

    Attributes:
        where: the value, e.g. ``queue.msgDepth``.
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
    """A number with its high and low marks in the agent's current interval.

    Attributes:
        value: the current value.
        high, low: largest and smallest value in the interval.
    """

    value: int
    high: int
    low: int


@attrs.frozen
class Mma:
    """The samples of the agent's current interval; times are in nanoseconds.

    Attributes:
        samples: number of samples.
        min, max, average: of the samples; 0 without samples.
    """

    samples: int
    min: int
    max: int
    average: int


class _HasKey(Protocol):
    @property
    def key(self) -> ClassKey: ...


def class_name(schema: _HasKey) -> str:
    """``package:name`` of a class."""
    return f"{schema.key.package}:{schema.key.name}"


def is_class(key: ClassKey | None, own: ClassKey) -> bool:
    """True when a key names the same class, in any version."""
    return key is not None and (key.package, key.name) == (own.package, own.name)


def make_instance(kind: Callable[..., T], values: Mapping[str, object], **others: object) -> T:
    """An instance of a generated attrs class; it has a field ``x_`` for a value ``x`` whose name is in use."""
    return kind(
        **{f"{name}_" if hasattr(kind, f"{name}_") else name: value for name, value in values.items()}, **others
    )


def argument_value(item: Argument, values: Mapping[str, object], where: str, agent: str) -> object:
    """An argument of an event or output of a method, converted to its type.

    Raises:
        ProtocolError: it is missing, or of another type.
    """
    value = values.get(item.name)
    if value is None:
        value = item.default
    if value is None and item.type.name != "objId":
        raise ProtocolError(f"agent {agent} left out {item.name!r} of {where}")
    return typed_value(item.type, value, f"{where}.{item.name}", agent, optional=True)


def typed_value(type: QmfType, value: object, where: str, agent: str, *, optional: bool) -> object:
    """A value from the wire, converted to its type.

    Args:
        type: its type.
        value: as the agent sent it, or None.
        where: which value, for messages.
        agent: name of the agent.
        optional: None is a valid value.

    Raises:
        MissingValueError: None, but not optional.
        ProtocolError: of another type.
    """
    if value is None:
        if optional:
            return None
        raise MissingValueError(where, agent)
    try:
        result = from_wire(type, value)
    except ProtocolError as error:
        raise ProtocolError(f"{where} of agent {agent}: {error}") from error
    return with_agent(result, agent) if isinstance(result, ObjectId) else result
