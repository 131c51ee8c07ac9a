"""Rates of counters between one reading and the next. No clock: times are arguments.

A counter that is smaller than before has wrapped around (only in types of 32 bits and less, and only from near the
maximum), or was reset, e.g. because its agent was restarted: then it grew from zero to its value. If it fell by less
than nine tenths, it was decreased: its rate is negative.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from qmf.schema import QmfType
from qmf.views.units import is_number

#: A counter wrapped around if it was in the last quarter of its range and is in the first one now.
_WRAP_PART = 4
#: Bits of the widest counter that wraps around in practice.
_WRAP_BITS = 32
#: A counter was reset if it fell to a tenth or less.
_RESET_PART = 10


def counter_growth(kind: QmfType | None, before: int | float, now: int | float) -> int | float:
    """By how much a counter grew; negative if it was decreased. One of unknown type (None) doesn't wrap around."""
    if now >= before:
        return now - before
    maximum = None if kind is None else kind.maximum
    size = (maximum or 0) + 1
    narrow = maximum is not None and size <= 2**_WRAP_BITS
    if narrow and before >= size - size // _WRAP_PART and now < size // _WRAP_PART:
        return size - before + now
    return now if now * _RESET_PART <= before else now - before


def growth_rate(
    kind: QmfType | None, before: int | float, now: int | float, seconds: float, *, restarted: bool = False
) -> float:
    """The growth of a counter per second, see `counter_growth`.

    Args:
        kind: its type, or None.
        before, now: its values.
        seconds: between them, more than 0.
        restarted: its agent was: the counter began again at 0.
    """
    return (now if restarted else counter_growth(kind, before, now)) / seconds


def growth_rates(points: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """The growth of a counter of unknown type per second between points, each a time in seconds and a value."""
    last: tuple[float, float] | None = None
    for at, value in points:
        if last is not None and at > last[0]:
            yield at, growth_rate(None, last[1], value, at - last[0])
        last = at, value


class RateTracker:
    """Rates of many counters."""

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[float, int | float, float | None, int]] = {}

    def update(self, key: Hashable, kind: QmfType, value: object, at: float, epoch: int = 0) -> float | None:
        """Record a value; returns its rate per second, or None before there are two values.

        Args:
            key: of the counter.
            value: the current value; anything but a number forgets the counter.
            at: seconds, of a monotonic clock.
            epoch: epoch of the agent; if it is different from before, the counter started from zero.
        """
        if not is_number(value):
            self._last.pop(key, None)
            return None
        last = self._last.get(key)
        rate: float | None = None
        if last is not None:
            seconds = at - last[0]
            if seconds <= 0:
                return last[2]
            rate = growth_rate(kind, last[1], value, seconds, restarted=epoch != last[3])
        self._last[key] = (at, value, rate, epoch)
        return rate
