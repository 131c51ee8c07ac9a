"""What counters gained since the reading before.

A counter that went down was reset, with its device or by a wrap that psutil could not see: its gain is 0 once, and
counting goes on from the new value.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Generic, TypeVar

import attrs

K = TypeVar("K")


@attrs.frozen
class Step:
    """From one reading to the next.

    Attributes:
        seconds: time between the two, above 0.
        gains: what each counter gained, 0 or more, in the order of the counters.
    """

    seconds: float
    gains: tuple[float, ...]

    def rate(self, index: int) -> float:
        """Gain per second of one counter."""
        return self.gains[index] / self.seconds


class Changes(Generic[K]):
    """The last reading of each key."""

    def __init__(self) -> None:
        self._last: dict[K, tuple[float, tuple[float, ...]]] = {}

    def step(self, key: K, now: float, *counters: float) -> Step | None:
        """Remember a reading and compare it with the one before.

        Args:
            key: whose counters they are.
            now: when they were read, seconds on a monotonic clock.
            counters: the same ones in the same order each time.

        Returns:
            None for the first reading of a key, and when no time has passed.
        """
        before = self._last.get(key)
        self._last[key] = (now, counters)
        if before is None or now <= before[0]:
            return None
        gains = tuple(max(0.0, new - old) for new, old in zip(counters, before[1], strict=True))
        return Step(now - before[0], gains)

    def keep(self, keys: Collection[K]) -> None:
        """Forget every key that is not among `keys`."""
        for key in self._last.keys() - set(keys):
            del self._last[key]
