"""The agents present, derived from their messages and their silence (QMF2.md 7.4).

Only agents of this project announce their end, so presence is inferred. The states of an agent, and the events that
move it on::

                 MENTIONED                 ANNOUNCED                    CONNECTED
       ABSENT ────────────▶ NAMED ──────────────────────▶ KNOWN ──────────────────▶ BROKER
         │                                                  ▲                          ▲
         └────────────────────── ANNOUNCED ─────────────────┘                          │
         └────────────────────── CONNECTED ────────────────────────────────────────────┘

- MENTIONED: a message names the agent as its sender; only its name is known.
- ANNOUNCED: a locate response or a heartbeat was received, with what the agent announces about itself.
- CONNECTED: the same, and it is the agent of the broker that we are connected to, which has the alias `broker`.
- RESTARTED: it announces another epoch, or another direct subject, than before. It stays present, but everything that
  belonged to its old run is void. Agents of libqmf2 always announce epoch 1; their direct subject is new at each start.
- SILENT: no message for three heartbeat intervals, and for 10 s at least. Never happens to BROKER, which is present as
  long as the connection.
- GOODBYE: it announced its end in its last heartbeat. Messages that it sent before may still arrive on another link, so
  MENTIONED is ignored then until it announces itself again or some seconds have passed.
- CUT: the connection to the bus was lost. All agents are ABSENT; those still running answer the next locate request.

An announcement that differs from the last only in its time is not reported as UPDATED. The agent inside a qpidd or an
embedded broker counts as the connected one's from its first message, whatever that is, until an answer to a request
that only the connected broker gets names another agent.

An event that `TRANSITIONS` doesn't list raises `IllegalEvent` and changes nothing. The registry has no clock: the
time is an argument. `AgentTracker` gives it one.
"""

from __future__ import annotations

import collections
import enum
from collections.abc import Iterator

import attrs

from qmf._state_table import StateTable
from qmf.errors import NotFoundError
from qmf.protocol import BROKER, AgentInfo

#: Heartbeat intervals of silence after which an agent is removed. The old Python console used 3; libqmf2 uses 5 min.
MISSED_HEARTBEATS = 3

#: Seconds of silence that never remove an agent: one with an interval of a second may pause for longer than three.
MIN_SILENCE = 10.0

#: Seconds after its goodbye in which a message that only names an agent as its sender doesn't add it again.
GOODBYE_PERIOD = 10.0

#: Attributes of agents of this project: of a last heartbeat; and the version of subscriptions that it supports.
GOODBYE = "_goodbye"
SUBSCRIPTIONS = "_subscriptions"

#: Heartbeat interval assumed for an agent that announced none: the default of libqmf2.
DEFAULT_INTERVAL = 60.0


class AgentState(enum.Enum):
    """What is known of an agent."""

    ABSENT = "absent"
    NAMED = "named"
    KNOWN = "known"
    BROKER = "broker"

    __hash__ = object.__hash__  # members are equal by identity; Enum's own hash takes five times as long


class AgentEvent(enum.Enum):
    """What can happen to an agent."""

    MENTIONED = "mentioned"
    ANNOUNCED = "announced"
    CONNECTED = "connected"
    RESTARTED = "restarted"
    SILENT = "silent"
    GOODBYE = "goodbye"
    CUT = "cut"

    __hash__ = object.__hash__  # as above


class AgentChangeKind(enum.Enum):
    """What a transition means to listeners."""

    NONE = "none"
    ADDED = "added"
    UPDATED = "updated"
    RESTARTED = "restarted"
    REMOVED = "removed"


_ENDS = {
    AgentEvent.GOODBYE: (AgentState.ABSENT, AgentChangeKind.REMOVED),
    AgentEvent.CUT: (AgentState.ABSENT, AgentChangeKind.REMOVED),
}

TRANSITIONS = StateTable(
    "agent",
    {
        AgentState.ABSENT: {
            AgentEvent.MENTIONED: (AgentState.NAMED, AgentChangeKind.ADDED),
            AgentEvent.ANNOUNCED: (AgentState.KNOWN, AgentChangeKind.ADDED),
            AgentEvent.CONNECTED: (AgentState.BROKER, AgentChangeKind.ADDED),
        },
        AgentState.NAMED: {
            **_ENDS,
            AgentEvent.MENTIONED: (AgentState.NAMED, AgentChangeKind.NONE),
            AgentEvent.ANNOUNCED: (AgentState.KNOWN, AgentChangeKind.UPDATED),
            AgentEvent.CONNECTED: (AgentState.BROKER, AgentChangeKind.UPDATED),
            AgentEvent.SILENT: (AgentState.ABSENT, AgentChangeKind.REMOVED),
        },
        AgentState.KNOWN: {
            **_ENDS,
            AgentEvent.MENTIONED: (AgentState.KNOWN, AgentChangeKind.NONE),
            AgentEvent.ANNOUNCED: (AgentState.KNOWN, AgentChangeKind.UPDATED),
            AgentEvent.CONNECTED: (AgentState.BROKER, AgentChangeKind.UPDATED),
            AgentEvent.RESTARTED: (AgentState.KNOWN, AgentChangeKind.RESTARTED),
            AgentEvent.SILENT: (AgentState.ABSENT, AgentChangeKind.REMOVED),
        },
        AgentState.BROKER: {
            **_ENDS,
            AgentEvent.MENTIONED: (AgentState.BROKER, AgentChangeKind.NONE),
            AgentEvent.ANNOUNCED: (AgentState.BROKER, AgentChangeKind.UPDATED),
            AgentEvent.CONNECTED: (AgentState.BROKER, AgentChangeKind.UPDATED),
            AgentEvent.RESTARTED: (AgentState.BROKER, AgentChangeKind.RESTARTED),
        },
    },
)


