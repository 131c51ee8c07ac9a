"""Clients that have not logged in, or not rightly, change, send and receive nothing: over all protocols, and WebSocket.

Nobody gets further than an answer that the login was wrong, whatever the rules would allow all users.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
import websockets
from broker.access.stranger import unchanged
from broker.access.test_control import USERS
from broker.raw_clients import AMQP, OPEN, frame
from broker.visible_broker import VisibleBroker
from support.waiting import WAIT_LIMIT

from qmf.broker.protocols.mqtt.codec.packets import ConnAck, Connect, Publish, Subscribe, SubscriptionRequest, Will
from qmf.broker.protocols.mqtt.codec.reading import PacketReader
from qmf.broker.protocols.mqtt.codec.values import Version
from qmf.broker.protocols.mqtt.codec.writing import encode_packet
from qmf.codec import Described, Symbol, UInt32, UInt64
from qmf.messaging import aio
from qmf.messaging.exceptions import MessagingError

SASL = b"AMQP\x03\x01\x00\x00"
#: begin, and the attach of a sender to the queue.
BEGIN = frame(Described(UInt64(0x11), [None, UInt32(0), UInt32(100), UInt32(100)]))
TARGET = Described(UInt64(0x29), ["q"])
ATTACH = frame(Described(UInt64(0x12), ["link", UInt32(0), False, None, None, Described(UInt64(0x28), [None]), TARGET]))
TRANSFER = frame(Described(UInt64(0x14), [UInt32(0), UInt32(0), b"1", UInt32(0), True]), b"\x00\x53\x75\xa0\x07unknown")
LINKS = OPEN + BEGIN + ATTACH


def initial(mechanism: str, response: bytes) -> bytes:
    """SASL's choice of a mechanism, in a frame of SASL."""
    data = bytearray(frame(Described(UInt64(0x41), [Symbol(mechanism), response, "mq"])))
    data[5] = 1
    return bytes(data)


AMQP_INPUTS = {
    "without a login": AMQP + LINKS + TRANSFER,
    "beside the login": SASL + AMQP + LINKS + TRANSFER,
    "anonymous": SASL + initial("ANONYMOUS", b"") + AMQP + LINKS + TRANSFER,
    "external": SASL + initial("EXTERNAL", b"ann") + AMQP + LINKS + TRANSFER,
    "wrong password": SASL + initial("PLAIN", b"\0ann\0wrong") + AMQP + LINKS + TRANSFER,
    "nobody": SASL + initial("PLAIN", b"\0\0") + AMQP + LINKS + TRANSFER,
    "as another one": SASL + initial("PLAIN", b"ann\0bob\0b") + AMQP + LINKS + TRANSFER,
}


def mqtt_inputs(version: Version) -> list[bytes]:
    """What is sent after a CONNECT that is refused, and instead of one."""
    publish = encode_packet(Publish("secret", b"nobody", 1, retain=True, packet_id=1), version)
    subscribe = encode_packet(Subscribe(2, (SubscriptionRequest("#", 1),), {}), version)
    will = Will("secret", b"nobody", 1)
    logins: Sequence[tuple[str | None, bytes | None]] = ((None, None), ("ann", None), ("ann", b"wrong"), ("", b""))
    return [
        publish,
        subscribe,
        *(
            encode_packet(Connect(version, "nobody", True, 0, will, user, password, {}), version) + publish + subscribe
            for user, password in logins
            if version is Version.V5 or user is not None or password is None
        ),
    ]


SEND = "SEND\ndestination:q\n\nnobody\0SUBSCRIBE\ndestination:amq.topic/#\nid:1\n\n\0"
STOMP_INPUTS = [
    (head + SEND).encode()
    for head in (
        "",
        "CONNECT\naccept-version:1.2\nhost:mq\n\n\0",
        "CONNECT\naccept-version:1.2\nhost:mq\nlogin:ann\n\n\0",
        "STOMP\naccept-version:1.2\nhost:mq\nlogin:ann\npasscode:wrong\n\n\0",
        "CONNECT\naccept-version:1.2\nhost:mq\nlogin:\npasscode:\n\n\0",
    )
]


async def answer(port: int, data: bytes) -> bytes:
    """What the broker says to some bytes before it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    found = bytearray()
    async with asyncio.timeout(WAIT_LIMIT):
        try:
            writer.write(data)
            while some := await reader.read(65536):
                found += some
        except ConnectionError:
            pass
    writer.close()
    return bytes(found)


async def answer_over_websocket(url: str, subprotocol: str, data: bytes) -> bytes:
    """The same over WebSocket."""
    found = bytearray()
    subprotocols = [websockets.Subprotocol(subprotocol)]
    async with asyncio.timeout(WAIT_LIMIT), websockets.connect(url, subprotocols=subprotocols, proxy=None) as client:
        try:
            await client.send(data)
            while True:
                found += await client.recv(decode=False)
        except websockets.ConnectionClosed:
            pass
    return bytes(found)


def port_of(url: str | None) -> int:
    assert url is not None
    return int(url.rpartition(":")[2].strip("/"))


async def amqp(broker: VisibleBroker) -> None:
    assert broker.ws_url is not None
    for name, data in AMQP_INPUTS.items():
        for said in (await answer(broker.port, data), await answer_over_websocket(broker.ws_url, "amqp", data)):
            assert b"\x00\x53\x11" not in said, (name, said)  # no session
            assert b"\x00\x53\x12" not in said, (name, said)  # no link


async def clients(broker: VisibleBroker) -> None:
    for login in ("", "ann@", "ann:wrong@", "none:b@", "bob:B@"):
        with pytest.raises(MessagingError):
            await aio.Connection(f"amqp://{login}127.0.0.1:{broker.port}", reconnect=False).open()


async def mqtt(broker: VisibleBroker) -> None:
    assert broker.ws_url is not None
    for version in (Version.V5, Version.V3):
        for data in mqtt_inputs(version):
            for said in (
                await answer(port_of(broker.mqtt_urls[0]), data),
                await answer_over_websocket(broker.ws_url, "mqtt", data),
            ):
                packets = PacketReader(version=version)
                packets.feed(said)
                refused = packets.next_packet()
                if refused is not None:
                    assert isinstance(refused, ConnAck)
                    assert refused.code != 0
                    assert packets.next_packet() is None


async def stomp(broker: VisibleBroker) -> None:
    assert broker.ws_url is not None
    for data in STOMP_INPUTS:
        for said in (
            await answer(port_of(broker.stomp_url), data),
            await answer_over_websocket(broker.ws_url, "v12.stomp", data),
        ):
            assert said.count(b"\0") == 1, said
            assert said.startswith(b"ERROR\n"), said


Attempt = Callable[[VisibleBroker], Awaitable[None]]


@pytest.mark.parametrize("attempt", [amqp, clients, mqtt, stomp])
async def test_who_has_not_logged_in(tmp_path: Path, attempt: Attempt) -> None:
    async with unchanged(tmp_path, "acl allow all all\n") as broker:
        await attempt(broker)


async def test_the_same_after_a_login() -> None:
    """What is sent above is no nonsense."""
    close = frame(Described(UInt64(0x18), [None]))
    async with VisibleBroker(port=0, users=USERS, queues=["q"]) as broker:
        said = await answer(broker.port, SASL + initial("PLAIN", b"\0ann\0a") + AMQP + LINKS + close)
        assert b"\x00\x53\x11" in said
        assert b"\x00\x53\x12" in said
