"""Producer flow control: senders get credit for what a queue can take, none when it is too long, until it drains."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from qmf.broker.nodes.counters import QueueCounters
from qmf.broker.nodes.depth import Depth
from qmf.broker.nodes.entries import DepthObserver, Entry
from qmf.broker.nodes.settings import QueueSettings, Threshold

log = logging.getLogger("qmf.broker")

#: Bytes that a message is taken to have before there was one.
_USUAL_SIZE = 65_536
_UNLIMITED = 1 << 31


class FlowSender(Protocol):
    """A sender all of whose messages go to the queue."""

    def credit(self) -> int:
        """Messages that it may send now; below 0 if it has sent more."""

    def take_credit(self, count: int) -> None:
        """Take back credit. Messages that are on their way come nevertheless."""

    def on_stopped(self) -> None:
        """It is to have no credit until the flow resumes."""


class FlowControl(DepthObserver):
    """Watches the depth of a queue, and shares what it can take among its senders.

    Attributes:
        stopped: senders are to get no more credit.
    """

    def __init__(self, name: str, settings: QueueSettings, counters: QueueCounters, depth: Depth) -> None:
        """Watch the depth of a queue without senders.

        Args:
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
        self._senders: dict[FlowSender, None] = {}
        self._waiting: list[Callable[[], None]] = []
        #: Number and bytes of messages in open transactions.
        self._held = self._held_size = 0

    def join(self, sender: FlowSender) -> None:
        """The credit of a sender counts from now on, and is taken back when the flow stops."""
        self._senders[sender] = None

    def leave(self, sender: FlowSender) -> None:
        """A sender is gone. Does nothing for one that has not joined."""
        self._senders.pop(sender, None)

    def hold(self, count: int, size: int) -> None:
        """Messages for the queue are in an open transaction or, with negative numbers, are not any more."""
        self._held += count
        self._held_size += size

    def free(self) -> int:
        """Messages that the queue can take besides those for which senders have credit; below 0 if they have more.

        For a limit of bytes, messages are taken to be as large as those before.
        """
        count, size = self._depth.count, self._depth.size
        promised = sum(max(0, sender.credit()) for sender in self._senders)
        free = _UNLIMITED
        if self._stop.count:
            free = self._stop.count - count - self._held - promised
        if self._stop.size:
            counters = self._counters
            mean = max(1, counters.enqueued_bytes // counters.enqueues) if counters.enqueues else _USUAL_SIZE
            free = min(free, (self._stop.size - size - self._held_size) // mean - promised)
        return free

    def share(self, sender: FlowSender, wanted: int) -> int:
        """Messages that a sender that has joined may send besides those for which it has credit.

        All senders get the same part of what is free. One without credit gets some of the others, who may not need
        theirs; if they have one message each, it gets one as well, though that is one more than the queue can take:
        otherwise senders that send nothing could keep it waiting.
        """
        if self.stopped:
            return 0
        free = self.free()
        if free > 0:
            return min(wanted, max(1, free // len(self._senders)))
        if sender.credit() > 0:
            return 0
        richest = max(self._senders, key=lambda one: one.credit())
        if (part := richest.credit() // 2) > 0:
            richest.take_credit(part)
        return min(wanted, max(1, part))

    def when_resumed(self, callback: Callable[[], None]) -> None:
        """Call back once, when senders may have credit again."""
        self._waiting.append(callback)

    def is_quiet(self, count: int, size: int) -> bool:
        return not self.stopped and not self._reaches_stop(count, size)

    def on_enqueued(self, entry: Entry) -> None:  # noqa: ARG002
        if self.stopped:
            return
        count, size = self._depth.count, self._depth.size
        if self._reaches_stop(count, size):
            self.stopped = True
            self._counters.flow_stops += 1
            log.info("queue %s holds %d messages, %d bytes: its senders get no more credit", self._name, count, size)
            for sender in self._senders:
                sender.on_stopped()

    def on_dequeued(self, entry: Entry) -> None:
        if not self.stopped:
            return
        count, size = self._depth.count, self._depth.size
        if _below(count - 1, self._resume.count) and _below(size - entry.size, self._resume.size):
            self.resume()

    def resume(self) -> None:
        """Senders may have credit again, because the queue has drained, or is deleted."""
        self.stopped = False
        log.info("queue %s has drained: its senders get credit again", self._name)
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback()

    def _reaches_stop(self, count: int, size: int) -> bool:
        stop = self._stop
        return bool(stop.count and count >= stop.count) or bool(stop.size and size >= stop.size)


def _below(value: int, threshold: int | None) -> bool:
    return not threshold or value < threshold
