"""What a client tells of the bus without being asked: one frozen class per kind of news."""

from __future__ import annotations

import enum
from uuid import UUID

import attrs

from qmf.console.aio.agents.registry import Agent
from qmf.console.aio.objects.remote_event import RemoteEvent
from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.schema import ClassKey


class Removal(enum.Enum):
    """Why an agent counts as gone."""

    SILENT = "silent"  #: no sign of it for three heartbeat intervals
    GOODBYE = "goodbye"  #: it said that it ends; agents of this project do
    DISCONNECTED = "disconnected"  #: we lost the connection to the bus


@attrs.frozen
class BusConnected:
    """The connection to the bus is there, and everything is subscribed.

    Attributes:
        url: where the bus is, without password.
        again: True after a reconnect.
    """

    url: str
    again: bool


@attrs.frozen
class BusDisconnected:
    """The connection to the bus is lost.

    Attributes:
        url: where the bus was, without password.
        reason: why, in one line.
        retry: seconds until the next attempt, or None when there will be none.
    """

    url: str
    reason: str
    retry: float | None


@attrs.frozen
class BusLinkLost:
    """The broker closed one of our links: for instance because it forbids what was sent.

    Attributes:
        address: node of the link; empty for the sender.
        condition: AMQP error condition.
        description: the broker's words.
        reopened: False when the broker refuses the link for good: nothing more is received from that node.
    """

    address: str
    condition: str
    description: str
    reopened: bool


@attrs.frozen
class BrokerIdentified:
    """The broker that we are connected to is a qpidd, and told its id.

    Attributes:
        agent: its agent.
        broker_id: the id.
    """

    agent: Agent
    broker_id: UUID


@attrs.frozen
class AgentAdded:
    """An agent appeared, or appeared again."""

    agent: Agent


@attrs.frozen
class AgentUpdated:
    """An agent told something new of itself, beyond the time of day."""

    agent: Agent


@attrs.frozen
class AgentRemoved:
    """An agent is gone.

    Attributes:
        agent: as last known.
        reason: why we think so.
    """

    agent: Agent
    reason: Removal


@attrs.frozen
class AgentRestarted:
    """An agent started anew: its transient objects are gone and its requests failed.

    Attributes:
        agent: as it is now.
        old: as it was before.
    """

    agent: Agent
    old: Agent


@attrs.frozen
class HeartbeatSeen:
    """An agent's heartbeat.

    Attributes:
        agent: who.
        timestamp: nanoseconds since 1970, by the agent's clock.
    """

    agent: Agent
    timestamp: int


@attrs.frozen
class PackageSeen:
    """A package that was not known before."""

    package: str


@attrs.frozen
class ClassSeen:
    """A class or event class, or another version of one, that was not known before.

    Attributes:
        class_key: its key.
        agent: who uses it.
    """

    class_key: ClassKey
    agent: Agent


@attrs.frozen(weakref_slot=False)
class ObjectUpdated:
    """An agent published an object, or what changed of it.

    Attributes:
        object: with everything known of it so far, this update included. It doesn't follow later updates.
        properties: the update holds properties.
        statistics: the update holds statistics.
    """

    object: RemoteObject
    properties: bool
    statistics: bool


@attrs.frozen(weakref_slot=False)
class EventRaised:
    """An agent raised an event."""

    event: RemoteEvent


@attrs.frozen
class Missed:
    """Messages that an agent published did not arrive here: a broker dropped them, mostly because we were too slow.

    Only agents of this project number what they publish, so others' losses stay unknown.

    Attributes:
        agent: who published them.
        subject: under which routing key, which tells of what kind they were.
        count: how many are missing.
    """

    agent: Agent
    subject: str
    count: int


@attrs.frozen
class Dropped:
    """The reader of a feed was too slow: notifications are missing here.

    Attributes:
        count: how many, since the last one of these.
    """

    count: int


Notification = (
    BusConnected
    | BusDisconnected
    | BusLinkLost
    | BrokerIdentified
    | AgentAdded
    | AgentUpdated
    | AgentRemoved
    | AgentRestarted
    | HeartbeatSeen
    | PackageSeen
    | ClassSeen
    | ObjectUpdated
    | EventRaised
    | Missed
    | Dropped
)
