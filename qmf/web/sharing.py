"""One piece of work for all who ask for the same at the same time."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import attrs

from qmf._background_tasks import BackgroundTasks
from qmf.web.problems import Problem

T = TypeVar("T")

#: Seconds after which who was refused may try again.
_RETRY_AFTER = 2


@attrs.define(eq=False)
class _Run(Generic[T]):
    begun: float | None = None
    task: asyncio.Task[T] | None = None


class SharedWork(Generic[T]):
    """Results that are shared: of each kind of work one run goes on at a time, and at most one waits to be next.

    Nobody gets a result that is older than allowed: one of a run that began before the request, and not a moment ago.
    Belongs to the event loop.
    """

    def __init__(self, *, max_age: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without results.

        Args:
            max_age: seconds that a run may have begun before the request; 0: it must begin after it.
            clock: the time in seconds.
        """
        self._max_age = max_age
        self._clock = clock
        self._runs: dict[Hashable, _Run[T]] = {}
        self._tasks = BackgroundTasks()

    def __len__(self) -> int:
        return len(self._runs)

    async def get(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """The result of some work; errors as of `work`. Cancelling it ends nobody else's waiting.

        Args:
            key: which work it is.
            work: does it.
        """
        run = self._runs.get(key)
        if run is None or (run.begun is not None and self._clock() - run.begun >= self._max_age):
            before = None if run is None else run.task
            run = self._runs[key] = _Run()
            run.task = self._tasks.spawn(self._run(key, run, before, work))
            run.task.add_done_callback(_look_at)
        assert run.task is not None
        return await asyncio.shield(run.task)

    async def close(self) -> None:
        """Cancel what goes on."""
        await self._tasks.cancel()
        self._runs.clear()

    async def _run(
        self, key: Hashable, run: _Run[T], before: asyncio.Task[T] | None, work: Callable[[], Awaitable[T]]
    ) -> T:
        if before is not None:
            await asyncio.wait({before})
        else:
            await asyncio.sleep(0)  # whoever asks in the same moment shares it
        run.begun = self._clock()
        try:
            found = await work()
        except BaseException:
            self._drop(key, run)
            raise
        asyncio.get_running_loop().call_later(max(0.0, run.begun + self._max_age - self._clock()), self._drop, key, run)
        return found

    def _drop(self, key: Hashable, run: _Run[T]) -> None:
        if self._runs.get(key) is run:
            del self._runs[key]


def _look_at(task: asyncio.Task[T]) -> None:
    """Errors are raised for those who wait; where nobody waits any more, nobody has to know."""
    if not task.cancelled():
        task.exception()


class WorkLimit:
    """Allows so much work that needs time and memory at once; more waits for its turn, and too much is refused."""

    def __init__(self, running: int, waiting: int) -> None:
        """Make a limit, of which nothing is used yet.

        Args:
            running: at a time.
            waiting: for their turn.
        """
        self._turns = asyncio.Semaphore(running)
        self._left = running + waiting

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn, which lasts until the end of the block.

        Raises:
            Problem: 503, too much waits already.
        """
        if not self._left:
            raise Problem(503, "the server has too much to do", headers={"Retry-After": str(_RETRY_AFTER)})
        self._left -= 1
        try:
            async with self._turns:
                yield
        finally:
            self._left += 1
