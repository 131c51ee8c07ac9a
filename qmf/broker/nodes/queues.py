"""Queues: bounded, in order, dispatched to the consumers that have credit.

A queue either belongs to a subscription or has a name of its own. A subscription's queue drops its oldest message when
it is full: for events and statistics the newest matter, and a slow receiver must not slow down the sender. A named
queue refuses what it cannot hold, so that the sender notices. This module knows nothing of AMQP.
"""

from __future__ import annotations

import enum
import itertools
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import attrs

from qmf.broker.nodes.counters import BrokerCounters, QueueCounters
from qmf.broker.nodes.message import Message

log = logging.getLogger("qmf.broker")


@attrs.frozen
class QueueLimits:
    """How much a queue holds.

    Attributes:
        count: number of messages. What hundreds of agents publish in one interval is some thousand messages.
        size: bytes of all messages together. qpidd allows 100 MB per queue; the embedded broker shares a process with
            a shell, and has about four queues per console.
    """

    count: int = 10_000
    size: int = 32 * 1024 * 1024


class OverflowPolicy(enum.Enum):
    """What a full queue does with a new message."""

    DROP_OLDEST = "drop the oldest message"
    REFUSE = "refuse the new message"


class Consumer(Protocol):
    """A receiver of a queue's messages.

    Attributes:
        selector: the messages that it takes; None for all.
    """

    selector: Callable[[Message], bool] | None

    def ready(self) -> bool:
        """True when `deliver` may be called."""

    def deliver(self, message: Message) -> None:
        """Send the message to the receiver."""

    def unsettled(self) -> tuple[int, int]:
        """Number and bytes of the messages that were delivered and may still come back."""


class Browser(Protocol):
    """Reads the messages of a queue and leaves them there."""

    def on_stored(self, message: Message) -> None:
        """A message waits in the queue now."""


