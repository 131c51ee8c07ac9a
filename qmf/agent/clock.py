"""The time, as an argument: an agent reads and waits through a `Clock`, so that tests can hold it still."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Where an agent takes the time from."""

    def time_ns(self) -> int:
        """Nanoseconds since 1970."""

    def monotonic(self) -> float:
        """Seconds that only grow."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`, or as soon as other tasks had their turn if that is not positive."""


class SystemClock:
    """The clock of the machine and of the running event loop."""

    def time_ns(self) -> int:
        """Nanoseconds since 1970."""
        return time.time_ns()

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        await asyncio.sleep(max(0.0, seconds))
