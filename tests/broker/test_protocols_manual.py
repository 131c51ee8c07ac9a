"""What the manual of protocols of Artemis says and shows, as far as it is about clients: its examples at our broker."""

from __future__ import annotations

import asyncio
import time

import pytest
from broker.protocols.mqtt.wire_client import connect, mqtt_broker
from broker.protocols.stomp.stomp_wire import StompBroker, WireClient, dial, stomp_broker
from support.waiting import until

from qmf.broker import Broker
from qmf.broker.protocols.mqtt.codec.packets import Will
from qmf.client import BrokerAgent
from qmf.messaging import Connection, aio
from qmf.messaging.message import Message

pytestmark = pytest.mark.asyncio


async def bodies(client: WireClient, count: int) -> list[bytes]:
    return [(await client.message()).body for _ in range(count)]


# STOMP


async def test_stomp_anycast_and_multicast_by_header_and_by_prefix() -> None:
    async with stomp_broker() as broker:
        one, two, sender = await dial(broker), await dial(broker), await dial(broker)
        for client in (one, two):
            await client.ask("SUBSCRIBE", id="m", destination="news", subscription_type="MULTICAST")
            await client.ask("SUBSCRIBE", id="a", destination="jobs", subscription_type="ANYCAST")
        await sender.ask("SEND", b"for both", destination="news", destination_type="MULTICAST")
        await sender.ask("SEND", b"by prefix", destination="/topic/news")
        assert await bodies(one, 2) == await bodies(two, 2) == [b"for both", b"by prefix"]
        for body in (b"1", b"2"):
            await sender.ask("SEND", body, destination="jobs", destination_type="ANYCAST")
        assert sorted(await bodies(one, 1) + await bodies(two, 1)) == [b"1", b"2"]
        # The prefix is no part of the name; without any indication it is a queue.
        await sender.ask("SEND", b"3", destination="/queue/others")
        await sender.ask("SEND", b"4", destination="others")
        await sender.ask("SUBSCRIBE", id="1", destination="others")
        assert await bodies(sender, 2) == [b"3", b"4"]


async def test_stomp_host_is_ignored_and_twice_the_heartbeat_is_allowed() -> None:
    async with stomp_broker() as broker:
        client = await broker.open_client()
        client.send("CONNECT", accept_version="1.2", host="any.example", heart_beat="1000,0")
        frame = await client.frame()
        assert (frame.command, frame.headers["version"]) == ("CONNECTED", "1.2")
        assert frame.headers["heart-beat"] == "5000,5000"  # the larger value of both sides counts, twice


async def test_stomp_selectors() -> None:
    async with stomp_broker() as broker:
        client, sender = await dial(broker), await dial(broker)
        selector = "convert_string_expressions:color = 'red' AND size > 4"
        await client.ask("SUBSCRIBE", id="1", destination="/queue/q", selector=selector)
        for color, size in (("red", "5"), ("blue", "5"), ("red", "3"), ("red", "9")):
            await sender.ask("SEND", f"{color} {size}".encode(), destination="/queue/q", color=color, size=size)
        assert await bodies(client, 2) == [b"red 5", b"red 9"]


async def test_stomp_acknowledgements_belong_to_transactions() -> None:
    """Other than by Artemis, as its manual says."""
    async with stomp_broker() as broker:
        client = await dial(broker)
        await client.ask("SEND", b"1", destination="/queue/q")
        await client.ask("SUBSCRIBE", id="1", destination="/queue/q", ack="client-individual")
        message = await client.message()
        await client.ask("BEGIN", transaction="t")
        await client.ask("ACK", id=message.headers["ack"], transaction="t")
        await client.ask("ABORT", transaction="t")
        queue = broker.registry.queue("q")
        assert queue is not None
        assert queue.contents.depth.count == 1
        await client.ask("ACK", id=message.headers["ack"])
        assert queue.contents.depth.count == 0


async def test_stomp_content_length_says_text_or_bytes() -> None:
    async with stomp_broker() as broker, aio.Connection(broker.url) as connection:
        receiver = await (await connection.session()).receiver("q; {create: always}")
        client = await dial(broker, "1.0")
        client.write(b"SEND\ndestination:/queue/q\n\ntext\0SEND\ndestination:/queue/q\ncontent-length:3\n\n\0\1\2\0")
        assert [(await receiver.fetch(timeout=10)).content for _ in range(2)] == ["text", b"\0\1\2"]


