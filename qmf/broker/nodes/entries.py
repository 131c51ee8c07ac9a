"""Entries: messages in queues. A message that was routed to several queues is an entry in each."""

from __future__ import annotations

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
        state: see there.
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
