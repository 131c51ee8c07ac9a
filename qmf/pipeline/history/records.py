"""What a reader of a lake returns. Plain values: times are nanoseconds since 1970, 0 where unknown."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from qmf.schema import ClassKey


@attrs.frozen
class RecordedObject:
    """An object as it was at a time.

    Attributes:
        agent: name of its agent.
        name: within its agent.
        epoch: of the agent's start that the object belongs to; 0 for objects that outlive restarts.
        key: its class.
        values: properties and statistics by wire name; references are `RecordedReference`.
        updated, created: times.
    """

    agent: str
    name: str
    epoch: int
    key: ClassKey
    values: Mapping[str, object]
    updated: int = 0
    created: int = 0


@attrs.frozen
class RecordedState:
    """Objects as they were at a time.

    Attributes:
        objects: those that existed.
        destroyed: how many others the recorder saw being destroyed before, since it knows their agents.
    """

    objects: tuple[RecordedObject, ...]
    destroyed: int = 0


@attrs.frozen
class RecordedAgent:
    """An agent that was present at a time.

    Attributes:
        name, epoch: of the agent.
        interval: seconds between its heartbeats.
        seen: time of its last heartbeat before.
    """

    name: str
    epoch: int
    interval: float
    seen: int = 0


@attrs.frozen
class RecordedEvent:
    """An event.

    Attributes:
        key: its class.
        time: when it was raised.
        severity: 0 to 7.
        agent: name of its agent.
        values: arguments by name.
    """

    key: ClassKey
    time: int
    severity: int
    agent: str
    values: Mapping[str, object]


@attrs.frozen
class Sample:
    """Values of an object at one time.

    Attributes:
        time: by the agent's clock.
        epoch: of the agent's start.
        values: by wire name; those that were not sent are missing.
        begins: True where nothing is known of the time just before: growth must not be computed across it.
    """

    time: int
    epoch: int
    values: Mapping[str, object]
    begins: bool = False


@attrs.frozen
class Incident:
    """Something that happened to an object, to its agent, or to the recording.

    Attributes:
        time: when.
        what: in a few words, e.g. ``agent restarted``.
        ends: the object no longer existed, or was no longer recorded.
    """

    time: int
    what: str
    ends: bool = False


@attrs.frozen
class RecordedSeries:
    """The values of one object over time.

    Attributes:
        samples: in order of time.
        incidents: in order of time.
    """

    samples: tuple[Sample, ...]
    incidents: tuple[Incident, ...]
