"""A TCP proxy on a thread of its own, whose connections a test cuts."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import Future
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class Proxy:
    """Passes bytes between its clients and a broker until they are cut off.

    Attributes:
        cuts: number of connections that were cut.
        served: number of connections that were made to the broker.
    """

    def __init__(self, url: str) -> None:
        """`url` is that of the broker."""
        self.cuts = self.served = 0
        self.redirect(url)
        self._port = 0
        self._refusing = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._connections: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where clients connect to."""
        return f"amqp://127.0.0.1:{self._port}"

    def redirect(self, url: str) -> None:
        """Connect new clients to this broker."""
        parts = urlsplit(url)
        self._target = (parts.hostname or "127.0.0.1", parts.port or 5672)

    def __enter__(self) -> Self:
        started: Future[None] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(started)), daemon=True)
        self._thread.start()
        started.result(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._loop is not None
        assert self._stop is not None
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def cut(self) -> None:
        """End all connections at once, without what is on the way."""
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(self._abort(), self._loop).result(10)

    def refuse(self, refusing: bool) -> None:
        """Cut new connections at once, or serve them again."""
        self._refusing = refusing

    async def _abort(self) -> None:
        self.cuts += bool(self._writers)
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, started: Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._client, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        started.set_result(None)
        async with server:
            await self._stop.wait()
            await self._abort()
            # One that is still connecting to the broker has nothing to cut: it is ended by its task.
            connections = list(self._connections)
            for connection in connections:
                connection.cancel()
            await asyncio.gather(*connections, return_exceptions=True)
            await asyncio.sleep(0)  # closed sockets are let go of in the loop's next round

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.transport.abort()
            return
        ends = {writer}
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with contextlib.suppress(OSError):
                there, back = await asyncio.open_connection(*self._target)
                ends.add(back)
                self.served += 1
                self._writers |= ends
                await asyncio.gather(
                    self._pass(reader, back, writer, to_broker=True), self._pass(there, writer, back, to_broker=False)
                )
        finally:
            self._connections.discard(task)
            self._writers -= ends
            for end in ends:
                end.close()

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        opposite: asyncio.StreamWriter,
        *,
        to_broker: bool,
    ) -> None:
        """Pass bytes in one direction; `opposite` writes in the other one."""
        del opposite, to_broker
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()
