"""Background tasks and their owner."""

from __future__ import annotations

import asyncio

from support.waiting import until

from qmf._background_tasks import BackgroundTasks


async def test_tasks_run_until_their_owner_cancels_them() -> None:
    tasks = BackgroundTasks()
    done: list[str] = []

    async def work(name: str, seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
        finally:
            done.append(name)

    short, endless = tasks.spawn(work("short", 0)), tasks.spawn(work("long", 3600))
    await until(short.done)
    assert done == ["short"]
    await tasks.cancel()
    assert endless.cancelled()
    assert done == ["short", "long"]


async def test_waiting_ends_with_the_last_task_and_ignores_errors() -> None:
    tasks = BackgroundTasks()

    async def fail() -> None:
        raise ValueError("broken")

    failed = tasks.spawn(fail())
    kept = asyncio.get_running_loop().create_task(asyncio.sleep(0.001))
    tasks.keep(kept)
    await tasks.wait()
    assert kept.done()
    assert isinstance(failed.exception(), ValueError)
