"""A user whom no rule allows anything changes, sends and receives nothing: AMQP, management, MQTT, STOMP, WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import websockets
from broker.access.stranger import ACCESS, unchanged
from broker.access.test_control import USERS
from broker.protocols.mqtt.wire_client import connect
from broker.protocols.stomp.stomp_wire import WireClient as StompClient
from broker.visible_broker import VisibleBroker

from qmf.broker.protocols.mqtt.codec.packets import (
    ConnAck,
    Connect,
    MessageAnswer,
    Packet,
    Publish,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    Will,
)
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty
from qmf.broker.protocols.mqtt.codec.reading import PacketReader
from qmf.broker.protocols.mqtt.codec.values import ReasonCode, Version
from qmf.broker.protocols.mqtt.codec.writing import encode_packet
from qmf.console.aio import Client
from qmf.errors import QmfError
from qmf.messaging import aio
from qmf.messaging.exceptions import MessagingError
from qmf.messaging.message import Message

#: Of AMQP.
SENDERS = (
    "q", "none", "amq.topic/secret", "amq.direct", "mqtt/secret", "none; {create: always}",
    "none; {create: always, node: {type: topic}}", "q; {delete: always}", "qmf.default.direct", "qmf.default.topic",
    "#; {create: always}", "q; {node: {x-bindings: [{exchange: amq.topic, key: k}]}}",
)  # fmt: skip
RECEIVERS = (
    "q", "q; {mode: browse}", "q; {delete: always}", "none; {create: always}", "amq.topic/secret", "amq.topic/#", "#",
    "mqtt/#", "amq.topic; {link: {name: news, durable: true}}", "qmf.default.topic/#", "qmf.default.direct/broker",
    "none; {create: always, node: {x-declare: {alternate-exchange: amq.fanout}}}",
)  # fmt: skip

STOMP = websockets.Subprotocol("v12.stomp")

#: Frames of STOMP with their headers; each ends the connection.
FRAMES: tuple[tuple[str, dict[str, str]], ...] = (
    ("SEND", {"destination": "q"}),
    ("SEND", {"destination": "none"}),
    ("SEND", {"destination": "amq.topic/secret"}),
    ("SEND", {"destination": "q", "destination_type": "MULTICAST"}),
    ("SEND", {"destination": "q", "reply_to": "/temp-queue/mine"}),
    ("SUBSCRIBE", {"destination": "q", "id": "1"}),
    ("SUBSCRIBE", {"destination": "none", "id": "1"}),
    ("SUBSCRIBE", {"destination": "q", "id": "1", "browser": "true"}),
    ("SUBSCRIBE", {"destination": "amq.topic/secret", "id": "1"}),
    ("SUBSCRIBE", {"destination": "amq.topic/#", "id": "1", "durable_subscription_name": "kept"}),
)


async def send(session: aio.Session, address: str) -> None:
    sender = await session.sender(address)
    await sender.send(Message("bob", subject="secret"), sync=True)


async def amqp(broker: VisibleBroker) -> None:
    await amqp_at(f"amqp://bob:{USERS['bob']}@127.0.0.1:{broker.port}")


async def amqp_over_websocket(broker: VisibleBroker) -> None:
    assert broker.ws_url is not None
    await amqp_at(broker.ws_url.replace("ws://", f"ws://bob:{USERS['bob']}@"))


async def amqp_at(url: str) -> None:
    connection = aio.Connection(url)
    await connection.open()
    try:
        session = await connection.session()
        for address in SENDERS:
            with pytest.raises(MessagingError):
                await send(session, address)
        for address in RECEIVERS:
            with pytest.raises(MessagingError):
                await session.receiver(address)
        transaction = await connection.session(transactional=True)
        for address in ("q", "amq.topic/secret"):
            with pytest.raises(MessagingError):
                await send(transaction, address)
    finally:
        await connection.close()


async def management(broker: VisibleBroker) -> None:
    client = Client(f"amqp://bob:{USERS['bob']}@127.0.0.1:{broker.port}")
    with pytest.raises(QmfError):
        async with asyncio.timeout(10):
            await client.open()
    await client.close()


async def mqtt(broker: VisibleBroker) -> None:
    for qos in (0, 1, 2):
        refused = await connect(broker, "will", will=Will("secret", b"bob", qos), username="bob", password=b"b")
        assert refused.connack is not None
        assert refused.connack.code == ReasonCode.NOT_AUTHORIZED
    client = await connect(broker, "bob-1", username="bob", password=b"b")
    assert client.connack is not None
    if client.connack.code == ReasonCode.NOT_AUTHORIZED:
        await client.closed()
        return
    filters = ("secret", "#", "+/x", "$SYS/#", "$share/all/#")
    assert await client.subscribe(*filters, qos=1) == (ReasonCode.NOT_AUTHORIZED,) * len(filters)
    for topic in ("secret", "q", "a/b"):
        for qos in (1, 2):
            for retain in (False, True):
                assert await client.publish(topic, b"bob", qos, retain=retain) == ReasonCode.NOT_AUTHORIZED
    await client.publish("secret", b"bob", 0, retain=True)
    assert await client.nothing_waits()
    client.cut()
    kept = await connect(broker, "bob-2", expiry=1000, clean=False, username="bob", password=b"b")
    assert kept.connack is not None
    if kept.connack.code == 0:
        assert await kept.subscribe("secret", qos=1) == (ReasonCode.NOT_AUTHORIZED,)
        await kept.disconnect(0, {PacketProperty.SESSION_EXPIRY: 0})


async def mqtt_over_websocket(broker: VisibleBroker) -> None:
    assert broker.ws_url is not None
    packets = PacketReader(version=Version.V5)
    subprotocols = [websockets.Subprotocol("mqtt")]
    async with websockets.connect(broker.ws_url, subprotocols=subprotocols, proxy=None) as client:

        async def ask(packet: Packet) -> Packet | None:
            await client.send(encode_packet(packet, Version.V5))
            while (answer := packets.next_packet()) is None:
                try:
                    data = await client.recv()
                except websockets.ConnectionClosed:
                    return None
                assert isinstance(data, bytes)
                packets.feed(data)
            return answer

        answer = await ask(Connect(Version.V5, "bob-3", True, 0, None, "bob", b"b", {}))
        assert isinstance(answer, ConnAck)
        if answer.code == ReasonCode.NOT_AUTHORIZED:
            return
        refused = await ask(Publish("secret", b"bob", 1, packet_id=1))
        assert isinstance(refused, MessageAnswer)
        assert refused.code == ReasonCode.NOT_AUTHORIZED
        subscribed = await ask(Subscribe(2, (SubscriptionRequest("#", 1),), {}))
        assert isinstance(subscribed, SubAck)
        assert tuple(subscribed.codes) == (ReasonCode.NOT_AUTHORIZED,)


async def stomp(broker: VisibleBroker) -> None:
    assert broker.stomp_url is not None
    port = int(broker.stomp_url.rpartition(":")[2])
    for command, headers in FRAMES:
        client = StompClient(*await asyncio.open_connection("127.0.0.1", port), "1.2")
        client.send("CONNECT", accept_version="1.2", host="mq", login="bob", passcode="b")
        assert (await client.frame()).command == "CONNECTED"
        client.send(command, b"bob" if command == "SEND" else b"", **headers)
        assert "denies it" in await client.error(), (command, headers)
        await client.closed()
    client = StompClient(*await asyncio.open_connection("127.0.0.1", port), "1.2")
    client.send("CONNECT", accept_version="1.2", host="mq", login="bob", passcode="b")
    await client.frame()
    client.send("BEGIN", transaction="t")
    client.send("SEND", b"bob", destination="q", transaction="t")
    client.send("COMMIT", transaction="t")
    assert "denies it" in await client.error()
    await client.closed()


async def stomp_over_websocket(broker: VisibleBroker) -> None:
    assert broker.ws_url is not None
    login = "CONNECT\naccept-version:1.2\nhost:mq\nlogin:bob\npasscode:b\n\n\0"
    for command, headers in FRAMES:
        lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
        body = "bob" if command == "SEND" else ""
        async with websockets.connect(broker.ws_url, subprotocols=[STOMP], proxy=None) as client:
            await client.send(login)
            assert (await client.recv(decode=False)).startswith(b"CONNECTED\n")
            await client.send(f"{command}\n{lines}\n{body}\0")
            refused = await client.recv(decode=False)
            assert refused.startswith(b"ERROR\n"), (command, headers)
            assert b"denies it" in refused, (command, headers)
            with pytest.raises(websockets.ConnectionClosed):
                await client.recv()


Attempt = Callable[[VisibleBroker], Awaitable[None]]


@pytest.mark.parametrize("rules", ["", ACCESS], ids=["nothing", "access"])
@pytest.mark.parametrize(
    "attempt", [amqp, amqp_over_websocket, management, mqtt, mqtt_over_websocket, stomp, stomp_over_websocket]
)
async def test_what_no_rule_allows(tmp_path: Path, attempt: Attempt, rules: str) -> None:
    async with unchanged(tmp_path, rules) as broker:
        await attempt(broker)
