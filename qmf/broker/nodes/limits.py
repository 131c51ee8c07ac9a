"""What a full queue does: one class for each policy. A queue that has room asks none of them."""

from __future__ import annotations

import abc
import logging
from collections.abc import Callable
from typing import Protocol

from qmf.broker.nodes.entries import ACQUIRED, Entry
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.settings import OverflowPolicy, QueueSettings

log = logging.getLogger("qmf.broker")


class BoundedQueue(Protocol):
    """What a policy uses of `Queue`, where all this is described."""

    name: str
    settings: QueueSettings

    @property
    def on_limit(self) -> Callable[[], None]:
        """See `Queue`."""

    def depth(self) -> tuple[int, int]:
        """See `Queue`."""

    def fits(self, count: int, size: int) -> bool:
        """See `Queue`."""

    def has_memory(self, count: int, size: int) -> bool:
        """See `Queue`."""

    def expire(self) -> int:
        """See `Queue`."""

    def oldest(self) -> Entry | None:
        """See `Queue`."""

    def give_up(self, entry: Entry) -> None:
        """See `Queue`."""


class Overflow(abc.ABC):
    """Decides whether a full queue takes a message."""

    @abc.abstractmethod
    def make_room(self, queue: BoundedQueue, message: Message) -> bool:
        """True if the message is to be taken; where that needs room, there is now."""


class Reject(Overflow):
    """The new message is refused."""

    def make_room(self, queue: BoundedQueue, message: Message) -> bool:
        """See `Overflow`."""
        queue.expire()
        return queue.fits(1, len(message.data))


class Ring(Overflow):
    """The oldest messages are given up; with priorities those of the lowest one, if it is not above the new message's.

    What has expired goes first.
    """

    def __init__(self, *, strict: bool, priorities: bool, keeps_large: bool) -> None:
        """Args:

        strict: the new message is refused if the oldest is acquired.
        priorities: the queue has levels of priority.
        keeps_large: a message above the limit is kept alone; otherwise it is refused.
        """
        self._strict = strict
        self._keeps_large = keeps_large
        self._priorities = priorities
        self._reported = False

    def make_room(self, queue: BoundedQueue, message: Message) -> bool:
        """See `Overflow`."""
        queue.expire()
        size = len(message.data)
        if queue.fits(1, size):
            return True
        limit = queue.settings.limits.size
        if limit is not None and size > limit and not self._keeps_large:
            return False
        count, held = queue.depth()
        if not queue.has_memory(1 - count, size - held):
            return False  # other queues need the memory: giving up all messages would not help
        if not self._reported:
            self._reported = True
            log.warning("queue %s is full: its receiver is too slow; dropping the oldest messages", queue.name)
        while not queue.fits(1, size):
            oldest = queue.oldest()
            if oldest is None:
                break  # how large a message of a client may be is limited elsewhere
            if self._strict and oldest.state is ACQUIRED:
                break
            if self._priorities and oldest.message.priority > message.priority:
                break
            queue.give_up(oldest)
        return queue.fits(1, size) or (not queue.depth()[0] and queue.has_memory(1, size))


class SelfDestruct(Overflow):
    """The queue is deleted."""

    def make_room(self, queue: BoundedQueue, message: Message) -> bool:
        """See `Overflow`."""
        if not queue.has_memory(1, len(message.data)):
            return False
        log.warning("queue %s has reached its limit, and is deleted", queue.name)
        queue.on_limit()
        return True


class FlowToDisk(Overflow):
    """The queue takes the message, and keeps it in its store."""

    def make_room(self, queue: BoundedQueue, message: Message) -> bool:  # noqa: ARG002
        """See `Overflow`."""
        queue.expire()
        return True


def overflow_of(settings: QueueSettings) -> Overflow:
    """The object that carries out the policy of a queue."""
    match settings.overflow:
        case OverflowPolicy.RING | OverflowPolicy.RING_STRICT:
            return Ring(
                strict=settings.overflow is OverflowPolicy.RING_STRICT,
                priorities=bool(settings.priorities),
                keeps_large=settings.keeps_large,
            )
        case OverflowPolicy.SELF_DESTRUCT:
            return SelfDestruct()
        case OverflowPolicy.FLOW_TO_DISK:
            return FlowToDisk()
        case _:
            return Reject()
