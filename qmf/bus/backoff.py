"""Waits between attempts to connect: exponential back-off with jitter."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import attrs

#: Seconds. The first wait is short enough for the restart of a broker; the longest one does not burden a broker that
#: has problems, and is still bearable for an operator. Qpid's own clients wait 1 to 60 s.
FIRST = 1.0
FACTOR = 2.0
LIMIT = 30.0
#: Random part of each wait. It is all of it, so that the agents of a site come back over the whole time of a step and
#: not at its end: what a broker has to do at one moment is least then.
JITTER = 1.0


@attrs.frozen
class Backoff:
    """Waits between attempts.

    Attributes:
        first: seconds before the first attempt.
        factor: from each wait to the next.
        limit: longest wait in seconds.
        jitter: part of each wait, 0 to 1, that is random.
        random: returns a number from 0 to below 1; tests use a constant.
    """

    first: float = FIRST
    factor: float = FACTOR
    limit: float = LIMIT
    jitter: float = JITTER
    random: Callable[[], float] = random.Random().random  # its own, so that no program's seed is disturbed

    def delays(self) -> Iterator[float]:
        """Seconds to wait before each attempt, without end."""
        wait = min(self.first, self.limit)
        while True:
            yield wait * (1 - self.jitter * self.random())
            wait = min(wait * self.factor, self.limit)
