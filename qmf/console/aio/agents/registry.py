"""Which agents there are: learned from what they say, forgotten when they fall silent (QMF2.md 7.4).

Only our own agents say goodbye, so presence is inferred. The states of an agent, and the signs that move it on::

                 MENTIONED                 ANNOUNCED                    CONNECTED
       ABSENT ────────────▶ HEARD ──────────────────────▶ KNOWN ──────────────────▶ BROKER
         │                                                  ▲                          ▲
         └────────────────────── ANNOUNCED ─────────────────┘                          │
         └────────────────────── CONNECTED ────────────────────────────────────────────┘

- MENTIONED: a message names it as its sender. We know its name only.
- ANNOUNCED: a locate response or a heartbeat: we know what it says of itself.
- CONNECTED: the same, and it is the agent of the broker that we are connected to; the alias `broker` means this one.
- RESTARTED: it announces another epoch, or another direct subject, than before. It stays, but everything that belonged
  to the old run is void. Agents of libqmf2 always say epoch 1; the direct subject, new at each start, gives them away.
- SILENT: no sign for three heartbeat intervals, and 10 s at least. Never happens to BROKER: while the connection lives,
  so does it.
- GOODBYE: its last heartbeat says that it is one. What it sent before may still be on its way, on another link: so its
  name alone counts for nothing then, until it announces itself again or some seconds have passed.
- CUT: the connection to the bus is lost. All agents are ABSENT; whoever still lives answers the next locate request.

UPDATED is told only where an announcement holds something new besides its time. A qpidd counts as the connected one
from its first sign, until an answer to a request that only the connected broker gets shows that it is another.

An event that `TRANSITIONS` doesn't list raises `IllegalAgentEvent` and changes nothing. The time is an argument: this
module has no clock, sends nothing and knows no asyncio.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import attrs

from qmf.errors import NotFoundError
from qmf.protocol import BROKER, AgentInfo

#: Silent heartbeat intervals after which an agent is given up. The old Python console used 3, libqmf2 uses 5 minutes.
MISSED_HEARTBEATS = 3

#: ... but never sooner than this, in seconds: agents with intervals of a second may stall for longer than three.
SHORTEST_PATIENCE = 10.0

#: Seconds after its goodbye in which an agent's name as the sender of a message doesn't bring it back.
AFTERGLOW = 10.0

#: Attributes of our own agents: of a last heartbeat, and the version of subscriptions that the agent knows.
GOODBYE = "_goodbye"
SUBSCRIPTIONS = "_subscriptions"

#: Interval taken for an agent that never said its own: the default of libqmf2.
UNKNOWN_INTERVAL = 60.0


class AgentState(enum.Enum):
    """What we know of an agent."""

    ABSENT = "absent"
    HEARD = "heard"
    KNOWN = "known"
    BROKER = "broker"


class AgentEvent(enum.Enum):
    """What can tell us of an agent."""

    MENTIONED = "mentioned"
    ANNOUNCED = "announced"
    CONNECTED = "connected"
    RESTARTED = "restarted"
    SILENT = "silent"
    GOODBYE = "goodbye"
    CUT = "cut"


class AgentChangeKind(enum.Enum):
    """What a sign means to whoever follows the agents."""

    NONE = "none"
    ADDED = "added"
    UPDATED = "updated"
    RESTARTED = "restarted"
    REMOVED = "removed"


_Moves = Mapping[AgentEvent, tuple[AgentState, AgentChangeKind]]

TRANSITIONS: Mapping[AgentState, _Moves] = MappingProxyType(
    {
        AgentState.ABSENT: {
            AgentEvent.MENTIONED: (AgentState.HEARD, AgentChangeKind.ADDED),
            AgentEvent.ANNOUNCED: (AgentState.KNOWN, AgentChangeKind.ADDED),
            AgentEvent.CONNECTED: (AgentState.BROKER, AgentChangeKind.ADDED),
        },
        AgentState.HEARD: {
            AgentEvent.MENTIONED: (AgentState.HEARD, AgentChangeKind.NONE),
            AgentEvent.ANNOUNCED: (AgentState.KNOWN, AgentChangeKind.UPDATED),
            AgentEvent.CONNECTED: (AgentState.BROKER, AgentChangeKind.UPDATED),
            AgentEvent.SILENT: (AgentState.ABSENT, AgentChangeKind.REMOVED),
            AgentEvent.GOODBYE: (AgentState.ABSENT, AgentChangeKind.REMOVED),
            AgentEvent.CUT: (AgentState.ABSENT, AgentChangeKind.REMOVED),
        },
        AgentState.KNOWN: {
            AgentEvent.MENTIONED: (AgentState.KNOWN, AgentChangeKind.NONE),
            AgentEvent.ANNOUNCED: (AgentState.KNOWN, AgentChangeKind.UPDATED),
            AgentEvent.CONNECTED: (AgentState.BROKER, AgentChangeKind.UPDATED),
            AgentEvent.RESTARTED: (AgentState.KNOWN, AgentChangeKind.RESTARTED),
            AgentEvent.SILENT: (AgentState.ABSENT, AgentChangeKind.REMOVED),
            AgentEvent.GOODBYE: (AgentState.ABSENT, AgentChangeKind.REMOVED),
            AgentEvent.CUT: (AgentState.ABSENT, AgentChangeKind.REMOVED),
        },
        AgentState.BROKER: {
            AgentEvent.MENTIONED: (AgentState.BROKER, AgentChangeKind.NONE),
            AgentEvent.ANNOUNCED: (AgentState.BROKER, AgentChangeKind.UPDATED),
            AgentEvent.CONNECTED: (AgentState.BROKER, AgentChangeKind.UPDATED),
            AgentEvent.RESTARTED: (AgentState.BROKER, AgentChangeKind.RESTARTED),
            AgentEvent.GOODBYE: (AgentState.ABSENT, AgentChangeKind.REMOVED),
            AgentEvent.CUT: (AgentState.ABSENT, AgentChangeKind.REMOVED),
        },
    }
)


class IllegalAgentEvent(RuntimeError):
    """A sign that an agent's presence doesn't allow: a bug in the console."""


@attrs.frozen
class Agent:
    """What is known of one agent at one moment.

    Attributes:
        info: what it said of itself; only name, vendor, product and instance until its first heartbeat.
        is_broker: it is the agent of the broker that we are connected to.
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
        """Number of its start, or 0 where it never said."""
        return self.info.epoch

    @property
    def knows_schema_queries(self) -> bool:
        """True when it answers QMFv2 schema queries and predicates."""
        return self.info.capability >= 1

    @property
    def takes_subscriptions(self) -> bool:
        """True when it publishes to subscribers, as agents of this project do."""
        version = self.info.attributes.get(SUBSCRIPTIONS)
        return isinstance(version, int) and version >= 1

    @property
    def is_announced(self) -> bool:
        """True once it told more of itself than its name."""
        return self.info != info_from_name(self.name)

    @property
    def is_qpidd(self) -> bool:
        """True for the agent inside a qpidd, whether ours or a federated one."""
        return self.vendor == "apache.org" and self.product == "qpidd"

    @property
    def patience(self) -> float:
        """Seconds of silence after which it counts as gone."""
        return max(MISSED_HEARTBEATS * (self.info.heartbeat_interval or UNKNOWN_INTERVAL), SHORTEST_PATIENCE)

    def __str__(self) -> str:
        return self.name


