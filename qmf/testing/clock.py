"""A clock that stands still until a test lets time pass."""

from __future__ import annotations

import asyncio

from qmf.testing.waiting import until

#: A moment in November 2023.
BEGIN = 1_700_000_000_000_000_000


class ManualClock:
    """A `qmf.agent.Clock` for tests: ``Agent(bus, ..., clock=clock)``. Belongs to one event loop.

    Attributes:
        now: nanoseconds since 1970.
    """

    def __init__(self, now: int = BEGIN) -> None:
        self.now = now
        self._sleepers: list[tuple[int, asyncio.Future[None]]] = []

    def time_ns(self) -> int:
        """Nanoseconds since 1970."""
        return self.now

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return self.now / 1e9

    async def sleep(self, seconds: float) -> None:
        """Return once `advance` has let so many seconds pass."""
        future = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.now + int(seconds * 1e9), future))
        await future

    async def advance(self, seconds: float) -> None:
        """Wait until somebody waits for the time, then let it pass in one step.

        What wakes up by it has not done its work yet when this returns: wait for what it shall do.

        Raises:
            AssertionError: nobody waits for the time within five seconds.
        """
        await self.idle()
        self.now += int(seconds * 1e9)
        for due, future in self._sleepers:
            if due <= self.now and not future.done():
                future.set_result(None)
        self._sleepers = [item for item in self._sleepers if not item[1].done()]

    async def idle(self) -> None:
        """Return when somebody waits for the time to go on.

        Raises:
            AssertionError: nobody does within five seconds.
        """
        await until(lambda: self._sleepers, "nobody waits for the clock")
