"""One transaction: the messages sent and the outcomes given in it, until it is committed or rolled back.

Knows nodes and messages, not links: what happens to a delivery at the end is decided by its link (`Acquisition`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Protocol

import attrs

from qmf.broker.nodes.depth import Depth
from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.flow_control import FlowControl
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.recorder import NotStored, Recorder
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.operations.grants import Publication


class Acquisition(Protocol):
    """A delivery with an outcome that takes effect with a transaction."""

    def record(self, recorder: Recorder) -> None:
        """The outcome will take effect when the recorder's unit is stored."""

    def commit(self) -> None:
        """The outcome takes effect."""

    def roll_back(self) -> None:
        """The delivery is as it was before the outcome."""


class TransactionFull(Exception):
    """A transaction cannot be committed, because there is no room for its messages; the text says where."""


@attrs.define(eq=False)
class Transaction:
    """A transaction that has not ended.

    Attributes:
        id: chosen by the broker; unique in its connection.
        sent: messages, with the nodes that they were sent to; each was granted when it came.
        acquisitions: deliveries with an outcome.
        size: bytes of the messages.
        refused: why a message was not taken: the transaction can only be rolled back; empty if all were.
        held: flow control of queues for which messages are, with their number and bytes.
    """

    id: bytes
    sent: list[Publication] = attrs.field(factory=list)
    acquisitions: list[Acquisition] = attrs.field(factory=list)
    size: int = 0
    refused: str = ""
    held: dict[FlowControl, tuple[int, int]] = attrs.field(factory=dict)

    def add(self, publication: Publication, depth: Depth | None) -> None:
        """Keep a message until the transaction ends; `depth` counts it, if all messages are limited."""
        size = len(publication.message.data)
        self.sent.append(publication)
        self.size += size
        if depth is not None:
            depth.add(1, size)

    def hold(self, flows: Iterable[FlowControl], size: int) -> None:
        """A message of so many bytes is for queues with flow control: it takes room there until `let_go`."""
        for flow in flows:
            flow.hold(1, size)
            count, held = self.held.get(flow, (0, 0))
            self.held[flow] = count + 1, held + size

    def let_go(self) -> None:
        """The transaction has ended: its messages are in their queues, or gone. A second call does nothing."""
        for flow, (count, size) in self.held.items():
            flow.hold(-count, -size)
        self.held.clear()

    def release(self, depth: Depth | None) -> None:
        """The transaction ends: its messages are in their queues, or gone. To be called once, before that."""
        if depth is not None:
            depth.add(-len(self.sent), -self.size)

    def commit(self, registry: NodeRegistry, on_committed: Callable[[NotStored | None], None]) -> None:
        """Let everything take effect: at once, or when it is on the disk, if durable queues are concerned.

        Args:
            on_committed: called with None when that has happened, with the reason if it could not be stored: nothing
                has taken effect then.

        Raises:
            TransactionFull: a queue has no room; nothing has taken effect, and `on_committed` is not called.
        """
        counts: Counter[Queue] = Counter()
        sizes: Counter[Queue] = Counter()
        for publication in self.sent:
            for queue in publication.targets():
                counts[queue] += 1
                sizes[queue] += len(publication.message.data)
        for queue, count in counts.items():
            if not queue.has_room(count, sizes[queue]):
                raise TransactionFull(f"queue {queue.name!r} is full")
        depth = registry.depth
        limited = [queue for queue in counts if queue.contents.depth.within is not None]
        if depth is not None and not depth.fits(
            sum(counts[queue] for queue in limited), sum(sizes[queue] for queue in limited)
        ):
            raise TransactionFull("the queues of the broker are full")
        recorder = registry.recorder
        if recorder is None:
            self._acknowledge()
            self._publish()
            on_committed(None)
            return
        recorder.flush()
        held = self._publish_held(counts)
        for acquisition in self.acquisitions:
            acquisition.record(recorder)

        def finish(error: NotStored | None) -> None:
            if error is None:
                self._acknowledge()
                for queue, entries in held.items():
                    queue.delivery.offer(entries)
            else:
                self.roll_back()
            on_committed(error)

        if not recorder.close_unit(finish):
            finish(None)

    def _acknowledge(self) -> None:
        for acquisition in self.acquisitions:
            acquisition.commit()

    def _publish(self) -> None:
        for publication in self.sent:
            for queue in publication.targets():
                queue.counters.transactional_enqueues += 1
                queue.counters.transactional_enqueued_bytes += len(publication.message.data)
            publication.publish()

    def _publish_held(self, queues: Iterable[Queue]) -> dict[Queue, list[Entry]]:
        """Publish the messages; they are in their queues, and not available yet."""
        held: dict[Queue, list[Entry]] = {queue: [] for queue in queues}
        for queue, entries in held.items():
            queue.held = entries
        try:
            self._publish()
        finally:
            for queue in held:
                queue.held = None
        return held

    def roll_back(self) -> None:
        """Let nothing take effect."""
        for acquisition in self.acquisitions:
            acquisition.roll_back()


@attrs.frozen(eq=False)
class TakenEntry:
    """The `Acquisition` of an entry that is acquired, and leaves its queue when the transaction is committed.

    Attributes:
        queue: where it is.
        entry: which.
        give_back: called with it when the transaction is rolled back; None to put it back into its place.
    """

    queue: Queue
    entry: Entry
    give_back: Callable[[Entry], None] | None = None

    def record(self, recorder: Recorder) -> None:
        recorder.acknowledge(self.entry)

    def commit(self) -> None:
        self.queue.delivery.accept(self.entry)

    def roll_back(self) -> None:
        if self.give_back is None:
            self.queue.delivery.put_back([self.entry])
        else:
            self.give_back(self.entry)
