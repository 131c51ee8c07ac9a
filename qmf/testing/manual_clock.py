"""A clock whose time only a test advances."""

from __future__ import annotations

import asyncio

from qmf.testing.waiting import until

#: The initial time, in November 2023.
START = 1_700_000_000_000_000_000


class ManualClock:
    """A `qmf.agent.Clock` for tests: ``Agent(bus, ..., clock=clock)``. Belongs to one event loop.

    Attributes:
        now: nanoseconds since 1970.
    """

    def __init__(self, now: int = START) -> None:
        self.now = now
        self._sleepers: list[tuple[int, asyncio.Future[None]]] = []

    def time_ns(self) -> int:
        """Nanoseconds since 1970."""
        return self.now

    def monotonic(self) -> float:
        """Seconds that never decrease."""
        return self.now / 1e9

    async def sleep(self, seconds: float) -> None:
        """Return once `advance` has advanced the time by so many seconds."""
        future = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.now + int(seconds * 1e9), future))
        await future

    async def advance(self, seconds: float) -> None:
        """Wait until a task sleeps, then advance the time in one step.

        The tasks that wake up have not continued yet when this returns: wait for their effects.

        Raises:
            AssertionError: no task sleeps within five seconds.
        """
        await self.idle()
        self.now += int(seconds * 1e9)
        for due, future in self._sleepers:
            if due <= self.now and not future.done():
                future.set_result(None)
        self._sleepers = [item for item in self._sleepers if not item[1].done()]

    async def idle(self) -> None:
        """Wait until a task sleeps.

        Raises:
            AssertionError: none does within five seconds.
        """
        await until(lambda: self._sleepers, "a task that sleeps")
