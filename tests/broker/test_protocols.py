"""A message that a client of one protocol sends, as those of all receive it, as docs/mqtt.md and stomp.md say."""

from __future__ import annotations

from collections.abc import AsyncIterator

import attrs
import pytest
from broker.protocols.mqtt import wire_client as mqtt
from broker.protocols.stomp.stomp_wire import StompBroker, WireClient, dial, stomp_broker
from support.waiting import WAIT_LIMIT

from qmf.broker.protocols.mqtt.codec.properties import PacketProperty as Property
from qmf.broker.protocols.mqtt.options import MqttOptions
from qmf.messaging import Message, aio

TOPIC = "house/hall/temperature"


@attrs.frozen
class Seen:
    """A message as a client has received it.

    Attributes:
        topic, payload, durable, content_type, correlation, reply_to: of it; the address for replies as AMQP has it.
        user: the property ``place`` that its sender gave it.
    """

    topic: str
    payload: bytes
    durable: bool
    content_type: str | None
    correlation: bytes
    reply_to: str | None
    user: str | None


SENT = Seen(TOPIC, b"21.5", True, "text/plain", b"7", "mqtt/answers", "hall")


class Clients:
    """One client of each protocol, which has subscribed to the topics below ``house``."""

    def __init__(
        self, session: aio.Session, receiver: aio.Receiver, mqtt_client: mqtt.WireClient, stomp: WireClient
    ) -> None:
        self._session, self._receiver = session, receiver
        self._mqtt, self._stomp = mqtt_client, stomp

    async def send(self, protocol: str) -> None:
        """Send the message of `SENT`."""
        if protocol == "AMQP":
            sender = await self._session.sender("mqtt")
            message = Message(
                b"21.5",
                subject=TOPIC,
                durable=True,
                content_type="text/plain",
                correlation_id=b"7",
                reply_to="mqtt/answers",
                properties={"place": "hall"},
            )
            await sender.send(message)
        elif protocol == "MQTT":
            properties = {
                Property.CONTENT_TYPE: "text/plain",
                Property.CORRELATION_DATA: b"7",
                Property.RESPONSE_TOPIC: "answers",
                Property.USER_PROPERTY: (("place", "hall"),),
            }
            assert await self._mqtt.publish(TOPIC, b"21.5", 1, properties=properties) == 0
        else:
            self._stomp.send(
                "SEND",
                b"21.5",
                destination=f"/exchange/mqtt/{TOPIC}",
                persistent="true",
                content_type="text/plain",
                correlation_id="7",
                reply_to="/exchange/mqtt/answers",
                place="hall",
            )

    async def receive(self, protocol: str) -> Seen:
        """The next message that a client gets."""
        if protocol == "AMQP":
            message = await self._receiver.fetch(timeout=WAIT_LIMIT)
            await self._session.acknowledge()
            content = message.content
            return Seen(
                message.subject or "",
                content.encode() if isinstance(content, str) else bytes(content),
                bool(message.durable),
                message.content_type,
                as_bytes(message.correlation_id),
                None if message.reply_to is None else str(message.reply_to),
                message.properties.get("place"),
            )
        if protocol == "MQTT":
            packet = await self._mqtt.publication()
            self._mqtt.acknowledge(packet)
            reply = packet.properties.get(Property.RESPONSE_TOPIC)
            return Seen(
                packet.topic,
                packet.payload,
                packet.qos == 1,
                packet.properties.get(Property.CONTENT_TYPE),
                packet.properties[Property.CORRELATION_DATA],
                None if reply is None else f"mqtt/{reply}",
                dict(packet.properties[Property.USER_PROPERTY]).get("place"),
            )
        frame = await self._stomp.message()
        headers = frame.headers
        return Seen(
            headers["destination"].removeprefix("/exchange/mqtt/"),
            frame.body,
            headers.get("persistent") == "true",
            headers.get("content-type"),
            headers["correlation-id"].encode(),
            headers.get("reply-to"),
            headers.get("place"),
        )


def as_bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


@pytest.fixture
async def clients() -> AsyncIterator[Clients]:
    async with stomp_broker(mqtt=MqttOptions(port=0)) as broker, aio.Connection(broker.url) as connection:
        assert isinstance(broker, StompBroker)
        session = await connection.session()
        receiver = await session.receiver("mqtt/house/#")
        mqtt_client = await mqtt.connect(broker)
        await mqtt_client.subscribe("house/#", qos=1)
        stomp = await dial(broker)
        await stomp.ask("SUBSCRIBE", id="s", destination="/exchange/mqtt/house/#")
        yield Clients(session, receiver, mqtt_client, stomp)
        await mqtt_client.disconnect()


PROTOCOLS = ("AMQP", "MQTT", "STOMP")


@pytest.mark.slow
@pytest.mark.asyncio
@pytest.mark.parametrize("sender", PROTOCOLS)
async def test_a_message_of_one_protocol_reaches_all(clients: Clients, sender: str) -> None:
    await clients.send(sender)
    assert {protocol: await clients.receive(protocol) for protocol in PROTOCOLS} == dict.fromkeys(PROTOCOLS, SENT)
