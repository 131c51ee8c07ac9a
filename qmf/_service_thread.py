"""A service on an event loop in a thread of its own, for programs without an event loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

from qmf._closable import Closable
from qmf._event_loop import run
from qmf.errors import CallerError


class Service(Protocol):
    """What a thread can run."""

    async def close(self) -> None:
        """Stop, also when it did not start; a second call does nothing."""


T = TypeVar("T")
TService = TypeVar("TService", bound=Service)


class ServiceThread(Closable, Generic[TService]):
    """A running service in a daemon thread.

    Attributes:
        service: the service; it belongs to the event loop's thread.
    """

    service: TService

    def __init__(
        self, name: str, make: Callable[[], TService], start: Callable[[TService], Coroutine[Any, Any, None]]
    ) -> None:
        """Start the thread, and the service in it.

        Args:
            name: of the thread.
            make: makes the service; called in the thread.
            start: starts the service.

        Raises:
            Exception: the error of `make` or `start`. The thread has ended then.
        """
        self._make = make
        self._start = start
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._started: concurrent.futures.Future[TService] = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()
        try:
            self.service = self._started.result()
        except BaseException:
            # An error of the thread, which ends with it, or an interrupt in the caller, which then gets no service.
            self.close()
            raise

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the service's loop, and wait for its result."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """Close the service and end the thread; returns when both are done. A second call does nothing.

        Raises:
            CallerError: called in the thread itself, e.g. by a method of an agent's object.
        """
        if threading.current_thread() is self._thread:
            raise CallerError("a service in a thread cannot be closed by that thread")
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the thread has ended
                loop.call_soon_threadsafe(stop.set)
        self._thread.join()

    def _main(self) -> None:
        try:
            run(self._serve())
        except BaseException as error:  # noqa: BLE001  # raised again in the thread that waits for the start
            if not self._started.done():
                self._started.set_exception(error)

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        service = self._make()
        start = asyncio.ensure_future(self._start(service))
        stopped = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait((start, stopped), return_when=asyncio.FIRST_COMPLETED)
            if start.done():
                start.result()
                self._started.set_result(service)
                await stopped
        finally:
            start.cancel()
            stopped.cancel()
            await asyncio.gather(start, return_exceptions=True)
            await service.close()
