"""The background thread that runs the asynchronous core, and the door to it for blocking calls.

Only this module knows both worlds. The thread is a daemon: a program that forgets to close its session still ends.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from qmf.errors import CallerError

T = TypeVar("T")


class LoopThread:
    """One event loop on one thread, started by the first `run`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    @property
    def running(self) -> bool:
        """True between the first `run` and `stop`."""
        return self._thread is not None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for its result.

        May be called from any thread but the loop's own. When the wait is interrupted, as by Ctrl-C, the coroutine is
        cancelled, and the loop stays usable.

        Raises:
            CallerError: called on the loop's thread, where it would wait for itself; or the session was closed.
            Exception: whatever the coroutine raises.
        """
        if threading.current_thread() is self._thread:
            work.close()
            raise CallerError(
                "blocking call on the session's event loop; call it from a Console callback or a thread of yours, "
                "or use qmf.console.aio in coroutines"
            )
        future = asyncio.run_coroutine_threadsafe(work, self._started())
        try:
            return future.result()
        except concurrent.futures.CancelledError as error:
            raise CallerError("the session was closed during the call") from error
        except BaseException:
            future.cancel()  # has no effect when it was the coroutine that raised
            raise

    def stop(self) -> None:
        """Cancel everything on the loop and end the thread. A later `run` starts a new one."""
        with self._lock:
            thread, self._thread = self._thread, None
            loop, stop = self._loop, self._stop
        if thread is None or loop is None or stop is None:
            return
        loop.call_soon_threadsafe(stop.set)
        if thread is not threading.current_thread():
            thread.join()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._thread is None:
                ready = threading.Event()
                self._thread = threading.Thread(target=self._main, args=(ready,), name=self._name, daemon=True)
                self._thread.start()
                ready.wait()
            assert self._loop is not None
            return self._loop

    def _main(self, ready: threading.Event) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._serve(ready))

    async def _serve(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        stop = self._stop = asyncio.Event()
        ready.set()
        await stop.wait()
