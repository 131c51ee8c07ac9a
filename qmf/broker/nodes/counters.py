"""Counters of the broker, of its queues and of its exchanges: messages received, delivered and lost, by reason."""

from __future__ import annotations

import attrs

from qmf.broker.nodes.entries import Entry, EntryObserver


@attrs.define
class BrokerCounters:
    """Totals since the broker started. The broker's own agent is counted like a client.

    Attributes:
        connections: connections that were accepted.
        failures: of those, connections that violated the protocol or ended before they were open.
        received: messages that clients sent.
        delivered: messages delivered to receivers; a message for three receivers counts three times.
        discarded: messages to a node that does not exist, or that matched no binding.
        dropped: messages that full ring queues, such as those of subscriptions, dropped.
        expired: messages whose time to live ended in a queue.
        rejected: messages that were refused to their sender.
        abandoned: messages that were lost with a queue that was deleted.
        abandoned_to_alternate: messages of deleted queues that went to an alternate exchange.
    """

    connections: int = 0
    failures: int = 0
    received: int = 0
    delivered: int = 0
    discarded: int = 0
    dropped: int = 0
    expired: int = 0
    rejected: int = 0
    abandoned: int = 0
    abandoned_to_alternate: int = 0


@attrs.define
class QueueCounters:
    """Totals of a queue since it was created. As few as possible are updated for every message.

    Attributes:
        enqueues, enqueued_bytes: messages that were enqueued, and their sizes together.
        durable_enqueues, durable_enqueued_bytes: of those, messages that are to be kept over a restart, in a durable
            queue.
        durable_dequeues, durable_dequeued_bytes: such messages that have left the queue.
        transactional_enqueues, transactional_enqueued_bytes: messages that were enqueued by a transaction.
        transactional_dequeues, transactional_dequeued_bytes: messages that were accepted in a transaction.
        paged, paged_bytes: messages whose contents were put on the disk.
        paged_dequeues, paged_dequeued_bytes: such messages that have left the queue.
        acquires: deliveries to receivers, and messages taken by the broker.
        by_name: of the enqueued messages, those sent to the queue itself.
        releases: times that a receiver gave a message back.
        expired: messages whose time to live ended.
        dropped: messages dropped to make room for newer ones.
        replaced: messages of a last value queue that a newer one has replaced.
        refused: messages that were not enqueued because the queue was full.
        rejected: messages that a receiver rejected, or failed to process too often.
        purged: messages removed by a purge.
        rerouted: messages that were sent to an exchange again.
        flow_stops: times that senders got no more credit.
    """

    enqueues: int = 0
    enqueued_bytes: int = 0
    durable_enqueues: int = 0
    durable_enqueued_bytes: int = 0
    durable_dequeues: int = 0
    durable_dequeued_bytes: int = 0
    transactional_enqueues: int = 0
    transactional_enqueued_bytes: int = 0
    transactional_dequeues: int = 0
    transactional_dequeued_bytes: int = 0
    paged: int = 0
    paged_bytes: int = 0
    paged_dequeues: int = 0
    paged_dequeued_bytes: int = 0
    acquires: int = 0
    by_name: int = 0
    releases: int = 0
    expired: int = 0
    dropped: int = 0
    replaced: int = 0
    refused: int = 0
    rejected: int = 0
    purged: int = 0
    rerouted: int = 0
    flow_stops: int = 0

    def add(self, other: QueueCounters) -> None:
        """Add the totals of another queue."""
        for name in _QUEUE_COUNTERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


_QUEUE_COUNTERS = tuple(field.name for field in attrs.fields(QueueCounters))


class DurableCounts(EntryObserver):
    """Counts the durable messages of a durable queue."""

    def __init__(self, counters: QueueCounters) -> None:
        self._counters = counters

    def on_enqueued(self, entry: Entry) -> None:
        if entry.message.durable:
            self._counters.durable_enqueues += 1
            self._counters.durable_enqueued_bytes += entry.size

    def on_changed(self, entry: Entry, growth: int) -> None:
        if entry.message.durable:
            self._counters.durable_enqueued_bytes += growth

    def on_dequeued(self, entry: Entry) -> None:
        if entry.message.durable:
            self._counters.durable_dequeues += 1
            self._counters.durable_dequeued_bytes += entry.size


class PageCounts(EntryObserver):
    """Counts the messages of a queue whose contents are on the disk."""

    def __init__(self, counters: QueueCounters) -> None:
        self._counters = counters
        #: Those in the queue: a failed delivery can bring the contents of a message back.
        self._paged: set[Entry] = set()

    def on_enqueued(self, entry: Entry) -> None:
        if entry.message.paged:
            self._paged.add(entry)
            self._counters.paged += 1
            self._counters.paged_bytes += entry.size

    def on_changed(self, entry: Entry, growth: int) -> None:
        if entry in self._paged:
            self._counters.paged_bytes += growth

    def on_dequeued(self, entry: Entry) -> None:
        if entry in self._paged:
            self._paged.remove(entry)
            self._counters.paged_dequeues += 1
            self._counters.paged_dequeued_bytes += entry.size


@attrs.define
class ExchangeCounters:
    """Totals of an exchange; the names in `_bytes` are sums of the messages' sizes.

    Attributes:
        received: messages that were sent to the exchange.
        discarded: of those, messages that matched no queue, or only full ones.
        copies: for messages that were routed to several queues: the number of queues beyond the first. Most messages
            go to one queue, and need no further counting.
    """

    received: int = 0
    received_bytes: int = 0
    discarded: int = 0
    discarded_bytes: int = 0
    copies: int = 0
    copies_bytes: int = 0

    @property
    def routed(self) -> int:
        """Messages put on queues; a message for three queues counts three times."""
        return self.received - self.discarded + self.copies

    @property
    def routed_bytes(self) -> int:
        """Sizes of those."""
        return self.received_bytes - self.discarded_bytes + self.copies_bytes
