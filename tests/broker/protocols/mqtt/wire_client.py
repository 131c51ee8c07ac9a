"""A client of MQTT that sends and receives packets, one by one, and does nothing by itself."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from broker.visible_broker import VisibleBroker

from qmf.broker import Broker
from qmf.broker.protocols.mqtt.codec.packets import (
    ConnAck,
    Connect,
    Disconnect,
    MessageAnswer,
    Packet,
    Ping,
    Publish,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    UnsubAck,
    Unsubscribe,
    Will,
)
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty
from qmf.broker.protocols.mqtt.codec.reading import PacketReader
from qmf.broker.protocols.mqtt.codec.values import PacketType, Version
from qmf.broker.protocols.mqtt.codec.writing import encode_packet
from qmf.broker.protocols.mqtt.options import MqttOptions

#: The clients of each broker, which are closed with it.
_CLIENTS: WeakKeyDictionary[Broker, list[WireClient]] = WeakKeyDictionary()
#: Seconds that an answer may take on a machine that is busy.
PATIENCE = 30.0


class WireClient:
    """A connection of a client.

    Attributes:
        version: that it speaks.
        connack: how the broker has answered; None before.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, version: Version) -> None:
        self.version = version
        self.connack: ConnAck | None = None
        self._stream, self._writer = reader, writer
        self._packets = PacketReader(version=version)
        self._packet_id = 0
        self._early: deque[Publish] = deque()

    def send(self, *packets: Packet) -> None:
        self._writer.write(b"".join(encode_packet(packet, self.version) for packet in packets))

    def send_bytes(self, data: bytes) -> None:
        self._writer.write(data)

    async def bytes_until_closed(self) -> bytes:
        """What the broker sends until it closes the connection."""
        async with asyncio.timeout(PATIENCE):
            return await self._stream.read()

    async def receive(self) -> Packet:
        async with asyncio.timeout(PATIENCE):
            while (packet := self._packets.next_packet()) is None:
                data = await self._stream.read(65536)
                if not data:
                    raise ConnectionError("the broker has closed the connection")
                self._packets.feed(data)
        return packet

    async def publication(self) -> Publish:
        if self._early:
            return self._early.popleft()
        packet = await self.receive()
        assert isinstance(packet, Publish), packet
        return packet

    async def payloads(self, count: int) -> list[bytes]:
        return [(await self.publication()).payload for _ in range(count)]

    async def answer(self, kind: PacketType) -> MessageAnswer:
        """An answer of the broker; publications that come before are kept for `publication`."""
        while isinstance(packet := await self.receive(), Publish):
            self._early.append(packet)
        assert isinstance(packet, MessageAnswer), packet
        assert packet.type is kind, packet
        return packet

    def acknowledge(self, packet: Publish, kind: PacketType = PacketType.PUBACK) -> None:
        assert packet.packet_id is not None
        self.send(MessageAnswer(kind, packet.packet_id))

    async def subscribe(self, *requests: SubscriptionRequest | str, qos: int = 0, identifier: int = 0) -> Sequence[int]:
        self._packet_id += 1
        wanted = [SubscriptionRequest(each, qos) if isinstance(each, str) else each for each in requests]
        properties = {PacketProperty.SUBSCRIPTION_ID: identifier} if identifier else {}
        self.send(Subscribe(self._packet_id, wanted, properties))
        while isinstance(packet := await self.receive(), Publish):
            self._early.append(packet)
        assert isinstance(packet, SubAck), packet
        assert packet.packet_id == self._packet_id
        return packet.codes

    async def unsubscribe(self, *filters: str) -> Sequence[int]:
        self._packet_id += 1
        self.send(Unsubscribe(self._packet_id, filters))
        packet = await self.receive()
        assert isinstance(packet, UnsubAck), packet
        return packet.codes

    async def publish(
        self, topic: str, payload: bytes = b"", qos: int = 0, *, retain: bool = False, properties: Any = None
    ) -> int:
        """Publish, and wait until the broker has the message; gives the last reason code."""
        packet_id = None
        if qos:
            self._packet_id += 1
            packet_id = self._packet_id
        self.send(Publish(topic, payload, qos, retain, packet_id=packet_id, properties=properties or {}))
        if qos == 1:
            return (await self.answer(PacketType.PUBACK)).code
        if qos == 2 and packet_id is not None:
            received = await self.answer(PacketType.PUBREC)
            if received.code >= 0x80:
                return received.code
            self.send(MessageAnswer(PacketType.PUBREL, packet_id))
            return (await self.answer(PacketType.PUBCOMP)).code
        return 0

    async def nothing_waits(self) -> bool:
        """True if the broker has sent nothing before its answer to a ping."""
        self.send(Ping())
        return await self.receive() == Ping(PacketType.PINGRESP)

    async def disconnect(self, code: int = 0, properties: Any = None) -> None:
        self.send(Disconnect(code, properties or {}))
        await self.closed()

    async def closed(self) -> Disconnect | None:
        """Wait until the broker has closed the connection; gives its reason, if there is one."""
        reason = None
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(ConnectionError):
                while True:
                    packet = await self.receive()
                    if isinstance(packet, Disconnect):
                        reason = packet
        self._writer.close()
        return reason

    def cut(self) -> None:
        """End the connection without a word."""
        self._writer.transport.abort()


async def connect(
    broker: Broker,
    client_id: str = "client",
    *,
    version: Version = Version.V5,
    clean: bool = True,
    expiry: int | None = None,
    keep_alive: int = 0,
    will: Will | None = None,
    username: str | None = None,
    password: bytes | None = None,
    properties: dict[PacketProperty, Any] | None = None,
) -> WireClient:
    """A client that has sent CONNECT, and was answered."""
    client = await open_client(broker, version)
    wanted = dict(properties or {})
    if expiry is not None:
        wanted[PacketProperty.SESSION_EXPIRY] = expiry
    client.send(Connect(version, client_id, clean, keep_alive, will, username, password, wanted))
    packet = await client.receive()
    assert isinstance(packet, ConnAck), packet
    client.connack = packet
    return client


async def open_client(broker: Broker, version: Version = Version.V5) -> WireClient:
    """A client that has sent nothing."""
    host, _, port = broker.mqtt_urls[0].removeprefix("mqtt://").rpartition(":")
    client = WireClient(*await asyncio.open_connection(host, int(port)), version)
    _CLIENTS.setdefault(broker, []).append(client)
    return client


@contextlib.asynccontextmanager
async def mqtt_broker(mqtt: dict[str, Any] | None = None, **options: Any) -> AsyncIterator[VisibleBroker]:
    """A broker with a port of MQTT."""
    async with VisibleBroker("127.0.0.1", 0, mqtt=MqttOptions(port=0, **(mqtt or {})), **options) as broker:
        try:
            yield broker
        finally:
            for client in _CLIENTS.pop(broker, []):
                client.cut()
