"""Clients of both versions at a broker: publishing and subscribing with each QoS, options of subscriptions, errors."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from broker.protocols.mqtt.wire_client import connect, mqtt_broker

from qmf.broker.protocols.mqtt.codec.packets import MessageAnswer, Publish, SubscriptionRequest
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty
from qmf.broker.protocols.mqtt.codec.values import PacketType, ReasonCode, Version

_P = PacketProperty

pytestmark = pytest.mark.asyncio

VERSIONS = pytest.mark.parametrize("version", list(Version), ids=["3.1.1", "5"])


@VERSIONS
async def test_a_message_goes_from_one_client_to_another(version: Version) -> None:
    async with mqtt_broker() as broker:
        one, other = await connect(broker, "one", version=version), await connect(broker, "other", version=version)
        assert await one.subscribe("a/+/c") == (0,)
        await other.publish("a/b/c", b"hello")
        await other.publish("a/b", b"other topic")
        assert await one.publication() == Publish("a/b/c", b"hello")
        assert await one.nothing_waits()
        await one.disconnect()
        await other.disconnect()


@VERSIONS
@pytest.mark.parametrize("sent", [0, 1, 2])
@pytest.mark.parametrize("wanted", [0, 1, 2])
async def test_the_lower_qos_applies(version: Version, sent: int, wanted: int) -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker, version=version)
        other = await connect(broker, "other", version=version)
        assert await client.subscribe("a", qos=wanted) == (wanted,)
        assert await other.publish("a", b"x", sent) == 0
        message = await client.publication()
        assert (message.qos, message.payload, message.duplicate) == (min(sent, wanted), b"x", False)
        if message.qos == 1:
            client.acknowledge(message)
        elif message.qos == 2:
            client.acknowledge(message, PacketType.PUBREC)
            released = await client.answer(PacketType.PUBREL)
            client.send(MessageAnswer(PacketType.PUBCOMP, released.packet_id))
        assert await client.nothing_waits()


async def test_a_message_with_qos_2_that_comes_again_is_published_once() -> None:
    async with mqtt_broker() as broker:
        client, other = await connect(broker), await connect(broker, "other")
        await client.subscribe("a")
        other.send(Publish("a", b"1", 2, packet_id=7), Publish("a", b"1", 2, duplicate=True, packet_id=7))
        for _ in range(2):
            assert (await other.answer(PacketType.PUBREC)).packet_id == 7
        other.send(MessageAnswer(PacketType.PUBREL, 7), MessageAnswer(PacketType.PUBREL, 7))
        assert (await other.answer(PacketType.PUBCOMP)).code == 0
        assert (await other.answer(PacketType.PUBCOMP)).code == ReasonCode.PACKET_ID_NOT_FOUND
        other.send(Publish("a", b"2", 2, packet_id=7))
        assert await client.payloads(2) == [b"1", b"2"]
        assert await client.nothing_waits()


async def test_the_order_of_messages_and_answers_is_kept() -> None:
    async with mqtt_broker() as broker:
        client, other = await connect(broker), await connect(broker, "other")
        await client.subscribe("#", qos=2)
        sent = [
            Publish(f"t/{number % 3}", str(number).encode(), number % 2 + 1, packet_id=number)
            for number in range(1, 50)
        ]
        other.send(*sent)
        for packet in sent:
            answer = await other.receive()
            assert isinstance(answer, MessageAnswer)
            assert answer.packet_id == packet.packet_id
        assert await client.payloads(49) == [packet.payload for packet in sent]


async def test_a_client_gets_no_more_than_it_takes() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker, properties={_P.RECEIVE_MAXIMUM: 2})
        other = await connect(broker, "other")
        await client.subscribe("a", qos=2)
        for number in range(5):
            await other.publish("a", str(number).encode(), 1 + number % 2)
        first, second = await client.publication(), await client.publication()
        assert await client.nothing_waits()
        client.acknowledge(first)
        third = await client.publication()
        assert await client.nothing_waits()
        client.acknowledge(second, PacketType.PUBREC)
        await client.answer(PacketType.PUBREL)
        assert await client.nothing_waits()
        client.acknowledge(second, PacketType.PUBCOMP)
        assert [each.payload for each in (first, second, third, await client.publication())] == [b"0", b"1", b"2", b"3"]


async def test_messages_keep_their_properties() -> None:
    properties = {
        _P.PAYLOAD_FORMAT: 1,
        _P.CONTENT_TYPE: "text/plain",
        _P.RESPONSE_TOPIC: "answers/1",
        _P.CORRELATION_DATA: b"\0\xff",
        _P.USER_PROPERTY: (("a", "1"), ("b", "2"), ("a", "3")),
    }
    async with mqtt_broker() as broker:
        client = await connect(broker)
        await client.subscribe("a")
        await client.publish("a", b"x", properties=properties)
        assert (await client.publication()).properties == properties


async def test_the_time_to_live_goes_on() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker, "stays", expiry=100)
        await client.subscribe("a", qos=1)
        await client.disconnect()
        other = await connect(broker, "other")
        await other.publish("a", b"ends", 1, properties={_P.MESSAGE_EXPIRY: 0})
        await other.publish("a", b"stays", 1, properties={_P.MESSAGE_EXPIRY: 1000})
        client = await connect(broker, "stays", clean=False, expiry=100)
        message = await client.publication()
        assert message.payload == b"stays"
        assert 900 < message.properties[_P.MESSAGE_EXPIRY] <= 1000


async def test_overlapping_subscriptions_give_one_message_with_all_identifiers() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker)
        await client.subscribe("a/#", qos=0, identifier=3)
        await client.subscribe("a/b", qos=1, identifier=1000)
        await client.subscribe("#", qos=0)
        await client.publish("a/b", b"x", 1)
        message = await client.publication()
        assert message.qos == 1
        assert sorted(message.properties[_P.SUBSCRIPTION_ID]) == [3, 1000]
        client.acknowledge(message)
        assert await client.nothing_waits()


async def test_the_options_of_a_subscription() -> None:
    async with mqtt_broker() as broker:
        client, other = await connect(broker), await connect(broker, "other")
        await client.subscribe(
            SubscriptionRequest("a", no_local=True),
            SubscriptionRequest("kept", retain_as_published=True),
            SubscriptionRequest("plain"),
        )
        await client.publish("a", b"own")
        await other.publish("a", b"other")
        assert await client.payloads(1) == [b"other"]
        await other.publish("kept", b"x", retain=True)
        await other.publish("plain", b"x", retain=True)
        assert [(await client.publication()).retain for _ in range(2)] == [True, False]


@VERSIONS
async def test_subscriptions_are_replaced_and_ended(version: Version) -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker, version=version)
        assert await client.subscribe("a", "b", qos=0) == (0, 0)
        assert await client.subscribe("a", qos=1) == (1,)
        await client.publish("a", b"x", 1)
        message = await client.publication()
        assert message.qos == 1
        client.acknowledge(message)
        codes = await client.unsubscribe("a", "never")
        assert codes == ((0, ReasonCode.NO_SUBSCRIPTION_EXISTED) if version is Version.V5 else ())
        await client.publish("a", b"x")
        await client.publish("b", b"y")
        assert await client.payloads(1) == [b"y"]


async def test_a_filter_that_is_wrong_is_refused_alone() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker)
        assert await client.subscribe("a/#/b", "c", qos=1) == (ReasonCode.TOPIC_FILTER_INVALID, 1)
        old = await connect(broker, "old", version=Version.V3)
        assert await old.subscribe("a/#/b", "c", qos=1) == (0x80, 1)


async def test_there_is_a_limit_of_subscriptions() -> None:
    async with mqtt_broker({"max_subscriptions": 1}) as broker:
        client = await connect(broker)
        assert await client.subscribe("a", "b", "a") == (0, ReasonCode.QUOTA_EXCEEDED, 0)


async def test_topics_of_the_broker_are_its_own() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker)
        assert await client.publish("$SYS/x", b"", 1) == ReasonCode.NOT_AUTHORIZED
        assert await client.nothing_waits()


async def test_a_message_that_is_too_large_for_the_client_is_left_out() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker, properties={_P.MAXIMUM_PACKET_SIZE: 100})
        other = await connect(broker, "other")
        await client.subscribe("a", qos=1)
        await other.publish("a", b"x" * 200, 1)
        await other.publish("a", b"small", 1)
        assert await client.payloads(1) == [b"small"]


@pytest.mark.slow
async def test_more_than_the_disk_takes_at_once_is_answered_in_order(tmp_path: Path) -> None:
    async with mqtt_broker({"receive_maximum": 10}, data_dir=tmp_path) as broker:
        stays = await connect(broker, "stays", expiry=100)
        await stays.subscribe("a", qos=1)
        client = await connect(broker, version=Version.V3)
        for start in range(1, 1000, 100):
            client.send(*(Publish("a", b"x" * 1000, 1, packet_id=number) for number in range(start, start + 100)))
            await asyncio.sleep(0)
        answers = [(await client.answer(PacketType.PUBACK)).packet_id for _ in range(1000)]
        assert answers == list(range(1, 1001))
