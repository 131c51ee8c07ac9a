"""Agents for people: how one is, by its heartbeats."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from qmf.views.text import clean

#: An agent is late when its last heartbeat is older than so many intervals.
LATE = 1.5


class AgentHealth(enum.Enum):
    """The state of an agent by its heartbeats."""

    ALIVE = "alive"
    LATE = "late"
    UNKNOWN = "no heartbeat yet"
    CUT = "not known"
    GONE = "gone"


def path_text(path: Sequence[str]) -> str:
    """The brokers by which an agent behind other brokers is reached, the nearest one first; empty if it is not."""
    return " > ".join(map(clean, path))


def health_by_heartbeat(age: float, interval: float) -> AgentHealth:
    """The state of an agent that is there.

    Args:
        age: seconds since its last heartbeat.
        interval: seconds between heartbeats; 0 if it does not say.
    """
    return AgentHealth.LATE if interval and age > LATE * interval else AgentHealth.ALIVE