class Queue:
    """A queue.

    Attributes:
        name: unique in the broker.
        limits: how much it holds.
        overflow: what it does when it is full.
        exclusive: only one consumer is allowed.
        auto_delete: the queue is to be deleted when its last consumer is gone.
        counters: read them, but don't write.
    """

    def __init__(
        self,
        name: str,
        limits: QueueLimits,
        overflow: OverflowPolicy,
        broker_counters: BrokerCounters,
        clock: Callable[[], float],
        *,
        exclusive: bool = False,
        auto_delete: bool = False,
    ) -> None:
        """Args:

        name, limits, overflow, exclusive, auto_delete: as the attributes.
        broker_counters: totals of the broker, which are counted along.
        clock: returns seconds; for times to live.
        """
        self.name = name
        self.limits = limits
        self.overflow = overflow
        self.exclusive = exclusive
        self.auto_delete = auto_delete
        self.counters = QueueCounters()
        self._broker_counters = broker_counters
        self._clock = clock
        #: In their order; the values mean nothing.
        self._messages: OrderedDict[Message, None] = OrderedDict()
        self._size = 0
        self._consumers: deque[Consumer] = deque()
        self._selectors = 0
        self._browsers: list[Browser] = []
        self._overflow_logged = False

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def size(self) -> int:
        """Bytes of the messages that wait."""
        return self._size

    @property
    def consumer_count(self) -> int:
        """Number of consumers."""
        return len(self._consumers)

    def depth(self) -> tuple[int, int]:
        """Number and bytes of the messages that wait or are unsettled."""
        count, size = len(self._messages), self._size
        for consumer in self._consumers:
            unsettled, unsettled_size = consumer.unsettled()
            count += unsettled
            size += unsettled_size
        return count, size

    def enqueue(self, message: Message) -> bool:
        """Append a message, or deliver it at once when none waits before it.

        Returns:
            False when the queue is full and refuses the message.
        """
        counters, size = self.counters, len(message.data)
        if (
            (self._selectors or not self._messages)
            and message.expires_at is None
            and (consumer := self._next_ready(message)) is not None
        ):
            counters.passed += 1
            counters.enqueued_bytes += size
            self._broker_counters.delivered += 1
            consumer.deliver(message)
            return True
        if not self._make_room(size):
            counters.refused += 1
            return False
        counters.stored += 1
        counters.enqueued_bytes += size
        self._messages[message] = None
        self._size += size
        for browser in self._browsers:
            browser.on_stored(message)
        if self._consumers and not self._selectors:
            self.dispatch()
        return True

    def requeue(self, messages: Iterable[Message]) -> None:
        """Put messages that a consumer gave back at the front, oldest first. The limits do not apply to them."""
        messages = list(messages)
        self.counters.releases += len(messages)
        self.put_back(messages)

    def put_back(self, messages: Sequence[Message]) -> None:
        """Put messages that were taken at the front, oldest first. The limits do not apply to them."""
        for message in reversed(messages):
            self._messages[message] = None
            self._messages.move_to_end(message, last=False)
            self._size += len(message.data)
        self.dispatch()

    def take(self, count: int = 0, matches: Callable[[Message], bool] | None = None) -> list[Message]:
        """Remove waiting messages, oldest first. They have left the queue; the caller counts why.

        Args:
            count: how many at most; 0 for all.
            matches: chooses the messages; None for all.
        """
        found = (message for message in self._messages if matches is None or matches(message))
        taken = list(itertools.islice(found, count or None))
        for message in taken:
            del self._messages[message]
            self._size -= len(message.data)
        return taken

    def purge(self, count: int = 0, matches: Callable[[Message], bool] | None = None) -> None:
        """Remove waiting messages; see `take`."""
        self.counters.purged += len(self.take(count, matches))

    def add_consumer(self, consumer: Consumer) -> None:
        """Deliver to this consumer, too. What waits already is delivered by the next `dispatch`."""
        self._consumers.append(consumer)
        self._selectors += consumer.selector is not None

    def remove_consumer(self, consumer: Consumer) -> None:
        """Deliver nothing more to this consumer. Does nothing when it was removed before."""
        if consumer in self._consumers:
            self._consumers.remove(consumer)
            self._selectors -= consumer.selector is not None

    def waiting(self) -> list[Message]:
        """The messages that wait, in their order."""
        return list(self._messages)

    def holds(self, message: Message) -> bool:
        """True if this message waits here."""
        return message in self._messages

    def add_browser(self, browser: Browser) -> None:
        """Notify a browser of the messages that will be stored."""
        self._browsers.append(browser)

    def remove_browser(self, browser: Browser) -> None:
        """Notify a browser no more."""
        if browser in self._browsers:
            self._browsers.remove(browser)

    def has_room(self, count: int, size: int) -> bool:
        """True if so many messages, of so many bytes together, would be stored."""
        if self.overflow is OverflowPolicy.DROP_OLDEST:
            return True
        if self._fits(size, count):
            return True
        self._remove_expired()
        return self._fits(size, count)

    def dispatch(self) -> None:
        """Deliver waiting messages to the consumers that are ready, in turn."""
        if self._selectors:
            self._dispatch_selected()
            return
        while self._messages:
            if next(iter(self._messages)).is_expired(self._clock()):
                self._pop()
                self._count_expired(1)
                continue
            consumer = self._next_ready()
            if consumer is None:
                return
            self.counters.fetched += 1
            self._broker_counters.delivered += 1
            consumer.deliver(self._pop())

    def _dispatch_selected(self) -> None:
        """Deliver each waiting message to the next consumer that is ready and takes it."""
        self._remove_expired()
        for message in list(self._messages):
            if not any(consumer.ready() for consumer in self._consumers):
                return
            if message in self._messages and (consumer := self._next_ready(message)) is not None:
                del self._messages[message]
                self._size -= len(message.data)
                self.counters.fetched += 1
                self._broker_counters.delivered += 1
                consumer.deliver(message)

    def _next_ready(self, message: Message | None = None) -> Consumer | None:
        """The next consumer that is ready and, with selectors in use, takes a message."""
        consumers = self._consumers
        if self._selectors and message is not None:
            for _ in range(len(consumers)):
                consumer = consumers[0]
                consumers.rotate(-1)
                if consumer.ready() and (consumer.selector is None or consumer.selector(message)):
                    return consumer
            return None
        if len(consumers) == 1:
            return consumers[0] if consumers[0].ready() else None
        for _ in range(len(consumers)):
            consumer = consumers[0]
            consumers.rotate(-1)
            if consumer.ready():
                return consumer
        return None

    def _pop(self) -> Message:
        message, _ = self._messages.popitem(last=False)
        self._size -= len(message.data)
        return message

    def _make_room(self, size: int) -> bool:
        if self._fits(size):
            return True
        self._remove_expired()
        if self.overflow is OverflowPolicy.DROP_OLDEST:
            if not self._overflow_logged:
                self._overflow_logged = True
                log.warning("queue %s is full: its receiver is too slow; dropping the oldest messages", self.name)
            while self._messages and not self._fits(size):
                self._pop()
                self.counters.dropped += 1
                self._broker_counters.dropped += 1
            # A single message above the size limit is stored when the queue is empty: how large a message may be is
            # limited elsewhere.
            return True
        return self._fits(size)

    def _fits(self, size: int, count: int = 1) -> bool:
        return len(self._messages) + count <= self.limits.count and self._size + size <= self.limits.size

    def _remove_expired(self) -> None:
        """Remove the expired messages, wherever they are in the queue."""
        now = self._clock()
        kept = [message for message in self._messages if not message.is_expired(now)]
        if expired := len(self._messages) - len(kept):
            self._count_expired(expired)
            self._messages = OrderedDict.fromkeys(kept)
            self._size = sum(len(message.data) for message in kept)

    def _count_expired(self, count: int) -> None:
        self.counters.expired += count
        self._broker_counters.expired += count
