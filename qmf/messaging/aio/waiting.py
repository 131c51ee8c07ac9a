"""Waiting for a condition on the loop's thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

#: Seconds without any answer after which closing a sender or receiver gives up, if the caller sets no limit.
CLOSE_PATIENCE = 10.0


class Condition:
    """Wakes up coroutines that wait for a predicate; for one event loop."""

    def __init__(self) -> None:
        self._waiters: list[asyncio.Future[None]] = []

    def notify(self) -> None:
        """Something changed: every predicate is evaluated again."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait_for(self, predicate: Callable[[], bool], deadline: float | None = None) -> bool:
        """Wait until the predicate is true.

        Args:
            predicate: may raise, which ends the wait.
            deadline: time of the loop at which to give up; None to wait for ever.

        Returns:
            False if the deadline came first.
        """
        loop = asyncio.get_running_loop()
        while not predicate():
            waiter: asyncio.Future[None] = loop.create_future()
            self._waiters.append(waiter)
            timer = None if deadline is None else loop.call_at(deadline, _give_up, waiter)
            try:
                await waiter
            except TimeoutError:
                return predicate()
            finally:
                if timer is not None:
                    timer.cancel()
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
        return True


def _give_up(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())


def deadline_of(timeout: float | None) -> float | None:
    """The time of the running loop after `timeout` seconds; None for no limit."""
    return None if timeout is None else asyncio.get_running_loop().time() + max(0.0, timeout)
