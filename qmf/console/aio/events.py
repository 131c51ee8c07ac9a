"""An event as a console sees it: its arguments typed by the schema."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from qmf.console.aio.agents import Agent
from qmf.protocol import ObjectId
from qmf.schema import ClassKey, EventSchema, Severity


@attrs.frozen(kw_only=True)
class RemoteEvent:
    """Something that happened at an agent.

    Attributes:
        agent: who raised it.
        class_key: its class, or None for an event without schema.
        schema: its class in full, or None where that could not be learned.
        timestamp: nanoseconds since 1970, by the agent's clock.
        severity: 0 (emergency) to 7 (debug) as sent; see `level`.
        arguments: by name, in schema order; arguments that the agent left out are absent.
        object_id: the object it is about, where the agent said.
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
