"""How fast counters grow, and what changed, from one look at an object to the next. No clock: times are arguments.

A counter that is smaller than before went over the end of its type (only types of 32 bits and less do, and only from
near the end), or was reset, as when its agent was started anew: then it grew from zero to what it is. Where it fell by
less than nine tenths it was taken down: its rate is negative.
"""

from __future__ import annotations

from collections.abc import Hashable

from qmf.schema import QmfType

#: A counter that was in the last quarter of its range and is in the first one now went over the end.
_PART = 4
#: Bits of the widest counter that goes over its end in practice.
_WRAPS = 32
#: One that fell to a tenth or less was reset.
_RESET = 10


def counter_growth(kind: QmfType, before: int | float, now: int | float) -> int | float:
    """By how much a counter grew; negative where it was taken down."""
    if now >= before:
        return now - before
    size = (kind.maximum or 0) + 1
    small = kind.maximum is not None and size <= 2**_WRAPS
    if small and before >= size - size // _PART and now < size // _PART:
        return size - before + now
    return now if now * _RESET <= before else now - before


class RateTracker:
    """Rates of many counters."""

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[float, int | float, float | None, int]] = {}

    def take(self, key: Hashable, kind: QmfType, value: object, at: float, epoch: int = 0) -> float | None:
        """Take note of a value; its rate per second, or None before there are two.

        Args:
            key: of the counter.
            kind: its type.
            value: now; anything but a number forgets the counter.
            at: seconds, of any clock that never goes back.
            epoch: start of the agent; another one than before means that the counter began anew.
        """
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._last.pop(key, None)
            return None
        last = self._last.get(key)
        rate: float | None = None
        if last is not None:
            seconds = at - last[0]
            if seconds <= 0:
                return last[2]
            grown = value if epoch != last[3] else counter_growth(kind, last[1], value)
            rate = grown / seconds
        self._last[key] = (at, value, rate, epoch)
        return rate


class ChangeTracker:
    """Which values are not what they were at the look before."""

    def __init__(self) -> None:
        self._last: dict[Hashable, object] = {}

    def take(self, key: Hashable, value: object) -> bool:
        """Take note of a value; True when it was another one before."""
        missing = object()
        before = self._last.get(key, missing)
        self._last[key] = value
        return before is not missing and before != value
