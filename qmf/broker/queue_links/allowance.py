"""How many messages a link may take now, by its limits of count and rate. No I/O."""

from __future__ import annotations

from collections.abc import Callable

#: Seconds for which unused messages of a rate are kept: what may come at once after a pause.
_BURST = 0.1


class Allowance:
    """The limits of a link.

    Attributes:
        passed: messages that count against the limit of the whole.
    """

    def __init__(self, max_count: int, max_rate: int, clock: Callable[[], float], passed: int = 0) -> None:
        """Make the limits of a link.

        Args:
            max_count: messages in all; 0 for no limit.
            max_rate: messages in a second; 0 for no limit.
            clock: any, in seconds.
            passed: messages of earlier times.
        """
        self.passed = passed
        self._max_count = max_count
        self._rate = max_rate
        self._clock = clock
        self._burst = max(1.0, max_rate * _BURST)
        self._tokens = 1.0
        self._at = clock()

    @property
    def is_used_up(self) -> bool:
        """No message may be taken any more."""
        return 0 < self._max_count <= self.passed

    def room(self, under_way: int) -> int:
        """Messages that may be taken now, `under_way` of them were taken already and not passed on yet."""
        most = 1 << 30 if not self._max_count else self._max_count - self.passed - under_way
        if self._rate:
            self._fill()
            most = min(most, int(self._tokens))
        return max(most, 0)

    def take(self, count: int) -> None:
        """Messages are taken."""
        if self._rate:
            self._tokens -= count

    def wait(self) -> float:
        """Seconds until the rate allows the next message, as it was at the last `room`; 0 if it did.

        It does not look at the clock again: who was told that there is no room would not be told to wait for it either,
        if the next message were allowed in between.
        """
        if not self._rate:
            return 0.0
        return max(0.0, (1.0 - self._tokens) / self._rate)

    def _fill(self) -> None:
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
