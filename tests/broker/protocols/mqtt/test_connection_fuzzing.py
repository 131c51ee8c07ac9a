"""Packets of strangers that have logged in, in any order and changed at random: a connection ends, or goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from broker.protocols.mqtt.codec.test_reading_fuzzing import LATER, VALID
from support.fuzzing import FEW, MANY, changed

from qmf.broker.connection_limits import ConnectionLimits
from qmf.broker.logins import Logins
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.settings import QueueLimits
from qmf.broker.operations.operations import Operations
from qmf.broker.protocols.mqtt.codec.packets import MessageAnswer, Packet, Publish, Subscribe, SubscriptionRequest
from qmf.broker.protocols.mqtt.codec.values import PacketType, Version
from qmf.broker.protocols.mqtt.codec.writing import encode_packet
from qmf.broker.protocols.mqtt.options import MqttOptions
from qmf.broker.protocols.mqtt.protocol import MqttProtocol
from qmf.broker.protocols.services import ConnectionServices
from qmf.broker.sessions import ClientSessions

#: What clients do with their sessions: few topics and packet ids, so that they meet.
USUAL: list[Packet] = [
    *(Publish("a", b"x", qos, retain, False, 3 if qos else None) for qos in range(3) for retain in (False, True)),
    Publish("a", b"", 1, True, packet_id=4),
    Publish("$SYS/x", b"", 1, packet_id=5),
    *(Subscribe(6, (SubscriptionRequest(name, qos),)) for name in ("a", "#", "$share/g/a") for qos in range(3)),
    Subscribe(7, (SubscriptionRequest("$SYS/#", 1), SubscriptionRequest("a/#/b"))),
    *(
        MessageAnswer(kind, number)
        for kind in (PacketType.PUBACK, PacketType.PUBREC, PacketType.PUBREL, PacketType.PUBCOMP)
        for number in (1, 2, 3)
    ),
]


class SilentTransport(asyncio.Transport):
    """Takes what is written, and is closed by the broker alone."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else default

    def write(self, data: Any) -> None:
        assert data

    def writelines(self, list_of_data: Any) -> None:
        assert list_of_data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0


def conversations(count: int) -> Iterator[bytes]:
    """What a client sends after CONNECT; most of it is right."""
    chance = Random(count)
    encoded = [encode_packet(packet, Version.V5) for packet in USUAL]
    for _ in range(count):
        packets = chance.choices(encoded, k=chance.randrange(1, 8)) + chance.choices(LATER, k=chance.randrange(2))
        chance.shuffle(packets)
        data = b"".join(packets)
        yield changed(chance, data) if chance.randrange(2) else data


def connect_of(number: int) -> bytes:
    """CONNECT of one of four clients, whose sessions go on, but for each fiftieth time."""
    data = bytearray(VALID[number % 7 == 0].replace(b"\0\2me", f"\0\2m{number % 4}".encode()))
    if number % 200 < 4:
        data[data.index(b"MQTT") + 5] |= 2  # a clean start
    return bytes(data)


async def converse(count: int) -> None:
    loop = asyncio.get_running_loop()
    faults: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: faults.append(context))
    registry = NodeRegistry(clock=loop.time, call_later=loop.call_later, limits=QueueLimits(100, 100_000))
    operations = Operations(registry)
    clients, logins = ClientSessions(operations, ConnectionLimits()), Logins(None, None)
    protocol = MqttProtocol(ConnectionServices(operations, clients, logins, 10, None), MqttOptions())
    for number, data in enumerate(conversations(count)):
        connection, transport = protocol.accept(), SilentTransport()
        assert isinstance(connection, asyncio.Protocol)
        connection.connection_made(transport)
        begin = connect_of(number)
        try:
            for part in (begin, data[: len(data) // 2], data[len(data) // 2 :]):
                if not transport.closed:
                    connection.data_received(part)
                await asyncio.sleep(0)
            connection.connection_lost(None)
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} for {data!r} after {begin!r}: {error}") from error
        assert not faults, f"{faults} for {data!r} after {begin!r}"
    await asyncio.sleep(0)
    assert len(clients) == 0
    protocol.close()
    protocol.stop()
    logins.close()
    registry.close()
    assert faults == []


@pytest.mark.slow
def test_packets_in_any_order() -> None:
    asyncio.run(converse(FEW))


@pytest.mark.slow
@pytest.mark.soak
def test_many_packets_in_any_order() -> None:
    asyncio.run(converse(MANY))
