"""Entries: messages in queues, and what observes them. A message in several queues is an entry in each."""

from __future__ import annotations

import abc
import enum

from qmf.broker.nodes.message import Message


class EntryState(enum.Enum):
    """Where an entry is in its life."""

    AVAILABLE = "available"  #: it waits for a consumer
    DELAYED = "delayed"  #: it waits for the time from which on it may be delivered
    ACQUIRED = "acquired"  #: a consumer has it, and may give it back
    GONE = "gone"  #: it has left the queue


AVAILABLE, DELAYED, ACQUIRED, GONE = EntryState


class Entry:
    """A message in a queue. Compared by identity. Only its queue and the queue's parts change it.

    Attributes:
        message: the message. A last value queue replaces it in place.
        size: bytes of the message when it was enqueued, and of the annotations that it was given since.
        position: number of the entry in its queue; later ones have higher numbers.
        linked: it lies in the deque of a `FifoOrder`, available or not.
        acquirer: the consumer that has acquired it; None for an entry that was taken by the broker itself.
        record: identifies the entry in the journal of a durable queue; None where it is not recorded.
    """

    __slots__ = ("acquirer", "linked", "message", "position", "record", "size", "state")

    def __init__(self, message: Message, position: int, size: int) -> None:
        self.message = message
        self.size = size
        self.position = position
        self.state = AVAILABLE
        self.linked = False
        self.acquirer: object | None = None
        self.record: int | None = None


class EntryObserver:
    """Notified of what happens to the entries of a queue. A plain queue has no observers, and pays nothing for them.

    The methods must not block or change the queue; these do nothing.
    """

    def on_enqueued(self, entry: Entry) -> None:
        """An entry is in the queue."""

    def on_acquired(self, entry: Entry) -> None:
        """A consumer has acquired an entry; its `acquirer` is that consumer."""

    def on_released(self, entry: Entry) -> None:
        """An entry that was acquired is available again; its `message` may have one more failed delivery."""

    def on_changed(self, entry: Entry, growth: int) -> None:
        """An entry that is acquired has another message, with annotations; its size has grown by so many bytes."""

    def on_dequeued(self, entry: Entry) -> None:
        """An entry has left the queue. Its state still is the one that it had in the queue."""


class DepthObserver(EntryObserver, abc.ABC):
    """One that looks at the depth of its queue alone, and need not be notified of each entry."""

    @abc.abstractmethod
    def is_quiet(self, count: int, size: int) -> bool:
        """True if it does nothing while the depth is at most this, in messages and bytes, and grows or shrinks."""

    def on_changed(self, entry: Entry, growth: int) -> None:  # noqa: ARG002
        self.on_enqueued(entry)


class Observers:
    """The observers of one queue.

    Attributes:
        all: in the order in which they were added.
        need_each: some have to be notified of each entry, whatever the depth is.
        need_acquired: some have to be notified of each entry that is acquired, before it is delivered.
    """

    def __init__(self) -> None:
        self.all: tuple[EntryObserver, ...] = ()
        self.need_each = self.need_acquired = False

    def add(self, observer: EntryObserver) -> None:
        """Notify an observer from now on."""
        self._set((*self.all, observer))

    def remove(self, observer: EntryObserver) -> None:
        """Notify an observer no more. Does nothing for one that is not notified."""
        self._set(tuple(one for one in self.all if one is not observer))

    def are_quiet(self, count: int, size: int) -> bool:
        """True if none has to be notified while the depth is at most this."""
        return not self.all or (
            not self.need_each and all(one.is_quiet(count, size) for one in self.all if isinstance(one, DepthObserver))
        )

    def _set(self, observers: tuple[EntryObserver, ...]) -> None:
        self.all = observers
        self.need_each = not all(isinstance(one, DepthObserver) for one in observers)
        self.need_acquired = any(type(one).on_acquired is not EntryObserver.on_acquired for one in observers)