@attrs.frozen
class Agent:
    """What is known of one agent at one moment.

    Attributes:
        info: what it announced; only name, vendor, product and instance before its first announcement.
        is_broker: True for the agent of the broker that we are connected to.
    """

    info: AgentInfo
    is_broker: bool = False

    @property
    def name(self) -> str:
        """``vendor:product:instance``."""
        return self.info.name

    @property
    def vendor(self) -> str:
        """First part of the name."""
        return self.info.vendor

    @property
    def product(self) -> str:
        """Second part of the name."""
        return self.info.product

    @property
    def instance(self) -> str:
        """Third part of the name."""
        return self.info.instance

    @property
    def epoch(self) -> int:
        """Number of its start; 0 when it announced none."""
        return self.info.epoch

    @property
    def path(self) -> tuple[str, ...]:
        """Ids of the brokers between the connected one and the agent, the connected one's neighbour first; the last
        one is that which the agent is connected to. Empty if that is the connected one."""
        return self.info.path[::-1]

    @property
    def knows_schema_queries(self) -> bool:
        """True when it answers QMFv2 schema queries and predicates."""
        return self.info.capability >= 1

    @property
    def supports_subscriptions(self) -> bool:
        """True when it publishes to subscribers, as agents of this project do."""
        version = self.info.attributes.get(SUBSCRIPTIONS)
        return isinstance(version, int) and version >= 1

    @property
    def is_announced(self) -> bool:
        """True once more than its name is known."""
        return self.info != info_from_name(self.name)

    @property
    def is_qpidd(self) -> bool:
        """True for the agent of a qpidd, the connected one or a federated one."""
        return self.vendor == "apache.org" and self.product == "qpidd"

    @property
    def is_in_broker(self) -> bool:
        """True for the agent inside a broker: a qpidd, or the embedded one of this project."""
        return self.is_qpidd or (self.vendor == "qmf" and self.product == "broker")

    @property
    def max_silence(self) -> float:
        """Seconds of silence after which it is removed."""
        return max(MISSED_HEARTBEATS * (self.info.heartbeat_interval or DEFAULT_INTERVAL), MIN_SILENCE)

    def __str__(self) -> str:
        return self.name


@attrs.define
class _Entry:
    agent: Agent
    state: AgentState
    seen: float


@attrs.frozen
class AgentChange:
    """A change of one agent.

    Attributes:
        kind: what changed.
        agent: the agent as it is known from now on; when it was removed, as last known.
        old: the agent before, or None when it was absent.
        event: the event that changed it.
    """

    kind: AgentChangeKind
    agent: Agent
    old: Agent | None
    event: AgentEvent


def info_from_name(name: str) -> AgentInfo:
    """What an agent's name shows; the name is split at its first two colons only (QMF2.md 4.2)."""
    vendor, product, instance = [*name.split(":", 2), "", ""][:3]
    return AgentInfo(name=name, vendor=vendor, product=product, instance=instance)


