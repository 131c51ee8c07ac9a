"""Entries that the broker itself has taken from a queue, as a part of a transaction: they leave with it, or stay."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.recorder import Recorder


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
