"""A user whom no rule allows anything changes, sends and receives nothing by AMQP, management, MQTT and STOMP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from broker.access.test_control import USERS, control, session_of
from broker.protocols.mqtt.wire_client import connect, mqtt_broker
from broker.protocols.stomp.stomp_wire import WireClient as StompClient
from broker.visible_broker import VisibleBroker

from qmf.broker.protocols.mqtt.codec.packets import Will
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty
from qmf.broker.protocols.mqtt.codec.values import ReasonCode
from qmf.broker.protocols.stomp.options import StompOptions
from qmf.console.aio import Client
from qmf.errors import QmfError
from qmf.messaging import aio
from qmf.messaging.exceptions import MessagingError
from qmf.messaging.message import Message

RULES = "acl allow ann@QPID all all\nacl deny all all\n"
#: To know what there is, allows nothing to be done with it.
ACCESS = "acl allow bob@QPID access\n"

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


def nodes(broker: VisibleBroker) -> dict[str, object]:
    """What there is, with its messages and bindings."""
    found: dict[str, object] = {queue.name: len(queue.contents) for queue in broker.registry.queues}
    for exchange in broker.registry.exchanges:
        found[f"exchange {exchange.name}"] = sorted(
            (queue.name, str(binding.spec)) for queue in broker.registry.queues for binding in exchange.bindings(queue)
        )
    return found


async def send(session: aio.Session, address: str) -> None:
    sender = await session.sender(address)
    await sender.send(Message("bob", subject="secret"), sync=True)


async def amqp(broker: VisibleBroker) -> None:
    async with session_of(broker, "bob") as session:
        for address in SENDERS:
            with pytest.raises(MessagingError):
                await send(session, address)
        for address in RECEIVERS:
            with pytest.raises(MessagingError):
                await session.receiver(address)
    connection = aio.Connection(f"amqp://bob:{USERS['bob']}@127.0.0.1:{broker.port}")
    await connection.open()
    try:
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


Attempt = Callable[[VisibleBroker], Awaitable[None]]


@pytest.mark.parametrize("rules", ["", ACCESS], ids=["nothing", "access"])
@pytest.mark.parametrize("attempt", [amqp, management, mqtt, stomp])
async def test_what_no_rule_allows(tmp_path: Path, attempt: Attempt, rules: str) -> None:
    async with (
        mqtt_broker(
            users=USERS, access=control(tmp_path, rules + RULES), queues=["q"], stomp=StompOptions(port=0)
        ) as broker,
        session_of(broker, "ann") as session,
    ):
        topics = await session.receiver("amq.topic/#")
        await (await session.sender("q")).send(Message("ann"), sync=True)
        watcher = await connect(broker, "ann-1", username="ann", password=b"a")
        assert await watcher.subscribe("#", qos=1) == (1,)
        before = nodes(broker)
        await attempt(broker)
        assert nodes(broker) == before
        assert await watcher.nothing_waits()
        assert topics.available() == 0
        await (await session.sender("amq.topic")).send(Message("last", subject="k"), sync=True)
        assert (await topics.fetch(10)).content == "last"