class AgentRegistry:
    """The agents present."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._broker: str | None = None
        # Ordered: a plain dict looks for its oldest key past all that were removed.
        self._departed: collections.OrderedDict[str, float] = collections.OrderedDict()

    def __iter__(self) -> Iterator[Agent]:
        return iter([entry.agent for entry in self._entries.values()])

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def broker(self) -> Agent | None:
        """The agent of the connected broker; None when it has none, or none has answered yet."""
        return self._entries[self._broker].agent if self._broker else None

    def get(self, name: str) -> Agent | None:
        """The agent with this name, or with the alias ``broker``; None when it is not present."""
        entry = self._entries.get(name if name != BROKER else self.resolve(name))
        return entry.agent if entry else None

    def find(self, name: str) -> Agent:
        """The agent with this name, or with the alias ``broker``.

        Raises:
            NotFoundError: not present; names agents with similar names.
        """
        entry = self._entries.get(name if name != BROKER else self.resolve(name))
        if entry is None:
            raise NotFoundError("agent", name, self._entries)
        return entry.agent

    def resolve(self, name: str) -> str:
        """The full name for a name or alias; the alias itself while no broker is known."""
        return self._broker if name == BROKER and self._broker else name

    def on_mention(self, name: str, now: float) -> AgentChange | None:
        """A message names `name` as its sender; None when that changes nothing."""
        name = self.resolve(name)
        if name == BROKER:
            return None  # an answer of the broker before its name is known; its locate response will follow
        entry = self._entries.get(name)
        if entry is not None:
            entry.seen = now  # nothing else changes in whatever state: this is done for each message
            return None
        if now - self._departed.get(name, -GOODBYE_PERIOD) < GOODBYE_PERIOD:
            return None
        agent = self._with_broker(Agent(info_from_name(name)))
        return self._apply(name, AgentEvent.CONNECTED if agent.is_broker else AgentEvent.MENTIONED, now, agent)

    def on_announcement(self, info: AgentInfo, now: float, *, connected: bool = False) -> AgentChange | None:
        """An agent announced itself.

        Args:
            info: the announcement.
            now: the time, in seconds of any clock.
            connected: True when it answered a request that only the connected broker gets.

        Returns:
            the change, or None.
        """
        entry = self._entries.get(info.name)
        if info.attributes.get(GOODBYE) is True:
            self._forget_departures(now)
            self._departed.pop(info.name, None)  # the order is that of the times
            self._departed[info.name] = now
            return None if entry is None else self._apply(info.name, AgentEvent.GOODBYE, now, entry.agent)
        self._departed.pop(info.name, None)
        agent = self._with_broker(Agent(info, is_broker=connected or info.name == self._broker))
        if entry is not None and _is_restart(entry.agent.info, info):
            return self._apply(info.name, AgentEvent.RESTARTED, now, agent)
        return self._apply(info.name, AgentEvent.CONNECTED if agent.is_broker else AgentEvent.ANNOUNCED, now, agent)

    def silent(self, now: float) -> list[AgentChange]:
        """Remove the agents that have been silent for too long."""
        overdue = [
            (name, entry)
            for name, entry in self._entries.items()
            if entry.state is not AgentState.BROKER and now - entry.seen > entry.agent.max_silence
        ]
        changes = [self._apply(name, AgentEvent.SILENT, now, entry.agent) for name, entry in overdue]
        return [change for change in changes if change is not None]

    def next_check(self) -> float | None:
        """The time at which the first agent will have been silent for too long; None when there is none."""
        return min(
            (e.seen + e.agent.max_silence for e in self._entries.values() if e.state is not AgentState.BROKER),
            default=None,
        )

    def on_connection_lost(self, now: float) -> list[AgentChange]:
        """The connection was lost: remove every agent."""
        self._departed.clear()
        changes = [self._apply(name, AgentEvent.CUT, now, entry.agent) for name, entry in list(self._entries.items())]
        return [change for change in changes if change is not None]

    def _forget_departures(self, now: float) -> None:
        while self._departed:
            name = next(iter(self._departed))
            if now - self._departed[name] < GOODBYE_PERIOD:
                return
            del self._departed[name]

    def _with_broker(self, agent: Agent) -> Agent:
        """The agent, marked as the connected broker's if it is inside a broker and none is known yet."""
        if not agent.is_broker and self._broker is None and agent.is_in_broker:
            agent = attrs.evolve(agent, is_broker=True)
        if agent.is_broker:
            self._set_broker(agent.name)
        return agent

    def _set_broker(self, name: str) -> None:
        """Note the connected broker; one that was assumed to be it turns out to be a federated one."""
        if self._broker is not None and self._broker != name:
            entry = self._entries[self._broker]
            entry.state = AgentState.KNOWN
            entry.agent = attrs.evolve(entry.agent, is_broker=False)
        self._broker = name

    def _apply(self, name: str, event: AgentEvent, now: float, agent: Agent) -> AgentChange | None:
        entry = self._entries.get(name)
        state = entry.state if entry else AgentState.ABSENT
        following, kind = TRANSITIONS.next(state, event, name)
        old = entry.agent if entry else None
        if following is AgentState.ABSENT:
            del self._entries[name]
            if self._broker == name:
                self._broker = None
        elif entry is None:
            self._entries[name] = _Entry(agent, following, now)
        else:
            entry.agent, entry.state, entry.seen = agent, following, now
        if kind is AgentChangeKind.UPDATED and old is not None and _same(old, agent):
            kind = AgentChangeKind.NONE
        return None if kind is AgentChangeKind.NONE else AgentChange(kind, agent, old, event)


def _same(old: Agent, new: Agent) -> bool:
    """True when two announcements differ at most in their time."""
    return old == attrs.evolve(new, info=attrs.evolve(new.info, timestamp=old.info.timestamp))


def _is_restart(old: AgentInfo, new: AgentInfo) -> bool:
    """True when two announcements come from different runs; values that one of them lacks are not compared."""
    if old.epoch and new.epoch and old.epoch != new.epoch:
        return True
    return bool(old.direct_subject and new.direct_subject and old.direct_subject != new.direct_subject)
