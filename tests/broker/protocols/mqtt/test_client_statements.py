"""What the standard says of clients at a broker, where docs/mqtt-conformance.md has no other test of it."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from broker.protocols.mqtt.wire_client import WireClient, connect, mqtt_broker, open_client

from qmf.broker.nodes.settings import QueueLimits
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
from qmf.broker.protocols.mqtt.codec.topics import filter_error
from qmf.broker.protocols.mqtt.codec.values import PacketType, ReasonCode

_P, _R = PacketProperty, ReasonCode

pytestmark = pytest.mark.asyncio


async def received_until_closed(client: WireClient) -> list[Packet]:
    found: list[Packet] = []
    with contextlib.suppress(ConnectionError):
        while True:
            found.append(await client.receive())
    return found


# Connections


@pytest.mark.parametrize("first", [Publish("a", b"x"), Ping(), Disconnect()], ids=lambda packet: packet.type.name)
async def test_who_does_not_begin_with_connect_is_disconnected_without_a_word(first: Packet) -> None:
    async with mqtt_broker() as broker:
        client = await open_client(broker)
        client.send(first, Connect())
        assert await received_until_closed(client) == []


async def test_a_second_connect_ends_the_connection() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker)
        client.send(Connect())
        [packet] = await received_until_closed(client)
        assert isinstance(packet, Disconnect)
        assert packet.code == _R.PROTOCOL_ERROR


@pytest.mark.parametrize(
    ("begin", "answer"),
    [
        (b"\x10\x0d\0\4MQTT\x09\2\0\0\0\0\0", b"\x20\2\0\1"),
        (b"\x10\x0d\0\4mqtt\5\2\0\0\0\0\0", b""),
        (b"\x10\x0d\0\4MQTT\5\3\0\0\0\0\0", b""),
    ],
    ids=["version", "name", "reserved flag"],
)
async def test_a_connect_that_is_wrong_ends_the_connection(begin: bytes, answer: bytes) -> None:
    async with mqtt_broker() as broker:
        client = await open_client(broker)
        client.send_bytes(begin)
        assert await client.bytes_until_closed() == answer


async def test_what_follows_a_connect_that_is_refused_is_not_handled() -> None:
    async with mqtt_broker(users={"ann": "a"}) as broker:
        watcher = await connect(broker, "watcher", username="ann", password=b"a")
        await watcher.subscribe("a")
        client = await open_client(broker)
        client.send(Connect(username="ann", password=b"wrong"), Publish("a", b"x"), Publish("a", b"y", 1, packet_id=1))
        [packet] = await received_until_closed(client)
        assert isinstance(packet, ConnAck)
        assert (packet.code, packet.session_present) == (_R.BAD_USER_OR_PASSWORD, False)
        assert await watcher.nothing_waits()


async def test_what_follows_a_connect_that_is_accepted_is_handled_after_connack() -> None:
    async with mqtt_broker() as broker:
        client = await open_client(broker)
        client.send(Connect(), Subscribe(1, (SubscriptionRequest("a"),)), Publish("a", b"x"))
        assert [(await client.receive()).type for _ in range(3)] == [
            PacketType.CONNACK,
            PacketType.SUBACK,
            PacketType.PUBLISH,
        ]


@pytest.mark.parametrize(
    "client_id", ["a", "0123456789ABCDEFGHIJKLM", "nopqrstuvwxyzNOPQRSTUVW", "XYZabcdefghijklm", "ü/ #+"]
)
async def test_client_ids(client_id: str) -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker, client_id, expiry=100)
        await client.subscribe("a", qos=1)
        other = await connect(broker, client_id + "x", clean=False, expiry=100)
        assert other.connack == ConnAck(False, 0, other.connack.properties if other.connack else {})
        await other.publish("a", b"x", 1)
        assert await client.payloads(1) == [b"x"]


async def test_connack_comes_first_and_what_waits_after_it() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker, expiry=100)
        await client.subscribe("a", qos=1)
        await client.disconnect()
        other = await connect(broker, "other")
        await other.publish("a", b"x", 1)
        client = await connect(broker, clean=False, expiry=100)  # which has received CONNACK first
        assert client.connack is not None
        assert (client.connack.session_present, client.connack.code) == (True, 0)
        assert await client.payloads(1) == [b"x"]
        client.send(Disconnect(_R.DISCONNECT_WITH_WILL))
        assert await received_until_closed(client) == []


async def test_a_session_lives_as_long_as_its_connection_whatever_its_expiry() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker, expiry=0)
        await client.subscribe("a", qos=1)
        for number in range(3):
            await client.publish("a", str(number).encode(), 1)
            assert await client.payloads(1) == [str(number).encode()]


@pytest.mark.parametrize("retain", [False, True])
async def test_a_will_is_retained_if_it_says_so(retain: bool) -> None:
    async with mqtt_broker() as broker:
        watcher = await connect(broker, "watcher")
        await watcher.subscribe("wills/#")
        client = await connect(broker, will=Will("wills/1", b"lost", 1, retain))
        client.cut()
        assert await watcher.payloads(1) == [b"lost"]
        late = await connect(broker, "late")
        await late.subscribe("wills/#")
        if retain:
            assert await late.payloads(1) == [b"lost"]
        assert await late.nothing_waits()


async def test_a_will_has_the_order_of_its_user_properties_and_no_delay() -> None:
    user = (("b", "1"), ("a", "2"), ("b", "0"))
    async with mqtt_broker() as broker:
        watcher = await connect(broker, "watcher")
        await watcher.subscribe("wills/#")
        will = Will("wills/1", b"lost", properties={_P.USER_PROPERTY: user, _P.WILL_DELAY: 0})
        client = await connect(broker, will=will)
        client.cut()
        assert (await watcher.publication()).properties == {_P.USER_PROPERTY: user}


async def test_without_a_will_nothing_is_published() -> None:
    async with mqtt_broker() as broker:
        watcher = await connect(broker, "watcher")
        await watcher.subscribe("#")
        client = await connect(broker)
        client.cut()
        other = await connect(broker)  # whose session is that of the one that was lost
        await other.publish("end", b"x")
        assert await watcher.payloads(1) == [b"x"]


# Publications


async def test_the_flag_of_duplicates_is_set_for_each_delivery_by_itself() -> None:
    async with mqtt_broker() as broker:
        client, other = await connect(broker), await connect(broker, "other")
        await client.subscribe("a", qos=1)
        for _ in range(2):  # after PUBACK it is another message, whatever its flag says
            other.send(Publish("a", b"x", 1, duplicate=True, packet_id=7))
            assert (await other.answer(PacketType.PUBACK)).packet_id == 7
        found = [await client.publication(), await client.publication()]
        assert [each.duplicate for each in found] == [False, False]
        assert found[0].packet_id != found[1].packet_id


async def test_a_retained_message_is_changed_by_those_with_the_flag_alone() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker)
        for qos, payload, retain in ((2, b"1", True), (1, b"2", True), (0, b"3", False), (0, b"", False)):
            await client.publish("a", payload, qos, retain=retain)
        await client.subscribe("a", qos=2)
        message = await client.publication()
        assert (message.payload, message.qos, message.retain) == (b"2", 1, True)
        client.acknowledge(message)
        await client.publish("a", b"", 1, retain=True)
        ended = await client.publication()
        assert (ended.payload, ended.retain) == (b"", False)
        late = await connect(broker, "late")
        await late.subscribe("a")
        assert await late.nothing_waits()


async def test_packets_of_a_publication_that_is_refused_can_be_used_again() -> None:
    async with mqtt_broker(limits=QueueLimits(None, 1_000)) as broker:
        client = await connect(broker)
        await client.subscribe("a")
        client.send(Publish("a", b"x" * 2000, 2, True, packet_id=7))
        assert (await client.answer(PacketType.PUBREC)).code == _R.QUOTA_EXCEEDED
        client.send(Publish("a", b"y", 2, packet_id=7))
        assert (await client.answer(PacketType.PUBREC)).code == 0
        assert await client.payloads(1) == [b"y"]


async def test_what_the_client_refuses_is_not_sent_again() -> None:
    async with mqtt_broker() as broker:
        client, other = await connect(broker, expiry=100), await connect(broker, "other")
        await client.subscribe("a", qos=2)
        for qos in (1, 2):
            await other.publish("a", b"x", qos)
            message = await client.publication()
            assert message.packet_id is not None
            kind = PacketType.PUBACK if qos == 1 else PacketType.PUBREC
            client.send(MessageAnswer(kind, message.packet_id, _R.IMPLEMENTATION_ERROR))
        assert await client.nothing_waits()
        client.cut()
        client = await connect(broker, clean=False, expiry=100)
        assert await client.nothing_waits()


async def test_a_delivery_with_qos_2_ends_though_the_message_has_expired() -> None:
    async with mqtt_broker() as broker:
        client, other = await connect(broker, expiry=100), await connect(broker, "other")
        await client.subscribe("a", qos=2)
        await other.publish("a", b"x", 2, properties={_P.MESSAGE_EXPIRY: 30})
        sent = await client.publication()
        client.cut()
        now = broker.registry.clock
        broker.registry.clock = lambda: now() + 1000
        broker.registry.expire()
        client = await connect(broker, clean=False, expiry=100)
        again = await client.publication()
        assert (again.payload, again.packet_id, again.duplicate) == (b"x", sent.packet_id, True)
        client.acknowledge(again, PacketType.PUBREC)
        assert (await client.answer(PacketType.PUBREL)).packet_id == sent.packet_id
        client.acknowledge(again, PacketType.PUBCOMP)
        assert await client.nothing_waits()


async def test_nothing_is_sent_again_on_the_same_connection() -> None:
    async with mqtt_broker() as broker:
        client, other = await connect(broker), await connect(broker, "other")
        await client.subscribe("a", qos=2)
        await other.publish("a", b"1", 1)
        await other.publish("a", b"2", 2)
        found = [await client.publication(), await client.publication()]
        client.acknowledge(found[1], PacketType.PUBREC)
        await client.answer(PacketType.PUBREL)
        await client.subscribe("b")
        await other.publish("b", b"3")
        assert await client.payloads(1) == [b"3"]
        assert await client.nothing_waits()


async def test_other_packets_are_answered_whatever_is_under_way() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker, properties={_P.RECEIVE_MAXIMUM: 1})
        await client.subscribe("a", qos=1)
        for _ in range(3):
            await client.publish("a", b"x", 1)
        first = await client.publication()
        client.send(Subscribe(50, (SubscriptionRequest("b"),)))
        assert await client.receive() == SubAck(50, (0,))
        client.send(Unsubscribe(51, ("b",)))
        assert await client.receive() == UnsubAck(51, (0,))
        assert await client.publish("c", b"x", 2) == 0
        assert await client.nothing_waits()
        client.acknowledge(first)
        assert await client.payloads(1) == [b"x"]


# Subscriptions


async def test_codes_have_the_order_of_the_filters() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker)
        requests = [SubscriptionRequest(name, qos) for name, qos in (("a", 2), ("b#", 1), ("c", 0), ("d", 1))]
        client.send(Subscribe(70, requests))
        assert await client.receive() == SubAck(
            70, (2, _R.TOPIC_FILTER_INVALID, 0, 1), {_P.REASON_STRING: filter_error("b#")}
        )
        client.send(Unsubscribe(71, ("d", "b", "a", "c", "a")))
        no = _R.NO_SUBSCRIPTION_EXISTED
        assert await client.receive() == UnsubAck(71, (0, no, 0, 0, no))


async def test_filters_are_compared_character_by_character() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker)
        await client.subscribe("a/+", "é", "b//c", "D")
        no = _R.NO_SUBSCRIPTION_EXISTED
        assert await client.unsubscribe("a/b", "a/#", "e\u0301", "b/c", "d") == (no,) * 5
        for topic in ("e\u0301", "b/c", "d", "a/b/c", "A/b"):
            await client.publish(topic, b"no")
        await client.publish("é", b"1")
        await client.publish("b//c", b"2")
        await client.publish("D", b"3")
        await client.publish("a/\ufeff", b"4")
        found = [await client.publication() for _ in range(4)]
        assert [(each.topic, each.payload) for each in found] == [
            ("é", b"1"),
            ("b//c", b"2"),
            ("D", b"3"),
            ("a/\ufeff", b"4"),
        ]
        assert await client.nothing_waits()


async def test_the_end_of_a_subscription_lets_deliveries_end() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker, expiry=100)
        await client.subscribe("a", qos=2)
        await client.publish("a", b"1", 1)
        await client.publish("a", b"2", 2)
        first, second = await client.publication(), await client.publication()
        assert await client.unsubscribe("a") == (0,)
        await client.publish("a", b"3", 2)
        client.acknowledge(second, PacketType.PUBREC)
        assert (await client.answer(PacketType.PUBREL)).packet_id == second.packet_id
        client.acknowledge(second, PacketType.PUBCOMP)
        client.cut()
        client = await connect(broker, clean=False, expiry=100)
        again = await client.publication()
        assert (again.payload, again.packet_id) == (b"1", first.packet_id)
        assert await client.nothing_waits()


async def test_a_subscription_in_place_of_another_loses_nothing() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker, properties={_P.RECEIVE_MAXIMUM: 1})
        other = await connect(broker, "other")
        await other.publish("a", b"kept", 1, retain=True)
        await client.subscribe("a", qos=1)
        retained = await client.publication()
        for number in range(3):
            await other.publish("a", str(number).encode(), 1)
        assert await client.subscribe("a", qos=1) == (1,)
        found: list[Any] = [retained]
        for _ in range(4):
            client.acknowledge(found[-1])
            found.append(await client.publication())
        assert [(each.payload, each.retain) for each in found] == [
            (b"kept", True),
            (b"0", False),
            (b"1", False),
            (b"2", False),
            (b"kept", True),
        ]
