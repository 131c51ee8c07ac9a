"""Threads for handlers: results, errors, and how many there are."""

from __future__ import annotations

import asyncio
import functools
import threading

import pytest

from qmf.messaging.aio.consuming.handler_threads import HandlerThreads


def raising(error: BaseException) -> None:
    raise error


def test_results_and_errors_come_back() -> None:
    async def check() -> None:
        threads = HandlerThreads(1)
        assert await threads.call(threading.get_ident) != threading.get_ident()
        for error, kind in (
            (ValueError("x"), ValueError),
            (SystemExit(2), SystemExit),
            (StopIteration(), RuntimeError),
        ):
            with pytest.raises(kind):
                await threads.call(functools.partial(raising, error))
        threads.stop()

    asyncio.run(check())


def test_there_are_as_many_as_are_needed() -> None:
    async def check() -> None:
        threads, together = HandlerThreads(3), threading.Barrier(3)
        one = {await threads.call(threading.get_ident) for _ in range(5)}
        await asyncio.gather(*(threads.call(lambda: together.wait(20)) for _ in range(3)))
        assert len(one) == 1
        threads.stop()

    asyncio.run(check())


def test_a_call_that_is_cancelled_goes_on() -> None:
    async def check() -> None:
        threads, begun, go_on, done = HandlerThreads(1), threading.Event(), threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            go_on.wait(20)
            done.set()

        call = asyncio.ensure_future(threads.call(work))
        await asyncio.to_thread(begun.wait, 20)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        go_on.set()
        assert await asyncio.to_thread(done.wait, 20)
        threads.stop()

    asyncio.run(check())
