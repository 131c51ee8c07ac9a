"""Events for people: what every face shows of one, the names of severities, and which are severe enough."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Protocol

import attrs

from qmf.errors import NotFoundError
from qmf.protocol import ObjectId
from qmf.schema import ClassKey, EventSchema, Severity
from qmf.views.internal import is_own_event
from qmf.views.objects import key_of_reference
from qmf.views.text import plural

#: The severity of a heartbeat where it is shown among events.
HEARTBEAT_SEVERITY = Severity.INFORM
#: Other names of severities: those of syslog and of the old tools.
_SPELLINGS = {
    "emergency": 0,
    "emer": 0,
    "critical": 2,
    "err": 3,
    "warning": 4,
    "notic": 5,
    "info": 6,
    "informational": 6,
}
_NAMES = tuple(item.schema_name for item in Severity)
#: Numbers of severities by the names that people write.
SEVERITIES: Mapping[str, int] = {item.schema_name: item.value for item in Severity} | _SPELLINGS


def severity_name(number: int) -> str:
    """The name of a severity; of one that QMF doesn't define, its number."""
    return _NAMES[number] if 0 <= number < len(_NAMES) else str(number)


def parse_severity(text: str) -> int:
    """The number of a severity: its name in any spelling, or 0 to 7.

    Raises:
        NotFoundError: there is no such severity.
    """
    word = text.lower()
    if word in SEVERITIES:
        return SEVERITIES[word]
    if re.fullmatch("[0-7]", word):
        return int(word)
    raise NotFoundError("severity", text, [item.schema_name for item in Severity])


def is_severe(number: int, least: int) -> bool:
    """True if an event is as severe as wanted; severities that QMF doesn't define count as the least severe."""
    return number <= least or least >= Severity.DEBUG


@attrs.frozen(eq=False)
class EventView:
    """An event as it is shown and searched.

    Attributes:
        name: ``package:name`` of its class; ``event`` if it has none.
        timestamp: nanoseconds since 1970.
        severity: 0 (emergency) to 7 (debug).
        values: arguments by name, in the order of the schema if that is known.
        agent: name of the agent that raised it.
        schema: its class, if known.
        broker: URL of the broker that it was received from; empty where there is only one.
        object_id: the object that it concerns, if its agent named one.
    """

    name: str
    timestamp: int
    severity: int
    values: Mapping[str, object]
    agent: str
    schema: EventSchema | None = None
    broker: str = ""
    object_id: ObjectId | None = None

    @property
    def package(self) -> str:
        """The package of its class, or empty."""
        return self.name.rpartition(":")[0]

    @property
    def short_name(self) -> str:
        """The name of its class without the package."""
        return self.name.rpartition(":")[2]

    @property
    def is_own(self) -> bool:
        """True if it is about what an agent, a console or a tool created or deleted for itself."""
        return is_own_event(self.package, self.short_name, self.values)

    def is_about(self, object_id: ObjectId, names: Collection[str]) -> bool:
        """True if it is about an object: it or an argument refers to it, or an argument is one of its names."""
        return any(
            _same(value, object_id) if isinstance(value, ObjectId) else isinstance(value, str) and value in names
            for value in (self.object_id, *self.values.values())
        )


#: The class that `LostEvents` have where they stand among events.
LOST_EVENTS = "qmf:lost"


@attrs.frozen(eq=False, init=False)
class LostEvents(EventView):
    """Events that a broker dropped on their way, at the place among events where they are missing.

    It is shown as an event of the class `LOST_EVENTS`, and is not counted as one.

    Attributes:
        count: how many did not arrive.
    """

    count: int = attrs.field(kw_only=True)

    def __init__(self, agent: str, count: int, timestamp: int, broker: str = "") -> None:
        """Make the view.

        Args:
            agent: name of the agent that raised them.
            timestamp: when it was noticed, in nanoseconds since 1970.
            broker: as of `EventView`.
        """
        self.__attrs_init__(LOST_EVENTS, timestamp, Severity.WARN, {"count": count}, agent, broker=broker, count=count)

    def is_about(self, object_id: ObjectId, names: Collection[str]) -> bool:  # noqa: ARG002  # nobody knows the names
        """True if they may have been about an object: their agent is that of the object."""
        return object_id.agent_name == self.agent

    def __str__(self) -> str:
        return f"{plural(self.count, 'event')} of agent {self.agent} did not arrive"


def _same(reference: ObjectId, object_id: ObjectId) -> bool:
    """True if both are the same object; references may lack the agent, and its epoch does not matter."""
    return reference == object_id or (
        type(reference) is ObjectId
        and reference.object_name == object_id.object_name
        and reference.agent_name in (None, object_id.agent_name)
    )


class _Named(Protocol):
    @property
    def name(self) -> str: ...


class ReceivedEvent(Protocol):
    """An event as a console receives it, or a lake has it."""

    @property
    def agent(self) -> _Named: ...
    @property
    def class_key(self) -> ClassKey | None: ...
    @property
    def schema(self) -> EventSchema | None: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def severity(self) -> int: ...
    @property
    def arguments(self) -> Mapping[str, object]: ...
    @property
    def object_id(self) -> ObjectId | None: ...


def event_view(event: ReceivedEvent, url: str = "", broker: str = "") -> EventView:
    """The view of an event that was received; references are `ObjectKey`.

    Args:
        url: of the broker that it was received from; empty where there is only one.
        broker: the broker in the keys of references; empty where there is only one.
    """
    key = event.class_key
    name = "event" if key is None else f"{key.package}:{key.name}" if key.package else key.name
    agent = event.agent.name
    values = {name: key_of_reference(value, agent, broker) for name, value in event.arguments.items()}
    return EventView(name, event.timestamp, event.severity, values, agent, event.schema, url, event.object_id)
