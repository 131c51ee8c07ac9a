"""Remote events: events of agents, with their arguments typed by the schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from qmf.console.aio.agents import Agent
from qmf.console.aio.objects.values import PLAIN_TYPES, convert_value
from qmf.protocol import ObjectId
from qmf.protocol.objects import as_dict
from qmf.schema import ClassKey, EventSchema, QmfType, Severity


class EventArguments(Mapping[str, object]):
    """The arguments of an event by name, in schema order, then those not in the schema; converted on reading."""

    __slots__ = ("_agent", "_types", "_values")

    def __init__(self, values: Mapping[str, object], types: Mapping[str, QmfType], agent: str) -> None:
        self._values = values
        self._types = types
        self._agent = agent

    def __getitem__(self, name: str) -> object:
        value = self._values[name]
        kind = self._types.get(name)
        # Mostly a value is what it should be: the call takes longer than this.
        if kind is None or value.__class__ is PLAIN_TYPES.get(kind.base):
            return value
        return convert_value(kind, value, self._agent)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self.read())

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self.read())

    def read(self) -> dict[str, object]:
        """All arguments, as a new dictionary."""
        values = as_dict(self._values)
        ordered = {}
        for name, kind in self._types.items():
            if name in values:
                ordered[name] = convert_value(kind, values.pop(name), self._agent)
        return {**ordered, **values}


def argument_types(schema: EventSchema | None) -> Mapping[str, QmfType]:
    """Types of the arguments of an event by name, in schema order; empty without a schema."""
    return {item.name: item.type for item in schema.arguments} if schema else {}


@attrs.frozen(kw_only=True, weakref_slot=False)
class RemoteEvent:
    """Something that happened at an agent.

    Attributes:
        agent: the agent that raised it.
        class_key: its class, or None for an event without schema.
        schema: the schema of its class, or None when no agent sent it.
        timestamp: nanoseconds since 1970, by the agent's clock.
        severity: 0 (emergency) to 7 (debug) as sent; see `level`.
        arguments: by name, in schema order; arguments that the agent left out are absent. Converted on reading.
        object_id: the object that it concerns, or None when the agent did not name one.
    """

    agent: Agent
    class_key: ClassKey | None
    schema: EventSchema | None
    timestamp: int
    severity: int
    arguments: Mapping[str, object]
    object_id: ObjectId | None = None

    @property
    def level(self) -> Severity | None:
        """The severity as a name; None for a number that QMF doesn't define."""
        return Severity(self.severity) if Severity.EMERG <= self.severity <= Severity.DEBUG else None
