"""When to try again: exponential back-off with jitter."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import attrs

#: The first wait is short enough to ride out the restart of a broker, the limit long enough not to disturb one that
#: is in trouble, and short enough that an operator need not wait for it. qpid's own clients go from 1 to 60 s.
FIRST = 0.5
FACTOR = 2.0
LIMIT = 30.0
#: Part of each wait that is left to chance, so that the agents of a whole site do not return in the same moment.
JITTER = 0.5


@attrs.frozen
class Backoff:
    """Waits between attempts.

    Attributes:
        first: seconds before the first attempt.
        factor: each wait is so many times the one before.
        limit: longest wait in seconds.
        jitter: part of each wait, 0 to 1, that is random.
        chance: returns a number from 0 to below 1; tests give a constant.
    """

    first: float = FIRST
    factor: float = FACTOR
    limit: float = LIMIT
    jitter: float = JITTER
    chance: Callable[[], float] = random.random

    def delays(self) -> Iterator[float]:
        """Seconds to wait before each attempt, without end."""
        wait = min(self.first, self.limit)
        while True:
            yield wait * (1 - self.jitter * self.chance())
            wait = min(wait * self.factor, self.limit)
