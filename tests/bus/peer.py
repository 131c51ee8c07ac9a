"""A peer whose behaviour is a function of the test: the engine's server side on a socket, without a broker."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast

from qmf.bus.engine.engine import Engine
from qmf.bus.engine.events import Delivery, EngineEvent, EventBatch, LinkRequested
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import ConnectionSettings
from qmf.bus.transport import AmqpTransport

Script = Callable[["Peer", EngineEvent], None]


class PeerTransport(AmqpTransport):
    """The transport of a peer, which can stop reading, and read on."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        readable = cast("asyncio.ReadTransport", transport)
        self.stop_reading, self.read_on = readable.pause_reading, readable.resume_reading
        super().connection_made(transport)


class Peer:
    """One connection to the scripted peer."""

    def __init__(self, settings: ConnectionSettings, script: Script) -> None:
        self.transport = PeerTransport(Engine(settings), self)
        self.engine = self.transport.engine
        self.events: list[EngineEvent] = []
        self.links: list[Link] = []
        self.bodies: list[bytes] = []
        self.ended = asyncio.get_running_loop().create_future()
        self._script = script

    def grant(self, link: Link, credit: int = 100) -> None:
        """Accept a link as it was asked for."""
        self.engine.links.accept(link, source=link.source, target=link.target)
        if not link.is_sender:
            self.engine.links.add_credit(link, credit)

    def stop_reading(self) -> None:
        """Read nothing more."""
        self.transport.stop_reading()

    def on_connected(self) -> None:
        """See `TransportOwner`."""

    def on_writable(self) -> None:
        """See `TransportOwner`."""

    def on_event(self, event: EngineEvent | EventBatch) -> None:
        """See `TransportOwner`."""
        for single in event.events() if isinstance(event, EventBatch) else [event]:
            self._on_single(single)

    def _on_single(self, event: EngineEvent) -> None:
        self.events.append(event)
        if isinstance(event, LinkRequested):
            self.links.append(event.link)
        elif isinstance(event, Delivery):
            self.bodies.append(event.data)
        self._script(self, event)
        self.transport.flush_soon()

    def on_disconnected(self, error: Exception | None) -> None:
        """See `TransportOwner`."""
        self.ended.set_result(None)


class Peers:
    """The scripted server: its address and the connections it had."""

    def __init__(self) -> None:
        self.url = ""
        self.all: list[Peer] = []


@asynccontextmanager
async def serving(script: Script, **settings: object) -> AsyncIterator[Peers]:
    """A server whose connections follow `script`, called with each event after it was noted."""
    options = {"container": "scripted", "capabilities": ("ANONYMOUS-RELAY",), "server": True, **settings}
    peers = Peers()

    def accept() -> AmqpTransport:
        peer = Peer(ConnectionSettings(**options), script)  # type: ignore[arg-type]
        peers.all.append(peer)
        return peer.transport

    server = await asyncio.get_running_loop().create_server(accept, "127.0.0.1", 0)
    peers.url = f"amqp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield peers
    finally:
        server.close()
        for peer in peers.all:
            peer.transport.abort()
            await peer.ended
        await server.wait_closed()


@asynccontextmanager
async def raw_server(answer: bytes = b"", *, close: bool = False) -> AsyncIterator[int]:
    """A server that sends `answer` to every client, and reads on or, with `close`, disconnects. Yields its port."""
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        if answer:
            writer.write(answer)
        if not close:
            while await reader.read(65536):
                pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        await server.wait_closed()
