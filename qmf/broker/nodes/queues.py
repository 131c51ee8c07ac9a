"""Queues: bounded, in order, handed out to whoever has credit.

A queue belongs to a subscription (it drops its oldest message when it is full: for events and statistics the newest
matter, and a slow receiver must not slow the sender) or stands by itself under a name (it refuses what it cannot hold,
so that the sender knows). Nothing here knows AMQP.
"""

from __future__ import annotations

import enum
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

import attrs

from qmf.broker.nodes.counters import Counters, QueueCounts
from qmf.broker.nodes.message import Message

log = logging.getLogger("qmf.broker")


@attrs.frozen
class Limits:
    """How much a queue holds.

    Attributes:
        count: messages. A full interval of a site with hundreds of agents is some thousand messages.
        size: bytes of all messages together. qpidd allows 100 MB per queue; the embedded broker shares a process with
            a shell, and has a queue for each of some four links per console.
    """

    count: int = 10_000
    size: int = 32 * 1024 * 1024


class OverflowPolicy(enum.Enum):
    """What a full queue does."""

    DROP_OLDEST = "drop the oldest message"
    REFUSE = "refuse the new message"


class Consumer(Protocol):
    """Somebody who takes messages from a queue."""

    def ready(self) -> bool:
        """True when `take` may be called."""

    def take(self, message: Message) -> None:
        """Send the message on."""

    def held(self) -> tuple[int, int]:
        """Messages that were taken and may still come back, and their bytes."""


class Queue:
    """A queue.

    Attributes:
        name: unique in the broker.
        limits: how much it holds.
        overflow: what it does when it is full.
        exclusive: only one consumer is allowed.
        counts: what passed; read it, don't write.
    """

    def __init__(
        self,
        name: str,
        limits: Limits,
        overflow: OverflowPolicy,
        counters: Counters,
        clock: Callable[[], float],
        *,
        exclusive: bool = False,
    ) -> None:
        self.name = name
        self.limits = limits
        self.overflow = overflow
        self.exclusive = exclusive
        self.counts = QueueCounts()
        self._counters = counters
        self._clock = clock
        self._messages: deque[Message] = deque()
        self._size = 0
        self._consumers: deque[Consumer] = deque()
        self._told = False

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def size(self) -> int:
        """Bytes waiting."""
        return self._size

    @property
    def consumers(self) -> int:
        """Number of consumers."""
        return len(self._consumers)

    def depth(self) -> tuple[int, int]:
        """Messages that have not left for good, and their bytes: those that wait, and those that receivers hold."""
        count, size = len(self._messages), self._size
        for consumer in self._consumers:
            held, held_size = consumer.held()
            count += held
            size += held_size
        return count, size

    def put(self, message: Message) -> bool:
        """Add a message at the end.

        Returns:
            False when the queue is full and refuses it.
        """
        counts, size = self.counts, len(message.data)
        if not self._messages and message.expires is None and (consumer := self._next_ready()) is not None:
            counts.passed += 1
            counts.enqueued_bytes += size
            self._counters.delivered += 1
            consumer.take(message)
            return True
        if not self._make_room(size):
            counts.refused += 1
            return False
        counts.stored += 1
        counts.enqueued_bytes += size
        self._messages.append(message)
        self._size += size
        if self._consumers:
            self.dispatch()
        return True

    def put_back(self, messages: Iterable[Message]) -> None:
        """Return messages that were taken but not used, oldest first, to the front. They were counted before."""
        for message in reversed(list(messages)):
            self._messages.appendleft(message)
            self._size += len(message.data)
            self.counts.releases += 1
        self.dispatch()

    def purge(self, count: int = 0) -> int:
        """Throw messages away that wait, oldest first.

        Args:
            count: how many at most; 0 for all.

        Returns:
            how many it were.
        """
        number = min(count, len(self._messages)) if count else len(self._messages)
        for _ in range(number):
            self._pop()
        self.counts.purged += number
        return number

    def add(self, consumer: Consumer) -> None:
        """Let somebody take messages."""
        self._consumers.append(consumer)

    def remove(self, consumer: Consumer) -> None:
        """Somebody takes no more."""
        if consumer in self._consumers:
            self._consumers.remove(consumer)

    def dispatch(self) -> None:
        """Hand out what waits to consumers that are ready, taking turns."""
        while self._messages:
            if self._messages[0].expired(self._clock()):
                self._pop()
                self.counts.expired += 1
                self._counters.expired += 1
                continue
            consumer = self._next_ready()
            if consumer is None:
                return
            self.counts.fetched += 1
            self._counters.delivered += 1
            consumer.take(self._pop())

    def _next_ready(self) -> Consumer | None:
        consumers = self._consumers
        if len(consumers) == 1:
            return consumers[0] if consumers[0].ready() else None
        for _ in range(len(consumers)):
            consumer = consumers[0]
            consumers.rotate(-1)
            if consumer.ready():
                return consumer
        return None

    def _pop(self) -> Message:
        message = self._messages.popleft()
        self._size -= len(message.data)
        return message

    def _make_room(self, size: int) -> bool:
        if len(self._messages) < self.limits.count and self._size + size <= self.limits.size:
            return True
        self._drop_expired()
        if self.overflow is OverflowPolicy.DROP_OLDEST:
            if not self._told:
                self._told = True
                log.warning("queue %s is full: its receiver is too slow; dropping the oldest messages", self.name)
            while self._messages and not self._fits(size):
                self._pop()
                self.counts.dropped += 1
                self._counters.dropped += 1
            # A single message above the limit passes when the queue is empty: the limit for messages is another one.
            return True
        return self._fits(size)

    def _fits(self, size: int) -> bool:
        return len(self._messages) < self.limits.count and self._size + size <= self.limits.size

    def _drop_expired(self) -> None:
        """Take out what has expired anywhere in the queue."""
        now = self._clock()
        kept = [message for message in self._messages if not message.expired(now)]
        self.counts.expired += len(self._messages) - len(kept)
        self._counters.expired += len(self._messages) - len(kept)
        if len(kept) < len(self._messages):
            self._messages = deque(kept)
            self._size = sum(len(message.data) for message in kept)
