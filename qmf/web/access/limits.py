"""Limits per client: requests per second, open streams. Belongs to the event loop; no I/O.

What is remembered of clients is bounded: clients that have been quiet are forgotten first.
"""

from __future__ import annotations

import collections
import contextlib
import math
import time
from collections.abc import Callable, Iterator

import attrs

from qmf.web.problems import Problem

#: Clients that are remembered.
MAX_CLIENTS = 10_000

Clock = Callable[[], float]


@attrs.define
class _Bucket:
    level: float
    at: float


class RateLimit:
    """Allows so many events per second for each client, and a burst (a token bucket)."""

    def __init__(self, rate: float, burst: float, clock: Clock = time.monotonic) -> None:
        """Make a limit, of which nothing is used yet.

        Args:
            rate: per second; 0 for no limit.
            burst: that may come at once.
            clock: the time in seconds.
        """
        self._rate = rate
        self._burst = max(burst, 1)
        self._clock = clock
        self._buckets: collections.OrderedDict[str, _Bucket] = collections.OrderedDict()

    def take(self, client: str) -> float:
        """Count an event; returns 0, or the seconds after which the next one would be allowed: this one is not."""
        if self._rate <= 0:
            return 0.0
        wait = self.wait(client)
        if not wait:
            self._buckets[client].level -= 1
        return wait

    def wait(self, client: str) -> float:
        """Seconds until an event would be allowed; 0 for now. Counts nothing."""
        if self._rate <= 0:
            return 0.0
        now = self._clock()
        bucket = self._buckets.get(client)
        if bucket is None:
            bucket = self._buckets[client] = _Bucket(float(self._burst), now)
            if len(self._buckets) > MAX_CLIENTS:
                self._buckets.popitem(last=False)
        else:
            bucket.level = min(self._burst, bucket.level + (now - bucket.at) * self._rate)
            bucket.at = now
            self._buckets.move_to_end(client)
        return 0.0 if bucket.level >= 1 else (1 - bucket.level) / self._rate


class CountLimit:
    """Allows each client so many of something at a time."""

    def __init__(self, limit: int, what: str) -> None:
        """Make a limit, of which nothing is used yet.

        Args:
            limit: at a time.
            what: in the plural, for people.
        """
        self._limit = limit
        self._what = what
        self._open: collections.Counter[str] = collections.Counter()

    @property
    def open(self) -> int:
        """How many there are now, of all clients."""
        return self._open.total()

    def acquire(self, client: str) -> Callable[[], None]:
        """Count one until the returned function is called; calling it again does nothing.

        Raises:
            Problem: 429, the client has too many.
        """
        if self._open[client] >= self._limit:
            raise Problem(429, f"{client} has {self._limit} {self._what} already", headers={"Retry-After": "10"})
        self._open[client] += 1
        released = False

        def release() -> None:
            nonlocal released
            if not released:
                released = True
                self._open[client] -= 1
                if not self._open[client]:
                    del self._open[client]

        return release

    @contextlib.contextmanager
    def one(self, client: str) -> Iterator[None]:
        """Count one until the end of the block; errors as of `acquire`."""
        release = self.acquire(client)
        try:
            yield
        finally:
            release()


def retry_after(seconds: float) -> dict[str, str]:
    """The header that tells when to try again."""
    return {"Retry-After": str(max(1, math.ceil(seconds)))}
