"""Producer flow control: senders to a queue that grows too long get no more credit, until it has drained."""

from __future__ import annotations

import logging
from collections.abc import Callable

from qmf.broker.nodes.counters import QueueCounters
from qmf.broker.nodes.entries import DepthObserver, Entry
from qmf.broker.nodes.settings import QueueSettings, Threshold

log = logging.getLogger("qmf.broker")


class FlowControl(DepthObserver):
    """Watches the depth of a queue.

    Attributes:
        stopped: senders are to get no more credit.
    """

    def __init__(
        self, name: str, settings: QueueSettings, counters: QueueCounters, depth: Callable[[], tuple[int, int]]
    ) -> None:
        """Args:

        name: of the queue.
        counters: of the queue.
        depth: returns the number and the bytes of its messages.
        settings: of the queue; without a depth at which the flow resumes, it is that at which it stops.
        """
        self.stopped = False
        self._name = name
        self._counters = counters
        self._depth = depth
        self._stop = settings.flow_stop
        self._resume = Threshold(
            settings.flow_resume.count or settings.flow_stop.count, settings.flow_resume.size or settings.flow_stop.size
        )
        self._waiting: list[Callable[[], None]] = []

    def when_resumed(self, callback: Callable[[], None]) -> None:
        """Call back once, when senders may have credit again."""
        self._waiting.append(callback)

    def is_quiet(self, count: int, size: int) -> bool:
        """See `DepthObserver`."""
        return not self.stopped and not _above(count, self._stop.count) and not _above(size, self._stop.size)

    def on_enqueued(self, entry: Entry) -> None:  # noqa: ARG002
        """See `EntryObserver`."""
        if self.stopped:
            return
        count, size = self._depth()
        if _above(count, self._stop.count) or _above(size, self._stop.size):
            self.stopped = True
            self._counters.flow_stops += 1
            log.info("queue %s holds %d messages, %d bytes: its senders get no more credit", self._name, count, size)

    def on_dequeued(self, entry: Entry) -> None:
        """See `EntryObserver`."""
        if not self.stopped:
            return
        count, size = self._depth()
        if _below(count - 1, self._resume.count) and _below(size - entry.size, self._resume.size):
            self.resume()

    def resume(self) -> None:
        """Senders may have credit again, because the queue has drained, or is deleted."""
        self.stopped = False
        log.info("queue %s has drained: its senders get credit again", self._name)
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback()


def _above(value: int, threshold: int | None) -> bool:
    return bool(threshold) and value > (threshold or 0)


def _below(value: int, threshold: int | None) -> bool:
    return not threshold or value < threshold