async def durable(broker: StompBroker, name: str = "mysubscription") -> WireClient:
    client = await dial(broker, client_id="myclientid")
    await client.ask("SUBSCRIBE", id="1", destination="/topic/myAddress", durable_subscription_name=name)
    return client


async def test_stomp_durable_subscriptions_made_before_used_and_deleted() -> None:
    async with stomp_broker(management=3600.0) as broker:

        def configure() -> None:
            with Connection.establish(broker.url) as connection:
                agent = BrokerAgent(connection)
                agent.addQueue("myclientid.mysubscription")
                agent.bind("amq.topic", "myclientid.mysubscription", "myAddress")

        await asyncio.to_thread(configure)
        sender = await dial(broker)
        await sender.ask("SEND", b"before", destination="/topic/myAddress")
        client = await durable(broker)
        assert await bodies(client, 1) == [b"before"]
        await client.ask("DISCONNECT")
        await sender.ask("SEND", b"meanwhile", destination="/topic/myAddress")
        client = await durable(broker)
        assert await bodies(client, 1) == [b"meanwhile"]
        await client.ask("UNSUBSCRIBE", id="1", durable_subscription_name="mysubscription")
        assert broker.registry.queue("myclientid.mysubscription") is None


async def test_stomp_large_messages() -> None:
    async with stomp_broker() as broker:
        client = await dial(broker)
        await client.ask("SUBSCRIBE", id="1", destination="/queue/q")
        large = bytes(range(256)) * 20_000
        client.send("SEND", large, destination="/queue/q", content_length=str(len(large)))
        assert await bodies(client, 1) == [large]


# MQTT


async def test_mqtt_wildcards_retained_messages_and_wills() -> None:
    async with mqtt_broker() as broker:
        branch, level = await connect(broker, "branch"), await connect(broker, "level")
        await branch.subscribe("/uk/#", qos=2)
        await level.subscribe("/uk/+/stores")
        will = Will("/uk/failed", b"sensor", 1, False, {})
        sender = await connect(broker, "sender", will=will)
        topics = ["/uk/cities", "/uk/cities/newcastle", "/uk/rivers/tyne", "/uk/newcastle/stores"]
        topics.append("/uk/cities/newcastle/stores")
        for qos, topic in zip((0, 1, 2, 0, 1), topics, strict=True):
            await sender.publish(topic, topic.encode(), qos)
        received = [await branch.publication() for _ in topics]
        assert [(each.topic, each.qos) for each in received] == list(zip(topics, (0, 1, 2, 0, 1), strict=True))
        assert await level.payloads(1) == [b"/uk/newcastle/stores"]
        assert await level.nothing_waits()
        await sender.publish("/uk/state", b"up", 1, retain=True)
        late = await connect(broker, "late")
        await late.subscribe("/uk/state")
        assert await late.payloads(1) == [b"up"]
        sender.cut()
        await branch.publication()  # the state
        assert (await branch.publication()).payload == b"sensor"


# AMQP


async def test_amqp_delivery_time_counts_before_the_delay() -> None:
    async with Broker(port=0, queues=["q"]) as broker, aio.Connection(broker.url) as connection:
        session = await connection.session()
        sender, receiver = await session.sender("q"), await session.receiver("q")
        now = round(time.time() * 1000)

        def message(content: str, **annotations: int) -> Message:
            named = {f"x-opt-delivery-{name}": value for name, value in annotations.items()}
            return Message(content, properties={"x-amqp-message-annotations": named})

        await sender.send(message("later", delay=3_600_000))
        await sender.send(message("much later", time=now + 3_600_000, delay=1))
        await sender.send(message("now", time=now - 1000, delay=3_600_000))
        assert (await receiver.fetch(timeout=10)).content == "now"
        assert receiver.available() == 0


async def test_amqp_dynamic_links_have_a_queue_of_their_own() -> None:
    async with Broker(port=0) as broker, aio.Connection(broker.url) as connection:
        session = await connection.session()
        receiver = await session.receiver("#")
        sender = await session.sender(receiver.source or "")
        await sender.send("to nobody else")
        assert (await receiver.fetch(timeout=10)).content == "to nobody else"
        await until(lambda: broker.connections == 1, "the connection")
