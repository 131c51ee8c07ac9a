"""Waiting times between attempts to connect again."""

from __future__ import annotations

from collections.abc import Iterator


class ReconnectDelays:
    """Waiting times in seconds: the shortest, doubled until the longest, then the longest again.

    It can be iterated several times, each time from the beginning.
    """

    def __init__(self, shortest: float, longest: float, repeat: bool | int = True) -> None:
        """Begin with the shortest delay.

        Args:
            shortest, longest: the first and the longest waiting time.
            repeat: how often the longest follows once it is reached; True for without end.

        Raises:
            ValueError: the times are not positive, or the shortest is the longer one.
        """
        if not 0 < shortest <= longest:
            raise ValueError(f"waiting times must be positive and in order, not {shortest!r} and {longest!r}")
        self.shortest = shortest
        self.longest = longest
        self.repeat = repeat

    def __iter__(self) -> Iterator[float]:
        delay = self.shortest
        while delay < self.longest:
            yield delay
            delay *= 2
        yield self.longest
        left = None if self.repeat is True else int(self.repeat)
        while left is None or left > 0:
            yield self.longest
            left = None if left is None else left - 1
