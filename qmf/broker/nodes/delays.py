"""Calls that are to happen later; and the messages of a queue whose time has not come, which are not available yet."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from qmf.broker.nodes.entries import Entry

#: Seconds until a timer looks again, at most: loops need not take longer ones.
_LONGEST_SLEEP = 86_400.0


class Cancellable(Protocol):
    """A call that is to happen later."""

    def cancel(self) -> None:
        """Do not call."""


#: As the method of asyncio's loops: seconds, and what to call.
CallLater = Callable[[float, Callable[[], None]], Cancellable]


class Delays:
    """The entries of one queue that were never available, because their time has not come.

    One that was taken (acquired) is still known here, so that it waits again when it is put back.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        call_later: CallLater | None,
        on_due: Callable[[Sequence[Entry]], None],
    ) -> None:
        """Make the delayed entries of a queue, which has none yet.

        Args:
            clock: returns seconds; the times of the messages are those of this clock.
            call_later: calls a function after some seconds; None where `check` is called instead.
            on_due: called with entries whose time has come, the first ones first. They are not known here any more.
        """
        self._clock = clock
        self._call_later = call_later
        self._on_due = on_due
        #: Those that wait, in the order of their times.
        self._waiting: list[Entry] = []
        self._known: set[Entry] = set()
        self._timer: Cancellable | None = None
        self._timer_at = 0.0

    def __len__(self) -> int:
        """Number of entries that wait."""
        return len(self._waiting)

    def __iter__(self) -> Iterator[Entry]:
        """The entries that wait, in the order of their times."""
        return iter(self._waiting)

    def __contains__(self, entry: object) -> bool:
        """True for an entry that was never available, whether it waits or was taken."""
        return entry in self._known

    def add(self, entry: Entry) -> None:
        """An entry waits, for the first time or again."""
        self._known.add(entry)
        insort(self._waiting, entry, key=_order)
        self._sleep()

    def take(self, entry: Entry) -> None:
        """An entry does not wait for now."""
        index = bisect_left(self._waiting, _order(entry), key=_order)
        if index < len(self._waiting) and self._waiting[index] is entry:
            del self._waiting[index]

    def forget(self, entry: Entry) -> None:
        """An entry has left the queue."""
        self.take(entry)
        self._known.discard(entry)

    def check(self) -> None:
        """Report the entries whose time has come."""
        now = self._clock()
        count = bisect_right(self._waiting, now, key=_time)
        due = self._waiting[:count]
        del self._waiting[:count]
        self._known.difference_update(due)
        self._sleep()
        if due:
            self._on_due(due)

    def close(self) -> None:
        """Report nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._call_later = None

    def _sleep(self) -> None:
        if self._call_later is None or not self._waiting:
            return
        at = _time(self._waiting[0])
        if self._timer is not None:
            if self._timer_at <= at:
                return
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._call_later(min(max(0.0, at - self._clock()), _LONGEST_SLEEP), self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self.check()


def _time(entry: Entry) -> float:
    return entry.message.deliver_at or 0.0


def _order(entry: Entry) -> tuple[float, int]:
    return _time(entry), entry.position
