"""Clients of MQTT that go on with their sessions whenever their broker is killed, and know what they have sent."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable

import attrs

from qmf.broker.protocols.mqtt.codec.packets import (
    ConnAck,
    Connect,
    MessageAnswer,
    Packet,
    Publish,
    Subscribe,
    SubscriptionRequest,
)
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty
from qmf.broker.protocols.mqtt.codec.reading import PacketReader
from qmf.broker.protocols.mqtt.codec.values import PacketType, Version
from qmf.broker.protocols.mqtt.codec.writing import encode_packet

#: Messages of one publisher that are under way, and its packet ids: few, so that they are used again and again.
WINDOW, MAX_PACKET_ID = 30, 100


@attrs.define
class Ledger:
    """What the clients know.

    Attributes:
        accepted: numbers of messages that the broker has, by QoS.
        received: how often each number came, to whomever.
        again: messages that were marked as duplicates.
        retained: the last number that was published to be retained, by topic.
    """

    accepted: dict[int, set[int]] = attrs.field(factory=lambda: {1: set(), 2: set()})
    received: Counter[int] = attrs.field(factory=Counter)
    again: int = 0
    retained: dict[str, int] = attrs.field(factory=dict)

    @property
    def complete(self) -> bool:
        """All that was accepted has come."""
        return all(self.received[number] for qos in (1, 2) for number in self.accepted[qos])

    def faults(self) -> list[str]:
        """What must not be."""
        lost = [number for qos in (1, 2) for number in self.accepted[qos] if not self.received[number]]
        twice = [number for number in self.accepted[2] if self.received[number] > 1]
        return [f"lost: {sorted(lost)[:20]}"] * bool(lost) + [f"twice: {sorted(twice)[:20]}"] * bool(twice)


class _Connection:
    """One connection; ends with `ConnectionError`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._packets = PacketReader()

    @classmethod
    async def open(cls, port: int, client_id: str) -> tuple[_Connection, bool]:
        made = cls(*await asyncio.open_connection("127.0.0.1", port))
        made.send(Connect(Version.V5, client_id, clean=False, properties={PacketProperty.SESSION_EXPIRY: 10_000}))
        answer = await made.receive()
        assert isinstance(answer, ConnAck)
        assert not answer.code, answer
        return made, answer.session_present

    def send(self, packet: Packet) -> None:
        self._writer.write(encode_packet(packet, Version.V5))

    async def receive(self) -> Packet:
        while (packet := self._packets.next_packet()) is None:
            data = await self._reader.read(65536)
            if not data:
                raise ConnectionError
            self._packets.feed(data)
        return packet

    def close(self) -> None:
        self._writer.transport.abort()


def topic_of(number: int) -> tuple[str, bool]:
    """The topic of a number, and whether it is retained: each fourth one is for the shared subscription."""
    return (f"s/{number % 3}", False) if number % 4 > 1 else (f"t/{number % 3}", number % 5 < 2)


async def retained_numbers(port: int, topics: int) -> dict[str, int]:
    """The numbers that are retained, by topic."""
    connection, _ = await _Connection.open(port, "looks")
    connection.send(Subscribe(1, (SubscriptionRequest("#", 0),)))
    found: dict[str, int] = {}
    while len(found) < topics:
        packet = await connection.receive()
        if isinstance(packet, Publish):
            found[packet.topic] = int(packet.payload)
    connection.close()
    return found


class Publisher:
    """Publishes numbers, with QoS 1 and 2 in turn."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.number = 0
        #: By packet id: the number, its QoS, and whether the broker has it.
        self.pending: dict[int, tuple[int, int, bool]] = {}
        self._packet_id = 0

    async def run(self, port: int, ends: Callable[[], bool]) -> None:
        """Publish until the broker is gone, or it is to end and nothing is under way."""
        connection, present = await _Connection.open(port, "publisher")
        assert present or not self.ledger.accepted[1], "the session of the publisher is lost"
        try:
            for packet_id, (number, qos, released) in self.pending.items():
                if released:
                    connection.send(MessageAnswer(PacketType.PUBREL, packet_id))
                else:
                    topic, retain = topic_of(number)
                    connection.send(Publish(topic, str(number).encode(), qos, retain, True, packet_id))
            while not ends() or self.pending:
                while not ends() and len(self.pending) < WINDOW:
                    self._publish(connection)
                packet = await connection.receive()
                assert isinstance(packet, MessageAnswer), packet
                self._on_answer(connection, packet)
        finally:
            connection.close()

    def _publish(self, connection: _Connection) -> None:
        self.number += 1
        self._packet_id = self._packet_id % MAX_PACKET_ID + 1
        while self._packet_id in self.pending:
            self._packet_id = self._packet_id % MAX_PACKET_ID + 1
        qos = 1 + self.number % 2
        self.pending[self._packet_id] = (self.number, qos, False)
        topic, retain = topic_of(self.number)
        if retain:
            self.ledger.retained[topic] = self.number
        connection.send(Publish(topic, str(self.number).encode(), qos, retain, packet_id=self._packet_id))

    def _on_answer(self, connection: _Connection, packet: MessageAnswer) -> None:
        assert packet.code in (0, 0x92), packet
        found = self.pending.get(packet.packet_id)
        if found is None:
            return
        number, qos, _ = found
        self.ledger.accepted[qos].add(number)
        if packet.type is PacketType.PUBREC:
            self.pending[packet.packet_id] = (number, qos, True)
            connection.send(MessageAnswer(PacketType.PUBREL, packet.packet_id))
        else:
            del self.pending[packet.packet_id]


class Subscriber:
    """Receives numbers, each of QoS 2 once."""

    def __init__(self, ledger: Ledger, client_id: str, topic_filter: str) -> None:
        self.ledger = ledger
        self.subscribed = False
        self._client_id, self._filter = client_id, topic_filter
        self._held: set[int] = set()

    async def run(self, port: int, ends: Callable[[], bool]) -> None:
        """Receive until the broker is gone, or it is to end and all is there."""
        connection, present = await _Connection.open(port, self._client_id)
        assert present or not self.subscribed, "the session of the subscriber is lost"
        try:
            if not self.subscribed:
                connection.send(Subscribe(1, (SubscriptionRequest(self._filter, 2),)))
            while not (ends() and not self._held and self.ledger.complete):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.05 if ends() else None):
                        self._on_packet(connection, await connection.receive())
        finally:
            connection.close()

    def _on_packet(self, connection: _Connection, packet: Packet) -> None:
        if isinstance(packet, Publish):
            assert packet.packet_id is not None
            self.ledger.again += packet.duplicate
            if packet.qos == 1 or packet.packet_id not in self._held:
                self.ledger.received[int(packet.payload)] += 1
            if packet.qos == 2:
                self._held.add(packet.packet_id)
            kind = PacketType.PUBACK if packet.qos == 1 else PacketType.PUBREC
            connection.send(MessageAnswer(kind, packet.packet_id))
        elif isinstance(packet, MessageAnswer):
            self._held.discard(packet.packet_id)
            connection.send(MessageAnswer(PacketType.PUBCOMP, packet.packet_id))
        else:
            self.subscribed = True
