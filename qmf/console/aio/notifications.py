"""Notifications: what a client reports while it is open, one frozen class per kind, to listeners and through streams.

Listeners are called on the event loop. One that raises is logged and stays; the other listeners and the client are not
affected. A reader of a stream that is too slow loses notifications by the policy that it chose, and gets their number.
"""

from __future__ import annotations

import asyncio
import collections
import enum
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from uuid import UUID

import attrs

from qmf._closable import Closable
from qmf.console.aio.agents import Agent
from qmf.console.aio.objects.remote_event import RemoteEvent
from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.protocol import EVENT_BINDING
from qmf.schema import ClassKey

log = logging.getLogger("qmf.console")

#: How routing keys of events begin.
_EVENTS = EVENT_BINDING.rstrip("#")


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
    """The connected broker has an agent of its own, and its id is known.

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
class AgentsFound:
    """The agents have answered a locate request: all that are there are known, as far as one can tell.

    Attributes:
        count: how many agents are present.
    """

    count: int


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


@attrs.frozen
class ClassUsed:
    """An agent uses a class or event class: seen for the first time since the agent was found.

    Unlike `ClassSeen`, it is reported for each agent.

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
        count: how many messages are missing.
        events: how many events they held; None where that is not known, as of objects.
    """

    agent: Agent
    subject: str
    count: int
    events: int | None = None

    @property
    def of_events(self) -> bool:
        """True if the messages held events."""
        return self.subject.startswith(_EVENTS)

    @property
    def lost_events(self) -> int:
        """How many events did not arrive; the number of their messages if theirs is not known."""
        return self.count if self.events is None else self.events

    def __str__(self) -> str:
        held = "" if self.events is None else f"{self.events} events in "
        return f"{held}{self.count} messages of agent {self.agent} under {self.subject} did not arrive"


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
    | AgentsFound
    | HeartbeatSeen
    | PackageSeen
    | ClassSeen
    | ClassUsed
    | ObjectUpdated
    | EventRaised
    | Missed
    | Dropped
)

Listener = Callable[[Notification], None]


class Overflow(enum.Enum):
    """Which notifications a full stream drops."""

    DROP_OLDEST = "drop oldest"  #: the reader sees the latest state, with a gap before it
    DROP_NEWEST = "drop newest"  #: the reader sees an unbroken beginning, then a gap


class NotificationStream(AsyncIterator[Notification], Closable):
    """A bounded queue of notifications, read with ``async for``; ends when it or its client is closed.

    In place of notifications that were dropped, the reader gets a `Dropped`.
    """

    def __init__(
        self,
        kinds: tuple[type[Notification], ...],
        size: int,
        overflow: Overflow,
        unlisten: Callable[[NotificationStream], None],
    ) -> None:
        self._kinds = kinds
        self._size = size
        self._overflow = overflow
        self._unlisten = unlisten
        self._items: collections.deque[Notification] = collections.deque()
        self._gap = 0
        self._dropped = 0
        self._closed = False
        self._wake = asyncio.Event()

    @property
    def dropped(self) -> int:
        """Notifications dropped since the stream was opened."""
        return self._dropped

    def close(self) -> None:
        """End the stream; queued notifications can still be read. A second call does nothing."""
        self._closed = True
        self._wake.set()
        self._unlisten(self)

    async def __anext__(self) -> Notification:
        while True:
            if self._gap and (self._overflow is Overflow.DROP_OLDEST or not self._items):
                gap, self._gap = self._gap, 0
                return Dropped(gap)
            if self._items:
                return self._items.popleft()
            if self._closed:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()

    def put(self, item: Notification) -> None:
        """Queue a notification, or drop one by the policy."""
        if self._closed or not isinstance(item, self._kinds):
            return
        if len(self._items) >= self._size or (self._gap and self._overflow is Overflow.DROP_NEWEST):
            # With DROP_NEWEST, later items join a gap at the end until the reader has got its `Dropped`.
            self._gap += 1
            self._dropped += 1
            if self._overflow is Overflow.DROP_NEWEST:
                return
            self._items.popleft()
        self._items.append(item)
        self._wake.set()


class NotificationPublisher:
    """All listeners and streams of one client."""

    def __init__(self) -> None:
        # A tuple, replaced as a whole, so that listeners may be added and removed while it is iterated.
        self._listeners: tuple[Listener, ...] = ()
        self._streams: list[NotificationStream] = []

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with each notification; the returned function removes it."""
        self._listeners += (listener,)

        def stop() -> None:
            if listener in self._listeners:
                kept = list(self._listeners)
                kept.remove(listener)
                self._listeners = tuple(kept)

        return stop

    def stream(self, kinds: tuple[type[Notification], ...], size: int, overflow: Overflow) -> NotificationStream:
        """A new stream of the given kinds of notifications."""
        stream = NotificationStream(kinds, size, overflow, self._forget)
        self._streams.append(stream)
        return stream

    def publish(self, item: Notification) -> None:
        """Deliver a notification to all listeners and streams."""
        for listener in self._listeners:
            try:
                listener(item)
            except Exception:
                log.exception("listener %r failed on %s", listener, type(item).__name__)
        for stream in self._streams:
            stream.put(item)

    def publish_all(self, items: Sequence[Notification]) -> None:
        """`publish` for each of some notifications, in order."""
        if self._streams or len(self._listeners) != 1:
            for item in items:
                self.publish(item)
            return
        # One listener, as most clients have. It may be removed meanwhile, and others added, as for `publish`.
        listeners = self._listeners
        (listener,) = listeners
        for position, item in enumerate(items):
            if self._listeners is not listeners or self._streams:
                self.publish_all(items[position:])
                return
            try:
                listener(item)
            except Exception:
                log.exception("listener %r failed on %s", listener, type(item).__name__)

    def close(self) -> None:
        """End all streams."""
        for stream in list(self._streams):
            stream.close()

    def _forget(self, stream: NotificationStream) -> None:
        if stream in self._streams:
            self._streams.remove(stream)
