"""The agents and the connection, as people ask about them: who is alive, late or gone, and is the broker there."""

from __future__ import annotations

import bisect
import time
from collections import Counter
from collections.abc import Mapping

import attrs

from qmf.console.aio import (
    Agent,
    AgentAdded,
    AgentRemoved,
    AgentRestarted,
    AgentUpdated,
    BusConnected,
    BusDisconnected,
    HeartbeatSeen,
    Notification,
    Removal,
)
from qmf.views.agents import AgentHealth, health_by_heartbeat

#: Seconds until the states of all agents are looked at again, when none came or went.
TALLY_PAUSE = 1.0
#: Agents that are gone and still shown.
MOST_GONE = 200


@attrs.frozen
class AgentPresence:
    """What is known of an agent's life.

    Attributes:
        agent: as last announced.
        found: when it was found, in seconds since 1970.
        heartbeat: when its last heartbeat was received, in seconds since 1970; 0 before the first.
        heartbeats: how many were received.
        restarts: how often it was restarted since it was found.
        cut: when the broker was lost, if it has not announced itself since then, in seconds since 1970; else 0.
        gone: when it was found to be gone, in seconds since 1970; 0 while it is there.
        reason: why it is gone, in words.
    """

    agent: Agent
    found: float
    heartbeat: float = 0.0
    heartbeats: int = 0
    restarts: int = 0
    cut: float = 0.0
    gone: float = 0.0
    reason: str = ""

    def health(self, now: float) -> AgentHealth:
        """Its state at a time, in seconds since 1970."""
        if self.gone:
            return AgentHealth.GONE
        if self.cut:
            return AgentHealth.CUT
        if not self.heartbeat:
            return AgentHealth.UNKNOWN
        return health_by_heartbeat(now - self.heartbeat, self.agent.info.heartbeat_interval)


class AgentPresences:
    """The agents that are there, and those that left lately."""

    def __init__(self) -> None:
        self._present: dict[str, AgentPresence] = {}
        self._gone: dict[str, AgentPresence] = {}
        self._names: list[str] = []
        self._tally: Mapping[AgentHealth, int] = {}
        self._tally_until = 0.0

    def __len__(self) -> int:
        return len(self._present)

    def get(self, name: str) -> AgentPresence | None:
        """An agent that is there or was; None if it was never seen."""
        return self._present.get(name) or self._gone.get(name)

    def all(self) -> list[AgentPresence]:
        """The agents that are there by name, then those that are gone."""
        return [self._present.get(name) or self._gone[name] for name in self.names()]

    def names(self) -> list[str]:
        """The names of the agents that are there, in order, then of those that are gone."""
        return self._names + sorted(self._gone)

    def tally(self, now: float) -> Mapping[AgentHealth, int]:
        """How many agents are in each state: worked out once for all who ask within a second."""
        if not 0 <= self._tally_until - now <= TALLY_PAUSE:
            self._tally = Counter(held.health(now) for items in (self._present, self._gone) for held in items.values())
            self._tally_until = now + TALLY_PAUSE
        return self._tally

    def notice(self, item: Notification, now: float) -> None:
        """Take a notification that came at `now`, in seconds since 1970."""
        match item:
            case AgentAdded(agent=agent) | AgentUpdated(agent=agent):
                self._put(attrs.evolve(self._presence_of(agent, now), agent=agent, cut=0.0))
            case AgentRestarted(agent=agent):
                known = self._presence_of(agent, now)
                self._put(attrs.evolve(known, agent=agent, restarts=known.restarts + 1, cut=0.0))
            case HeartbeatSeen(agent=agent):
                known = self._presence_of(agent, now)
                self._put(attrs.evolve(known, agent=agent, heartbeat=now, heartbeats=known.heartbeats + 1, cut=0.0))
            case AgentRemoved(agent=agent, reason=Removal.DISCONNECTED):
                # Most likely it runs on: nothing is heard of it because there is no broker.
                self._put(attrs.evolve(self._presence_of(agent, now), cut=now))
            case AgentRemoved(agent=agent, reason=reason):
                self._remove(self._presence_of(agent, now), now, reason.value)

    def drop_cut(self, now: float) -> None:
        """The agents that have not announced themselves since the broker was lost are gone."""
        for presence in [item for item in self._present.values() if item.cut]:
            self._remove(presence, now, Removal.DISCONNECTED.value)

    def _presence_of(self, agent: Agent, now: float) -> AgentPresence:
        return self._present.get(agent.name) or AgentPresence(agent, now)

    def _put(self, presence: AgentPresence) -> None:
        name = presence.agent.name
        before = self._present.get(name)
        if before is None:
            self._gone.pop(name, None)
            bisect.insort(self._names, name)
        if before is None or before.cut != presence.cut:
            self._tally_until = 0.0
        self._present[name] = presence

    def _remove(self, presence: AgentPresence, now: float, reason: str) -> None:
        name = presence.agent.name
        if self._present.pop(name, None) is not None:
            del self._names[bisect.bisect_left(self._names, name)]
        self._gone[name] = attrs.evolve(presence, cut=0.0, gone=now, reason=reason)
        if len(self._gone) > MOST_GONE:
            del self._gone[next(iter(self._gone))]
        self._tally_until = 0.0


@attrs.frozen
class BrokerState:
    """Whether there is a broker.

    Attributes:
        url: where it is, without password.
        connected: True while requests can be sent.
        since: since when, in seconds since 1970.
        reason: why the connection was lost; empty while there is one.
        retry_at: when the next attempt is made, in seconds since 1970; None if there will be none, or while connected.
        losses: how often it was lost.
    """

    url: str
    connected: bool
    since: float = attrs.field(factory=time.time)
    reason: str = ""
    retry_at: float | None = None
    losses: int = 0

    def after(self, item: Notification, now: float) -> BrokerState:
        """The state after a notification that came at `now`, in seconds since 1970."""
        match item:
            case BusConnected(url=url):
                return BrokerState(url, True, now, losses=self.losses)
            case BusDisconnected(url=url, reason=reason, retry=retry):
                since = self.since if not self.connected else now
                losses = self.losses + self.connected
                return BrokerState(url, False, since, reason, None if retry is None else now + retry, losses)
        return self
