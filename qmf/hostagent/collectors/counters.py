"""By how much counters increased since the previous reading.

A counter that decreased was reset, with its device or by an overflow that psutil did not see: its increase is 0 once,
and counting continues from the new value.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Generic, TypeVar

import attrs

K = TypeVar("K")


@attrs.frozen
class CounterChange:
    """The change between two readings.

    Attributes:
        seconds: time between the two, above 0.
        increases: increase of each counter, 0 or more, in the order of the counters.
    """

    seconds: float
    increases: tuple[float, ...]

    def rate(self, index: int) -> float:
        """Increase per second of one counter."""
        return self.increases[index] / self.seconds


class CounterChanges(Generic[K]):
    """Compares each reading of a key with the previous one."""

    def __init__(self) -> None:
        self._last: dict[K, tuple[float, tuple[float, ...]]] = {}

    def record(self, key: K, now: float, *counters: float) -> CounterChange | None:
        """Store a reading and compare it with the previous one.

        Args:
            key: owner of the counters.
            now: time of the reading, seconds of a monotonic clock.
            counters: their values, in the same order each time.

        Returns:
            the change; None for the first reading of a key, and when no time has passed.
        """
        before = self._last.get(key)
        self._last[key] = (now, counters)
        if before is None or now <= before[0]:
            return None
        increases = tuple(max(0.0, new - old) for new, old in zip(counters, before[1], strict=True))
        return CounterChange(now - before[0], increases)

    def keep(self, keys: Collection[K]) -> None:
        """Forget every key that is not in `keys`."""
        for key in self._last.keys() - set(keys):
            del self._last[key]
