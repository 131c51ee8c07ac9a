"""The clock of an agent: all times and waits go through a `Clock`, so that tests can control the time."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """The source of the time of an agent."""

    def time_ns(self) -> int:
        """Nanoseconds since 1970."""

    def monotonic(self) -> float:
        """Seconds of a monotonic clock."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`; if that is not positive, after a turn of the loop."""


class SystemClock:
    """The clock of the machine and of the running event loop."""

    def time_ns(self) -> int:
        """Nanoseconds since 1970."""
        return time.time_ns()

    def monotonic(self) -> float:
        """Seconds of a monotonic clock."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        await asyncio.sleep(max(0.0, seconds))
