"""Notifications: what a client reports while it is open, one frozen class per kind."""

from __future__ import annotations

import enum
from uuid import UUID

import attrs

from qmf.console.aio.agents.registry import Agent
from qmf.console.aio.objects.remote_event import RemoteEvent
from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.schema import ClassKey


class Removal(enum.Enum):
    """Why an agent was removed."""

    SILENT = "silent"  #: no message of it for three heartbeat intervals
    GOODBYE = "goodbye"  #: it announced its end; agents of this project do
    DISCONNECTED = "disconnected"  #: the connection to the bus was lost


@attrs.frozen
class BusConnected:
    """The bus is connected, and all bindings are in place.

    Attributes:
        url: where the bus is, without password.
        again: True after a reconnect.
    """

    url: str
    again: bool


@attrs.frozen
class BusDisconnected:
    """The connection to the bus was lost.

    Attributes:
        url: where the bus was, without password.
        reason: the reason, in one line.
        retry: seconds until the next attempt, or None when there will be none.
    """

    url: str
    reason: str
    retry: float | None


@attrs.frozen
class BusLinkLost:
    """The broker closed one of the client's links, for instance because it forbids a message.

    Attributes:
        address: node of the link; empty for the sending link.
        condition: AMQP error condition.
        description: the broker's description of the error.
        reopened: False when the broker also refused to open the link again: nothing more is received from that node.
    """

    address: str
    condition: str
    description: str
    reopened: bool


@attrs.frozen
class BrokerIdentified:
    """The connected broker is a qpidd, and its id is known.

    Attributes:
        agent: its agent.
        broker_id: the id.
    """

    agent: Agent
    broker_id: UUID


@attrs.frozen
class AgentAdded:
    """An agent was found, for the first time or again."""

    agent: Agent


@attrs.frozen
class AgentUpdated:
    """An agent announced new information about itself, other than its time."""

    agent: Agent


@attrs.frozen
class AgentRemoved:
    """An agent is gone.

    Attributes:
        agent: as last known.
        reason: why it was removed.
    """

    agent: Agent
    reason: Removal


@attrs.frozen
class AgentRestarted:
    """An agent was restarted: its transient objects are gone, and the pending requests to it failed.

    Attributes:
        agent: as it is now.
        old: as it was before.
    """

    agent: Agent
    old: Agent


@attrs.frozen
class HeartbeatSeen:
    """A heartbeat of an agent.

    Attributes:
        agent: the agent.
        timestamp: nanoseconds since 1970, by the agent's clock.
    """

    agent: Agent
    timestamp: int


@attrs.frozen
class PackageSeen:
    """A package was seen for the first time."""

    package: str


@attrs.frozen
class ClassSeen:
    """A class or event class, or another version of one, was seen for the first time.

    Attributes:
        class_key: its key.
        agent: the agent that uses it.
    """

    class_key: ClassKey
    agent: Agent


@attrs.frozen(weakref_slot=False)
class ObjectUpdated:
    """An agent published an object, or what changed of it.

    Attributes:
        object: the object with all values known so far, this update included; later updates don't change it.
        properties: True when the update holds properties.
        statistics: True when the update holds statistics.
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
    """Messages that an agent published did not arrive: a broker dropped them, usually because the client was too slow.

    Only agents of this project number what they publish; losses of other agents' messages are not detected.

    Attributes:
        agent: the agent that published them.
        subject: their routing key, which shows of what kind they were.
        count: how many are missing.
    """

    agent: Agent
    subject: str
    count: int


@attrs.frozen
class Dropped:
    """The reader of a notification stream was too slow: notifications are missing at this point.

    Attributes:
        count: how many were dropped since the last `Dropped`.
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
