"""`EmbeddedHostAgent`: a host agent in a thread of its own, for programs without an event loop."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from types import TracebackType
from typing import Self

from qmf._event_loop import run
from qmf.errors import CallerError
from qmf.hostagent.agent import HostAgent
from qmf.hostagent.settings import DEFAULT_INTERVAL, Settings


class EmbeddedHostAgent:
    """A host agent in a background thread, from `start` to `close`. Any thread may call; one at a time.

    Args:
        url: the broker's URL.
        interval: seconds from sample to sample.
        settings: all settings; `interval` is then ignored.

    Raises:
        SettingError: the interval is out of bounds.
    """

    def __init__(self, url: str, interval: float = DEFAULT_INTERVAL, *, settings: Settings | None = None) -> None:
        self._url = url
        self._settings = settings or Settings(interval=interval)
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    def start(self) -> str:
        """Take the first sample and connect.

        Returns:
            the agent's name, ``vendor:product:instance``. Its objects can be queried now.

        Raises:
            ConnectError: no connection; names the URL and the reason. The thread has ended.
            CallerError: the URL or the instance name is invalid, and the thread has ended; or it is started already.
        """
        if self._thread is not None:
            raise CallerError("the host agent is started already")
        started: Future[str] = Future()
        thread = threading.Thread(target=self._main, args=(started,), name="qmf-host-agent", daemon=True)
        thread.start()
        try:
            name = started.result()
        except Exception:
            thread.join()
            raise
        self._thread = thread
        return name

    def close(self) -> None:
        """Leave the bus and end the thread. A second call does nothing."""
        thread, self._thread = self._thread, None
        if thread is None or self._loop is None or self._stop is None:
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _main(self, started: Future[str]) -> None:
        run(self._serve(started))

    async def _serve(self, started: Future[str]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        try:
            agent = HostAgent(self._url, self._settings, wait=False)
            await agent.start()
        except BaseException as error:
            # `start` waits in another thread and raises it there.
            started.set_exception(error)
            if not isinstance(error, Exception):
                raise
            return
        started.set_result(agent.name)
        try:
            await self._stop.wait()
        finally:
            await agent.close()
