"""What the broker counts: what came, what went, and above all what was lost and why."""

from __future__ import annotations

import attrs


@attrs.define
class Counters:
    """Totals since the broker started. An agent of the broker itself counts like a client.

    Attributes:
        connections: connections that were accepted.
        failures: of those, connections that broke the protocol or never got as far as to open.
        received: messages that clients sent.
        delivered: messages handed to receivers; one that goes to three counts three.
        discarded: messages for a node that does not exist, or that no binding matched.
        dropped: messages that a full subscription queue lost.
        expired: messages whose time to live ended in a queue.
        rejected: messages that were refused to their sender.
    """

    connections: int = 0
    failures: int = 0
    received: int = 0
    delivered: int = 0
    discarded: int = 0
    dropped: int = 0
    expired: int = 0
    rejected: int = 0


@attrs.define
class QueueCounts:
    """Totals of a queue since it was made. What every message counts is kept as few numbers as possible.

    Attributes:
        passed: messages that went straight to a receiver.
        stored: messages that had to wait.
        fetched: times that a receiver was handed a message that had waited.
        enqueued_bytes: sizes of the messages that it took.
        by_default, by_name: of those, messages that the default exchange brought, or that were sent to the queue
            itself. The others came by a binding.
        releases: times that a message came back from a receiver.
        expired: messages whose time to live ended.
        dropped: messages that went to make room.
        refused: messages that were not taken, since it was full.
        rejected: messages that a receiver did not want.
        purged: messages that somebody threw away.
        abandoned: messages that were lost with it.
    """

    passed: int = 0
    stored: int = 0
    fetched: int = 0
    enqueued_bytes: int = 0
    by_default: int = 0
    by_name: int = 0
    releases: int = 0
    expired: int = 0
    dropped: int = 0
    refused: int = 0
    rejected: int = 0
    purged: int = 0
    abandoned: int = 0

    @property
    def enqueues(self) -> int:
        """Messages that it took."""
        return self.passed + self.stored

    @property
    def acquires(self) -> int:
        """Times that a receiver was handed a message."""
        return self.passed + self.fetched

    def add(self, other: QueueCounts) -> None:
        """Count what another queue counted."""
        for name in _QUEUE_COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


_QUEUE_COUNTS = tuple(field.name for field in attrs.fields(QueueCounts))


@attrs.define
class ExchangeCounts:
    """Totals of an exchange and, in the names that end so, the messages' sizes together.

    Attributes:
        received: messages that were sent to it.
        discarded: of those, messages that no queue wanted, or had room for.
        copies: messages that it put on queues beyond the first of each. Most go to one, and need not be counted again.
    """

    received: int = 0
    received_bytes: int = 0
    discarded: int = 0
    discarded_bytes: int = 0
    copies: int = 0
    copies_bytes: int = 0

    @property
    def routed(self) -> int:
        """Messages that it put on queues; one that went to three counts three."""
        return self.received - self.discarded + self.copies

    @property
    def routed_bytes(self) -> int:
        """Sizes of those."""
        return self.received_bytes - self.discarded_bytes + self.copies_bytes
