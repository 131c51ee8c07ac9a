"""A client of STOMP for tests: sends what it is told, and reads frames."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from broker.visible_broker import VisibleBroker
from support.waiting import WAIT_LIMIT

from qmf.broker.protocols.stomp.frames import Frame, FrameReader, StompVersion, encode_frame
from qmf.broker.protocols.stomp.options import StompOptions


class WireClient:
    """A connection.

    Attributes:
        connected: the frame that the broker has answered CONNECT with.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, version: str) -> None:
        self._reader, self._writer = reader, writer
        self._version = StompVersion(version)
        self._frames = FrameReader(1 << 24)
        self._receipts = 0
        self.connected: Frame

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._writer.write(data)

    async def drained(self) -> None:
        """Wait until the broker takes more."""
        await self._writer.drain()

    def send(self, command: str, body: bytes = b"", /, **headers: str) -> None:
        """Send a frame; names of headers have ``_`` for ``-``."""
        pairs = [(name.replace("_", "-"), value) for name, value in headers.items()]
        self.write(encode_frame(command, pairs, body, self._version))

    async def ask(self, command: str, body: bytes = b"", /, **headers: str) -> None:
        """Send a frame, and wait for its receipt."""
        self._receipts += 1
        self.send(command, body, receipt=f"r{self._receipts}", **headers)
        frame = await self.frame()
        assert (frame.command, frame.headers.get("receipt-id")) == ("RECEIPT", f"r{self._receipts}"), frame

    async def frame(self) -> Frame:
        """The next frame."""
        async with asyncio.timeout(WAIT_LIMIT):
            while (frame := self._frames.next_frame()) is None:
                data = await self._reader.read(65536)
                assert data, "the broker has closed the connection"
                self._frames.feed(data)
        self._frames.version = self._version
        return frame

    async def message(self) -> Frame:
        """The next frame, which is a message."""
        frame = await self.frame()
        assert frame.command == "MESSAGE", frame
        return frame

    async def error(self) -> str:
        """What the broker ends the connection with."""
        frame = await self.frame()
        assert frame.command == "ERROR", frame
        assert await self.at_end()
        return frame.headers["message"]

    async def at_end(self) -> bool:
        """Whether the broker closes the connection without another frame."""
        async with asyncio.timeout(WAIT_LIMIT):
            with contextlib.suppress(ConnectionResetError):
                return await self._reader.read() == b""
        return True

    async def raw(self) -> bytes:
        """The bytes that come next."""
        async with asyncio.timeout(WAIT_LIMIT):
            return await self._reader.read(65536)

    def close(self) -> None:
        """Close the connection without a word."""
        self._writer.close()

    async def closed(self) -> None:
        """Close the connection, and wait for its end."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


class StompBroker(VisibleBroker):
    """A broker with STOMP.

    Attributes:
        wire_clients: that tests have made.
    """

    wire_clients: list[WireClient]

    async def open_client(self, version: str = "1.2") -> WireClient:
        """A client that has said nothing."""
        assert self.stomp_url is not None
        port = int(self.stomp_url.rpartition(":")[2])
        client = WireClient(*await asyncio.open_connection("127.0.0.1", port), version)
        self.wire_clients.append(client)
        return client


async def dial(broker: StompBroker, version: str = "1.2", **headers: str) -> WireClient:
    """A client that has sent CONNECT, and had an answer."""
    client = await broker.open_client(version)
    named = {} if version == "1.0" else {"accept_version": version, "host": "mq"}
    client.send("CONNECT", **named, **headers)
    client.connected = await client.frame()
    return client


@contextlib.asynccontextmanager
async def stomp_broker(**options: object) -> AsyncIterator[StompBroker]:
    """A broker with STOMP; its clients are closed with it."""
    broker = StompBroker(**{"port": 0, "stomp": StompOptions(port=0), **options})  # type: ignore[arg-type]
    broker.wire_clients = []
    try:
        async with broker:
            yield broker
    finally:
        for client in broker.wire_clients:
            await client.closed()
