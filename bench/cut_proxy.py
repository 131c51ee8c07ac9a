"""A proxy on a thread of its own between a client and a broker, which can be cut for a while."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import Future
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class CutProxy:
    """Passes bytes, until it is cut."""

    def __init__(self, url: str) -> None:
        """Make a proxy in front of the broker at a URL."""
        parts = urlsplit(url)
        self._broker = (parts.hostname or "127.0.0.1", parts.port or 5672)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._port: Future[int] = Future()
        self._open: set[asyncio.StreamWriter] = set()
        self._served: set[asyncio.Task[None]] = set()
        self._ending = asyncio.Event()
        self._whole = True

    @property
    def url(self) -> str:
        """Where clients connect to."""
        return f"amqp://127.0.0.1:{self._port.result()}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._port.result(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join()

    def cut(self) -> None:
        """Close all connections, and those that come, at once."""
        self._whole = False
        asyncio.run_coroutine_threadsafe(self._abort(), self._loop).result(10)

    def restore(self) -> None:
        """Serve connections again."""
        self._whole = True

    def _run(self) -> None:
        self._loop.run_until_complete(self._listen())
        self._loop.close()

    async def _listen(self) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port.set_result(server.sockets[0].getsockname()[1])
        await self._ending.wait()
        server.close()
        await asyncio.gather(*self._served, return_exceptions=True)

    async def _abort(self) -> None:
        for writer in self._open:
            writer.transport.abort()
        self._open.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._whole:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._served.add(task)
        task.add_done_callback(self._served.discard)
        with contextlib.suppress(OSError):
            there, back = await asyncio.open_connection(*self._broker)
            self._open |= {writer, back}
            await asyncio.gather(_pass(reader, back), _pass(there, writer))


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()
