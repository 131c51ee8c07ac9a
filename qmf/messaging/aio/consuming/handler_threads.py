"""Threads for handlers that are plain functions; daemons, so that one that hangs does not keep a program running."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any


class HandlerThreads:
    """Calls functions on up to so many threads, which are started when they are needed."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._calls: SimpleQueue[tuple[Callable[[], object], asyncio.Future[Any]] | None] = SimpleQueue()
        self._started = 0
        self._busy = 0

    async def call(self, function: Callable[[], object]) -> Any:
        """Call a function on a thread; returns its result, or raises its error. When this is cancelled, it goes on."""
        if self._busy >= self._started < self._count:
            self._started += 1
            threading.Thread(target=self._run, name=f"qmf-handler-{self._started}", daemon=True).start()
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._calls.put((function, answer))
        self._busy += 1
        try:
            return await answer
        finally:
            self._busy -= 1

    def stop(self) -> None:
        """End the threads, each after the call that it is in."""
        for _ in range(self._started):
            self._calls.put(None)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            function, answer = call
            loop = answer.get_loop()
            try:
                result, error = function(), None
            except BaseException as raised:  # noqa: BLE001 - raised again by `call`
                result, error = None, raised
            try:
                loop.call_soon_threadsafe(_resolve, answer, result, error)
            except RuntimeError:  # the loop is closed: nobody waits any more
                return


def _resolve(answer: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(result)
    elif isinstance(error, StopIteration):  # a future cannot have it
        answer.set_exception(RuntimeError("the handler raised StopIteration"))
    else:
        answer.set_exception(error)
