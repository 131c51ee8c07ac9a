"""Alerts: a queue that grows beyond a threshold is reported, once until it has drained again."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from qmf.broker.nodes.depth import Depth
from qmf.broker.nodes.entries import DepthObserver, Entry
from qmf.broker.nodes.settings import QueueSettings, Threshold

#: Per cent of a limit that was asked for at which a queue is reported, where no threshold was asked for; the default of
#: qpidd's `--default-event-threshold-ratio`.
DEFAULT_RATIO = 80


@attrs.frozen
class Crossing:
    """A threshold was crossed.

    Attributes:
        upward: the queue has grown; False when it has drained.
        repeats: the older event for queues that have grown is due as well: no threshold for draining was asked for.
        count, size: depth of the queue, in messages and bytes.
    """

    upward: bool
    repeats: bool
    count: int
    size: int


class Alerts(DepthObserver):
    """Watches the depth of a queue."""

    def __init__(self, up: Threshold, down: Threshold, depth: Depth, report: Callable[[Crossing], None]) -> None:
        """Make what watches the depth; nothing was reported yet.

        Args:
            up: depths at which the queue is reported.
            down: depths at which it has drained; half of `up` where they are missing, or not below those.
            report: called with what was crossed.
        """
        self._depth = depth
        self._report = report
        self._repeats = not down
        self._count_up, self._size_up = up.count or 0, up.size or 0
        self._count_down = _lower(down.count, self._count_up)
        self._size_down = _lower(down.size, self._size_up)
        self._count_low = self._size_low = True

    def is_quiet(self, count: int, size: int) -> bool:
        return (
            self._size_low
            and self._count_low
            and (not self._size_up or size < self._size_up)
            and (not self._count_up or count < self._count_up)
        )

    def on_enqueued(self, entry: Entry) -> None:  # noqa: ARG002
        count, size = self._depth.count, self._depth.size
        if self._size_low and self._size_up and size >= self._size_up:
            self._size_low = False
            self._report(Crossing(True, self._repeats, count, size))
        if self._count_low and self._count_up and count >= self._count_up:
            self._count_low = False
            self._report(Crossing(True, self._repeats, count, size))

    def on_dequeued(self, entry: Entry) -> None:
        count, size = self._depth.count, self._depth.size
        count, size = count - 1, size - entry.size
        if not self._size_low and size <= self._size_down:
            self._size_low = True
            self._report(Crossing(False, False, count, size))
        if not self._count_low and count <= self._count_down:
            self._count_low = True
            self._report(Crossing(False, False, count, size))


def thresholds(settings: QueueSettings, ratio: int = DEFAULT_RATIO) -> Threshold:
    """The depths at which a queue is reported; `ratio`: per cent of a limit that was asked for."""
    asked, limits = settings.arguments, settings.limits
    count, size = settings.alert_up.count, settings.alert_up.size
    if count is None and "qpid.max_count" in asked and limits.count is not None:
        count = limits.count * ratio // 100
    if size is None and "qpid.max_size" in asked and limits.size is not None:
        size = limits.size * ratio // 100
    return Threshold(count, size)


def _lower(down: int | None, up: int) -> int:
    return down if down and down < up else up // 2
