"""How coroutines and threads wait for a condition of the loop's thread."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import pytest
from support.waiting import WAIT_LIMIT

from qmf._loop_thread import LoopThread
from qmf.messaging.core.waiting import Condition, deadline_of


async def test_each_wait_ends_with_its_own_deadline() -> None:
    condition = Condition()
    never = asyncio.create_task(condition.wait_for(lambda: False))
    late = asyncio.create_task(condition.wait_for(lambda: False, deadline_of(WAIT_LIMIT * 100)))
    early = [asyncio.create_task(condition.wait_for(lambda: False, deadline_of(each))) for each in (0.02, 0.01, 0)]
    assert await asyncio.gather(*early) == [False, False, False]
    assert not late.done()
    assert not never.done()
    # The deadline of one that waits is kept while others come and go.
    assert not await condition.wait_for(lambda: False, deadline_of(0.01))
    for task in (late, never):
        task.cancel()
    await asyncio.gather(late, never, return_exceptions=True)
    condition.cancel_timer()


async def test_a_deadline_after_an_earlier_one_that_nobody_waits_for() -> None:
    condition = Condition()
    ready = False

    def is_ready() -> bool:
        return ready

    first = asyncio.create_task(condition.wait_for(is_ready, deadline_of(0.01)))
    await asyncio.sleep(0)
    ready = True
    condition.notify()
    assert await first
    ready = False
    assert not await condition.wait_for(is_ready, deadline_of(0.05))


def test_deadlines_on_one_loop_after_the_other() -> None:
    condition = Condition()

    async def leave_timer() -> None:
        task = asyncio.create_task(condition.wait_for(lambda: False, deadline_of(0.05)))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def wait() -> bool:
        return await condition.wait_for(lambda: False, deadline_of(0.1))

    asyncio.run(leave_timer())
    assert not asyncio.run(wait())


@pytest.mark.parametrize("fetching", [True, False])
def test_threads_wait_for_what_the_loop_notifies(fetching: bool) -> None:
    loop, condition, values, seen = LoopThread("test"), Condition(), list[int](), list[int]()
    waiting = threading.Semaphore(0)

    def take() -> bool:
        waiting.release()
        if not values:
            return False
        seen.append(values.pop())
        return True

    wait = partial(condition.wait_on_thread, fetching=fetching)
    threads = [threading.Thread(target=wait, args=(take, WAIT_LIMIT)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert waiting.acquire(timeout=WAIT_LIMIT)

    async def put(value: int) -> None:
        values.append(value)
        (condition.notify if fetching else condition.notify_answered)()

    for value in range(3):
        loop.run(put(value))
    for thread in threads:
        thread.join(WAIT_LIMIT)
    loop.stop()
    assert sorted(seen) == [0, 1, 2]


def test_a_thread_gives_up_or_gets_the_error_of_its_predicate() -> None:
    condition = Condition()
    assert not condition.wait_on_thread(lambda: False, 0)
    assert not condition.wait_on_thread(lambda: False, 0.01)
    assert condition.wait_on_thread(lambda: True, None)
    answers = iter([False])  # then it raises, at the latest when the thread looks again
    with pytest.raises(StopIteration):
        condition.wait_on_thread(lambda: next(answers), None)
    condition.notify()  # nobody waits any more


async def test_answers_wake_only_those_that_wait_for_answers() -> None:
    condition = Condition()
    looked: list[str] = []

    def look(name: str) -> bool:
        looked.append(name)
        return looked.count(name) > 1

    answered = asyncio.create_task(condition.wait_for(lambda: look("answered")))
    fetching = asyncio.create_task(condition.wait_for(lambda: look("fetching"), fetching=True))
    await asyncio.sleep(0)
    condition.notify_answered()
    assert await answered
    assert looked == ["answered", "fetching", "answered"]
    condition.notify()
    assert await fetching


async def test_a_deadline_of_one_that_waits_for_messages() -> None:
    condition = Condition()
    assert not await condition.wait_for(lambda: False, deadline_of(0.01), fetching=True)
    condition.cancel_timer()
