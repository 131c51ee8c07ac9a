"""What a full queue does: one class for each policy. A queue that has room asks none of them."""

from __future__ import annotations

import abc
import logging
from collections.abc import Callable

from qmf.broker.nodes.contents import Contents
from qmf.broker.nodes.entries import ACQUIRED
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.settings import OverflowPolicy, QueueSettings

log = logging.getLogger("qmf.broker")


class Overflow(abc.ABC):
    """Decides whether a full queue takes a message."""

    def __init__(self, name: str) -> None:
        self._name = name

    @abc.abstractmethod
    def admit(self, contents: Contents, message: Message) -> Message | None:
        """The message, as the queue is to keep it; None if it has no room, and is refused or dropped."""

    def drops(self, contents: Contents, message: Message) -> bool:  # noqa: ARG002
        """True if a message that was not admitted is dropped; False if it is refused to its sender."""
        return False

    def has_room(self, contents: Contents, count: int, size: int) -> bool:
        """True if so many messages, of so many bytes together, would be taken, whatever happens to others for that."""
        return contents.depth.fits_within(count, size)

    def refusal(self, contents: Contents, message: Message) -> str:
        """Why a message was refused, in qpidd's words."""
        depth, size = contents.depth, len(message.data)
        which, exceeded = f"Maximum depth exceeded on {self._name}", depth
        if depth.within is not None and not depth.within.fits(1, size):
            which, exceeded = "Maximum depth of all queues exceeded", depth.within
        return f"{which}: {exceeded}, increment=[count: 1, size: {size}]"


class Reject(Overflow):
    """The new message is refused."""

    def admit(self, contents: Contents, message: Message) -> Message | None:
        return message if self.has_room(contents, 1, len(message.data)) else None

    def has_room(self, contents: Contents, count: int, size: int) -> bool:
        return contents.depth.fits(count, size) or (contents.expire() > 0 and contents.depth.fits(count, size))


class Ring(Overflow):
    """The oldest messages are given up; with priorities those of the lowest one, if it is not above the new message's.

    What has expired goes first.
    """

    def __init__(self, name: str, *, strict: bool, priorities: bool, keeps_large: bool) -> None:
        """Make the policy of a queue.

        Args:
            strict: the new message is refused if the oldest is acquired.
            priorities: the queue has levels of priority.
            keeps_large: a message above the limit is kept alone; otherwise it is refused.
        """
        super().__init__(name)
        self._strict = strict
        self._keeps_large = keeps_large
        self._priorities = priorities
        self._reported = False

    def admit(self, contents: Contents, message: Message) -> Message | None:
        contents.expire()
        depth, size = contents.depth, len(message.data)
        if depth.fits(1, size):
            return message
        if self._is_large(contents, size) and not self._keeps_large:
            return None
        if not depth.fits_within(1 - depth.count, size - depth.size):
            return None  # other queues need the memory: giving up all messages would not help
        if not self._reported:
            self._reported = True
            log.warning("queue %s is full: its receiver is too slow; dropping the oldest messages", self._name)
        while not depth.fits(1, size):
            oldest = contents.oldest()
            if oldest is None:
                break  # how large a message of a client may be is limited elsewhere
            if self._strict and oldest.state is ACQUIRED:
                break
            if self._priorities and oldest.message.priority > message.priority:
                break
            contents.give_up(oldest)
        return message if depth.fits(1, size) or (not depth.count and depth.fits_within(1, size)) else None

    def drops(self, contents: Contents, message: Message) -> bool:
        """See `Overflow`: one with a lower priority than all that wait is dropped."""
        if self._strict or not self._priorities or self._is_large(contents, len(message.data)):
            return False
        oldest = contents.order.oldest()
        return oldest is not None and oldest.message.priority > message.priority

    def refusal(self, contents: Contents, message: Message) -> str:
        limit, size = contents.depth.limits.size, len(message.data)
        if not self._strict and self._is_large(contents, size):
            return f"Message larger than configured maximum depth on {self._name}: size={size}, max-size={limit}"
        return super().refusal(contents, message)

    @staticmethod
    def _is_large(contents: Contents, size: int) -> bool:
        limit = contents.depth.limits.size
        return limit is not None and size > limit


class SelfDestruct(Overflow):
    """The queue is deleted."""

    def __init__(self, name: str, delete: Callable[[], None]) -> None:
        super().__init__(name)
        self._delete = delete

    def admit(self, contents: Contents, message: Message) -> Message | None:
        if not contents.depth.fits_within(1, len(message.data)):
            return None
        log.warning("queue %s has reached its limit, and is deleted", self._name)
        self._delete()
        return message


class FlowToDisk(Overflow):
    """The queue takes the message, and keeps it in its store."""

    def admit(self, contents: Contents, message: Message) -> Message | None:
        """See `Overflow`; a full disk has no room."""
        contents.expire()
        if contents.pager is None or contents.depth.fits(1, len(message.data)):
            return message
        return contents.pager(message)


def overflow_of(name: str, settings: QueueSettings, delete: Callable[[], None]) -> Overflow:
    """The object that carries out the policy of a queue; arguments as of `SelfDestruct`."""
    match settings.overflow:
        case OverflowPolicy.RING | OverflowPolicy.RING_STRICT:
            return Ring(
                name,
                strict=settings.overflow is OverflowPolicy.RING_STRICT,
                priorities=bool(settings.priorities),
                keeps_large=settings.keeps_large,
            )
        case OverflowPolicy.SELF_DESTRUCT:
            return SelfDestruct(name, delete)
        case OverflowPolicy.FLOW_TO_DISK:
            return FlowToDisk(name)
        case OverflowPolicy.REJECT:
            return Reject(name)
