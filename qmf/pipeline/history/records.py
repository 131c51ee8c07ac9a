"""What a reader of a lake returns besides agents, objects and events, which are those of a console.

Times are nanoseconds since 1970, 0 where unknown.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from qmf.console.aio.objects.remote_object import RemoteObject


@attrs.frozen
class RecordedState:
    """Objects as they were at a time.

    Attributes:
        objects: those that existed, without a client: they have values, and make no requests.
        destroyed: how many others the recorder saw being destroyed before, since it knows their agents.
    """

    objects: tuple[RemoteObject, ...]
    destroyed: int = 0


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
