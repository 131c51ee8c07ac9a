"""When queues are deleted by themselves: after their last use, once they are empty, or some time later."""

from __future__ import annotations

from collections.abc import Callable

from qmf.broker.nodes.delays import CallLater, Cancellable
from qmf.broker.nodes.entries import Entry, EntryObserver
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.settings import Lifetime


class Lifetimes:
    """Deletes the queues of a broker."""

    def __init__(self, delete: Callable[[Queue], None], call_later: CallLater | None) -> None:
        """Make what deletes the queues of a broker when their time has come.

        Args:
            delete: deletes a queue.
            call_later: None to delete all queues at once.
        """
        self._delete = delete
        self._call_later = call_later
        self._timers: dict[Queue, Cancellable] = {}

    def watch(self, queue: Queue) -> None:
        """A queue was created."""
        settings = queue.settings
        if settings.auto_delete and settings.lifetime in (Lifetime.EMPTY, Lifetime.UNUSED_AND_EMPTY):
            queue.contents.observers.add(_EmptyWatch(self, queue))

    def check(self, queue: Queue) -> None:
        """Something of a queue has changed: delete it now, or later, if it is to be deleted."""
        if not _is_due(queue) or queue in self._timers:
            return
        if self._call_later is None or not queue.settings.delete_delay:
            self._delete(queue)
            return
        self._timers[queue] = self._call_later(queue.settings.delete_delay, lambda: self._on_time(queue))

    def check_soon(self, queue: Queue) -> None:
        """As `check`, once the queue has done what it is doing."""
        if self._call_later is None:
            return
        if queue not in self._timers:
            delay = queue.settings.delete_delay
            self._timers[queue] = self._call_later(delay, lambda: self._on_time(queue))

    def forget(self, queue: Queue) -> None:
        """A queue is deleted."""
        if (timer := self._timers.pop(queue, None)) is not None:
            timer.cancel()

    def close(self) -> None:
        """Delete nothing any more."""
        for queue in list(self._timers):
            self.forget(queue)

    def _on_time(self, queue: Queue) -> None:
        del self._timers[queue]
        # A use meanwhile starts the time again at its end.
        if _is_due(queue):
            self._delete(queue)


def _is_due(queue: Queue) -> bool:
    """True if nothing keeps a queue that deletes itself."""
    settings = queue.settings
    if not settings.auto_delete:
        return False
    used = queue.owner is not None or queue.delivery.consumers or queue.delivery.browsers
    unused, empty = not used, not queue.contents.depth.count
    match settings.lifetime:
        case Lifetime.UNUSED:
            return unused
        case Lifetime.EMPTY:
            return empty
        case Lifetime.UNUSED_AND_EMPTY:
            return unused and empty
        case Lifetime.ON_CLOSE:
            return False  # it is deleted with its link


class _EmptyWatch(EntryObserver):
    """Looks when a queue becomes empty."""

    def __init__(self, lifetimes: Lifetimes, queue: Queue) -> None:
        self._lifetimes = lifetimes
        self._queue = queue

    def on_dequeued(self, entry: Entry) -> None:  # noqa: ARG002
        if self._queue.contents.depth.count == 1:  # this one
            self._lifetimes.check_soon(self._queue)
