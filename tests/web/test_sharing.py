"""Work that is shared, and how much of it there may be."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from qmf.web.problems import Problem
from qmf.web.sharing import SharedWork, WorkLimit


class Work:
    """Work that ends when the test says so; its results are numbers."""

    def __init__(self) -> None:
        self.begun = 0
        self.may_end = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self) -> int:
        self.begun += 1
        number = self.begun
        await self.may_end.wait()
        if self.error is not None:
            raise self.error
        return number


async def turns(count: int = 5) -> None:
    """Let others have their turn."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_who_asks_while_it_is_done_gets_the_next_result() -> None:
    work = Work()
    shared: SharedWork[int] = SharedWork()
    first = [asyncio.create_task(shared.get("a", work)) for _ in range(10)]
    await turns()
    later = [asyncio.create_task(shared.get("a", work)) for _ in range(10)]
    other = asyncio.create_task(shared.get("b", work))
    await turns()
    # One of a kind at a time.
    assert work.begun == 2
    work.may_end.set()
    assert set(await asyncio.gather(*first)) == {1}
    assert set(await asyncio.gather(*later)) == {3}
    assert await other == 2
    await turns()
    assert len(shared) == 0


async def test_a_result_that_is_young_enough() -> None:
    now = 100.0
    work = Work()
    work.may_end.set()
    shared: SharedWork[int] = SharedWork(max_age=1.0, clock=lambda: now)
    assert [await shared.get("a", work) for _ in range(5)] == [1] * 5
    now += 1.0
    assert await shared.get("a", work) == 2
    await shared.close()
    assert len(shared) == 0


async def test_an_error_is_for_all_who_wait_and_not_kept() -> None:
    work = Work()
    work.error = ValueError("no")
    work.may_end.set()
    shared: SharedWork[int] = SharedWork(max_age=60)
    found = await asyncio.gather(*(shared.get("a", work) for _ in range(3)), return_exceptions=True)
    assert [str(error) for error in found] == ["no"] * 3
    work.error = None
    assert await shared.get("a", work) == 2
    await shared.close()


async def test_who_goes_away_takes_nothing_from_others() -> None:
    work = Work()
    shared: SharedWork[int] = SharedWork()
    gone, stays = (asyncio.create_task(shared.get("a", work)) for _ in range(2))
    await turns()
    gone.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await gone
    work.may_end.set()
    assert await stays == 1


async def test_turns() -> None:
    limit = WorkLimit(2, 1)
    may_end = asyncio.Event()
    running = 0

    async def work() -> int:
        nonlocal running
        async with limit.turn():
            running += 1
            await may_end.wait()
            return running

    tasks = [asyncio.create_task(work()) for _ in range(3)]
    await turns()
    assert running == 2
    with pytest.raises(Problem, match="503") as refused:
        await work()
    assert refused.value.headers == {"Retry-After": "2"}
    may_end.set()
    await asyncio.gather(*tasks)
    assert await work() == 4
