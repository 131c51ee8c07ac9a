"""The broker in a background thread, for programs without an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

from qmf._event_loop import run
from qmf.broker.nodes.counters import BrokerCounters
from qmf.broker.server import Broker
from qmf.errors import CallerError


class EmbeddedBroker:
    """A `Broker` on a loop of its own, in a daemon thread. Methods may be called from any thread."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0, **options: Any) -> None:
        """Args:

        host, port, options: as of `Broker`; by default any free port. With an empty host it does not listen, and
            clients come by `connect` only.
        """
        self._broker = Broker(host, port, **options)
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    @property
    def url(self) -> str:
        """URL that clients connect to; known once started."""
        return self._broker.url

    @property
    def port(self) -> int:
        """TCP port; with port 0 the actual one, once started."""
        return self._broker.port

    @property
    def counters(self) -> BrokerCounters:
        """Totals of the broker; read them, but don't write."""
        return self._broker.counters

    def start(self) -> None:
        """Listen; returns when clients can connect.

        Raises:
            ListenError: as `Broker.start`.
        """
        if self._thread is not None:
            return
        started: Future[None] = Future()
        self._thread = threading.Thread(target=lambda: run(self._serve(started)), name="qmf-broker", daemon=True)
        self._thread.start()
        try:
            started.result()
        except BaseException:
            self.close()
            raise

    def connect(self) -> socket.socket:
        """A socket that is connected to the broker, without its port: one of a pair within this process.

        Raises:
            CallerError: the broker is not started.
        """
        if self._thread is None or self._loop is None:
            raise CallerError("the broker is not started")
        near, far = socket.socketpair()
        asyncio.run_coroutine_threadsafe(self._broker.serve(far), self._loop).result()
        return near

    def close(self) -> None:
        """Close the broker and end its thread. A second call does nothing."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        if self._loop is not None and self._stop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: starting had failed
                self._loop.call_soon_threadsafe(self._stop.set)
        thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _serve(self, started: Future[None]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        try:
            await self._broker.start()
        except BaseException as error:  # noqa: BLE001 - raised again by `start`, in the thread that called it
            started.set_exception(error)
            return
        started.set_result(None)
        try:
            await self._stop.wait()
        finally:
            await self._broker.close()