@attrs.define
class _Entry:
    agent: Agent
    presence: AgentState
    seen: float


@attrs.frozen
class AgentChange:
    """What one sign changed.

    Attributes:
        change: what happened.
        agent: the agent, as known from now on; when it is gone, as last known.
        old: the agent before, or None when it was absent.
        sign: what told it.
    """

    change: AgentChangeKind
    agent: Agent
    old: Agent | None
    sign: AgentEvent


def info_from_name(name: str) -> AgentInfo:
    """What the name alone says; it is split at the first two colons only (QMF2.md 4.2)."""
    vendor, product, instance = [*name.split(":", 2), "", ""][:3]
    return AgentInfo(name=name, vendor=vendor, product=product, instance=instance)


class AgentRegistry:
    """The agents present."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._broker: str | None = None
        self._departed: dict[str, float] = {}

    def __iter__(self) -> Iterator[Agent]:
        return iter([entry.agent for entry in self._entries.values()])

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def broker(self) -> Agent | None:
        """The agent of the connected broker, or None when it has none or has not answered yet."""
        return self._entries[self._broker].agent if self._broker else None

    def get(self, name: str) -> Agent | None:
        """The agent with this name, or with the alias ``broker``; None when it is not present."""
        entry = self._entries.get(self.resolve(name))
        return entry.agent if entry else None

    def find(self, name: str) -> Agent:
        """The agent with this name, or with the alias ``broker``.

        Raises:
            NotFoundError: not present; names agents with similar names.
        """
        agent = self.get(name)
        if agent is None:
            raise NotFoundError("agent", name, self._entries)
        return agent

    def resolve(self, name: str) -> str:
        """The full name for a name or alias; the alias itself while no broker is known."""
        return self._broker if name == BROKER and self._broker else name

    def mentioned(self, name: str, now: float) -> AgentChange | None:
        """A message names `name` as its sender; None when that changes nothing."""
        name = self.resolve(name)
        if name == BROKER:
            return None  # an answer of the broker before it told its name; its locate response is on the way
        entry = self._entries.get(name)
        if entry is not None:
            return self._apply(name, AgentEvent.MENTIONED, now, entry.agent)
        if now - self._departed.get(name, -AFTERGLOW) < AFTERGLOW:
            return None
        agent = self._guess(Agent(info_from_name(name)))
        return self._apply(name, AgentEvent.CONNECTED if agent.is_broker else AgentEvent.MENTIONED, now, agent)

    def announced(self, info: AgentInfo, now: float, *, connected: bool = False) -> AgentChange | None:
        """An agent tells of itself.

        Args:
            info: what it tells.
            now: the time, in seconds of any clock.
            connected: it answered a request that only the connected broker gets.

        Returns:
            what that changes, or None.
        """
        entry = self._entries.get(info.name)
        if info.attributes.get(GOODBYE) is True:
            self._departed = {name: left for name, left in self._departed.items() if now - left < AFTERGLOW}
            self._departed[info.name] = now
            return None if entry is None else self._apply(info.name, AgentEvent.GOODBYE, now, entry.agent)
        self._departed.pop(info.name, None)
        agent = self._guess(Agent(info, is_broker=connected or info.name == self._broker))
        if entry is not None and _restarted(entry.agent.info, info):
            return self._apply(info.name, AgentEvent.RESTARTED, now, agent)
        return self._apply(info.name, AgentEvent.CONNECTED if agent.is_broker else AgentEvent.ANNOUNCED, now, agent)

    def silent(self, now: float) -> list[AgentChange]:
        """Give up the agents that have been silent for too long."""
        overdue = [
            (name, entry)
            for name, entry in self._entries.items()
            if entry.presence is not AgentState.BROKER and now - entry.seen > entry.agent.patience
        ]
        changes = [self._apply(name, AgentEvent.SILENT, now, entry.agent) for name, entry in overdue]
        return [change for change in changes if change is not None]

    def next_check(self) -> float | None:
        """When the first agent will have been silent for too long; None when none ever will."""
        return min(
            (e.seen + e.agent.patience for e in self._entries.values() if e.presence is not AgentState.BROKER),
            default=None,
        )

    def cut(self, now: float) -> list[AgentChange]:
        """The connection is lost: give up every agent."""
        self._departed.clear()
        changes = [self._apply(name, AgentEvent.CUT, now, entry.agent) for name, entry in list(self._entries.items())]
        return [change for change in changes if change is not None]

    def _guess(self, agent: Agent) -> Agent:
        """Take a qpidd for the connected broker as long as none is known."""
        if not agent.is_broker and self._broker is None and agent.is_qpidd:
            agent = attrs.evolve(agent, is_broker=True)
        if agent.is_broker:
            self._take_broker(agent.name)
        return agent

    def _take_broker(self, name: str) -> None:
        """Note the connected broker; a qpidd that we took for it before turns out to be a federated one."""
        if self._broker is not None and self._broker != name:
            entry = self._entries[self._broker]
            entry.presence = AgentState.KNOWN
            entry.agent = attrs.evolve(entry.agent, is_broker=False)
        self._broker = name

    def _apply(self, name: str, sign: AgentEvent, now: float, agent: Agent) -> AgentChange | None:
        entry = self._entries.get(name)
        presence = entry.presence if entry else AgentState.ABSENT
        move = TRANSITIONS[presence].get(sign)
        if move is None:
            raise IllegalAgentEvent(f"agent {name} is {presence.value}: no sign {sign.value}")
        following, change = move
        old = entry.agent if entry else None
        if following is AgentState.ABSENT:
            del self._entries[name]
            if self._broker == name:
                self._broker = None
        elif entry is None:
            self._entries[name] = _Entry(agent, following, now)
        else:
            entry.agent, entry.presence, entry.seen = agent, following, now
        if change is AgentChangeKind.UPDATED and old is not None and _same(old, agent):
            change = AgentChangeKind.NONE
        return None if change is AgentChangeKind.NONE else AgentChange(change, agent, old, sign)


def _same(old: Agent, new: Agent) -> bool:
    """True when nothing is new but the time at which it was said."""
    return old == attrs.evolve(new, info=attrs.evolve(new.info, timestamp=old.info.timestamp))


def _restarted(old: AgentInfo, new: AgentInfo) -> bool:
    """True when two announcements come from different runs; what either didn't say proves nothing."""
    if old.epoch and new.epoch and old.epoch != new.epoch:
        return True
    return bool(old.direct_subject and new.direct_subject and old.direct_subject != new.direct_subject)
