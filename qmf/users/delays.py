"""Delays after wrong passwords. Belongs to the event loop; no I/O. What is remembered is bounded."""

from __future__ import annotations

import collections
import time
from collections.abc import Callable

#: Pairs of user and address that are remembered: those that failed last.
MAX_CLIENTS = 10_000

#: Seconds that a wrong password has to wait for at most; after which it is forgotten.
MAX_DELAY, FORGET = 60.0, 900.0

Clock = Callable[[], float]


class FailureDelays:
    """Makes whoever was wrong wait, longer each time, before the next try counts.

    Failures belong to a user and an address together: nobody can keep a user out from elsewhere, nor the other users of
    an address. Nothing is ever locked: the longest wait is a minute.
    """

    def __init__(self, free: int, clock: Clock = time.monotonic) -> None:
        """Begin without failures.

        Args:
            free: failures before there is a wait; then it is a second, and twice as long with each more.
            clock: the time in seconds.
        """
        self._free = free
        self._clock = clock
        #: How many failures, and when the next try is allowed, the one that failed last at the end.
        self._failures: collections.OrderedDict[tuple[str, str], tuple[int, float]] = collections.OrderedDict()

    def wait(self, user: str, address: str) -> float:
        """Seconds until the next try is allowed; 0 for now."""
        _, until = self._failures.get((user, address), (0, 0.0))
        return max(0.0, until - self._clock())

    def on_failure(self, user: str, address: str) -> None:
        """A try was wrong."""
        now = self._clock()
        while self._failures and now - next(iter(self._failures.values()))[1] > FORGET:
            self._failures.popitem(last=False)
        count = self._failures.pop((user, address), (0, 0.0))[0] + 1
        delay = 0.0 if count < self._free else min(2.0 ** (count - self._free), MAX_DELAY)
        self._failures[user, address] = min(count, self._free + 10), now + delay
        if len(self._failures) > MAX_CLIENTS:
            self._failures.popitem(last=False)

    def on_success(self, user: str, address: str) -> None:
        """A try was right: those before are forgotten."""
        self._failures.pop((user, address), None)
