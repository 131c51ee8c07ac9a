"""Serves records as server-sent events and over websockets: a sign of life, the end of a session, slow readers.

Whatever the records are, a source is an asynchronous generator of lists of them; an empty list is a sign of life.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Protocol

from fastapi import WebSocket
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect, WebSocketState

from qmf.web.consoles import WebConsole
from qmf.web.scopes import Caller
from qmf.web.services import WebServices
from qmf.web.streams.record_log import RecordLog, socket_message, sse_event

#: Seconds without a record after which a stream sends a sign of life, and looks whether its caller is still let in.
SIGN_OF_LIFE = 15.0


class Sendable(Protocol):
    """What streams send."""

    @property
    def sse(self) -> bytes:
        """As a server-sent event."""

    @property
    def text(self) -> str:
        """As a message of a websocket."""


class StreamNotice:
    """Something that one reader is told, and that is no record: it has no id."""

    def __init__(self, kind: str, data: object, id: str | None = None) -> None:
        self.sse = sse_event(kind, data, id)
        self.text = socket_message(kind, data, id)


Source = AsyncGenerator[Sequence[Sendable], None]


async def log_source(log: RecordLog, position: int, wanted: Callable[[object], bool]) -> Source:
    """The records of a log from a position on, those that are wanted; tells of those that were missed."""
    while True:
        batch = log.take(position)
        position += batch.missed + len(batch.records)
        found: list[Sendable] = [record for record in batch.records if wanted(record.data)]
        if batch.missed:
            found.insert(0, StreamNotice("missed", {"count": batch.missed}))
        if found:
            yield found
        elif not batch.records:
            if log.closed:
                return
            await log.wait(position, SIGN_OF_LIFE)
            if position == log.end:
                yield []


class EventStream(StreamingResponse):
    """An answer of server-sent events."""

    media_type = "text/event-stream"

    def __init__(self, source: Source, services: WebServices, caller: Caller, console: WebConsole) -> None:
        """Make an answer, which sends nothing yet.

        Args:
            source: the records.
            services: to count the stream, and to look whether its caller is still let in.
            caller: who reads it.
            console: of the caller, from which the records are; the stream ends when the caller gets another one.

        Raises:
            Problem: 429, the caller has too many streams.
        """
        self._release = services.access.streams.acquire(caller.client)
        self._records = _sse(source, services, caller, console)
        super().__init__(self._records, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._release()
            await self._records.aclose()


async def _sse(
    source: Source, services: WebServices, caller: Caller, console: WebConsole
) -> AsyncGenerator[bytes, None]:
    yield b"retry: 3000\n\n"
    async with contextlib.aclosing(source):
        async for records in source:
            if not services.still(caller, console):
                return
            yield b"".join(record.sse for record in records) or b": alive\n\n"


async def serve_socket(
    socket: WebSocket, source: Source, services: WebServices, caller: Caller, console: WebConsole
) -> None:
    """Send records over a websocket until either side ends it; what the client sends is ignored.

    Raises:
        Problem: 429, the caller has too many streams.
    """
    with services.access.streams.one(caller.client):
        await socket.accept()
        sending = asyncio.create_task(_send(socket, source, services, caller, console))
        ended = asyncio.create_task(_until_closed(socket))
        try:
            await asyncio.wait({sending, ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, ended):
                task.cancel()
            await asyncio.gather(sending, ended, return_exceptions=True)
        if socket.application_state is WebSocketState.CONNECTED and socket.client_state is WebSocketState.CONNECTED:
            with contextlib.suppress(RuntimeError, WebSocketDisconnect):
                await socket.close(1001)


async def _send(socket: WebSocket, source: Source, services: WebServices, caller: Caller, console: WebConsole) -> None:
    async with contextlib.aclosing(source):
        async for records in source:
            if not services.still(caller, console):
                return
            for record in records:
                async with asyncio.timeout(services.limits.write_time):
                    await socket.send_text(record.text)


async def _until_closed(socket: WebSocket) -> None:
    with contextlib.suppress(WebSocketDisconnect):
        while True:
            await socket.receive_text()
