"""Clients of a broker without `AmqpBus`: sockets with bytes, and engines that do what ours never would."""

from __future__ import annotations

import asyncio
import struct

from support.recording import Inbox, message

from qmf.broker import Broker
from qmf.bus import AmqpBus, Binding
from qmf.bus.client.sasl import SaslClient
from qmf.bus.engine.engine import Engine
from qmf.bus.engine.values import ConnectionSettings, Filter
from qmf.codec import Described, UInt64
from qmf.codec.amqp10 import encode
from qmf.sasl.client import SaslCredentials

TOPIC = "qmf.default.topic"


AMQP = b"AMQP\x00\x01\x00\x00"


OPEN = encode(Described(UInt64(0x10), ["raw"]))


OPEN = struct.pack(">IBBH", 8 + len(OPEN), 2, 0, 0) + OPEN


def frame(body: object, payload: bytes = b"", channel: int = 0) -> bytes:
    """A frame of AMQP; None for an empty one, which is a heartbeat."""
    data = (b"" if body is None else encode(body)) + payload
    return struct.pack(">IBBH", 8 + len(data), 2, 0, channel) + data


async def connect(broker: Broker) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(broker.host, broker.port)


async def dropped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The broker hangs up."""
    async with asyncio.timeout(30):
        try:
            while await reader.read(65536):
                pass
        except ConnectionError:
            pass
    writer.close()


async def usable(broker: Broker) -> None:
    """The broker still does its work."""
    bus = AmqpBus(broker.url)
    inbox = Inbox()
    await bus.open()
    await bus.subscribe(Binding(TOPIC, "#"), inbox)
    await bus.send(message(TOPIC, "x", "works"), confirm=True)
    assert await inbox.wait(1) == ["works"]
    await bus.close()


class Client:
    """An engine on a stream, for clients that do what ours never would."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        mechanisms: tuple[str, ...] | None = None,
        username: str | None = None,
        password: str | None = None,
    ) -> None:
        """Without `mechanisms` there is no SASL layer."""
        self.reader = reader
        self.writer = writer
        layer = None if mechanisms is None else SaslClient(SaslCredentials(username, password), mechanisms)
        self.engine = Engine(ConnectionSettings("client"), layer)
        self.seen: list[object] = []

    async def exchange(self, kind: type, count: int = 1) -> None:
        """Write and read until so many events of a kind were seen."""
        async with asyncio.timeout(30):
            while True:
                while data := self.engine.output():
                    self.writer.write(data)
                while (event := self.engine.next_event()) is not None:
                    self.seen.append(event)
                if sum(isinstance(event, kind) for event in self.seen) >= count:
                    return
                data = await self.reader.read(65536)
                assert data, "the broker closed the connection"
                self.engine.feed(data)


TOPIC_FILTER = Filter("f", "apache.org:legacy-amqp-topic-binding:string", "#")
