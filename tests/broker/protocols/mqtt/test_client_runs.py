"""Clients that send and receive many messages that are alike: these are handled together, with the same results."""

from __future__ import annotations

import pytest
from broker.protocols.mqtt.wire_client import connect, mqtt_broker

from qmf.broker.protocols.mqtt.codec.packets import MessageAnswer, Packet, Publish, SubscriptionRequest
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty
from qmf.broker.protocols.mqtt.codec.values import PacketType, ReasonCode, Version
from qmf.messaging import aio

pytestmark = pytest.mark.asyncio

_P = PacketProperty
COUNT = 300


def publications(count: int = COUNT, qos: int = 1, size: int = 0, properties: object = None) -> list[Packet]:
    return [
        Publish(
            "a",
            f"{number}:".encode() + b"x" * size,
            qos,
            packet_id=number + 1 if qos else None,
            properties=properties or {},  # type: ignore[arg-type]
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("version", Version, ids=lambda version: version.name)
@pytest.mark.parametrize("qos", range(3))
@pytest.mark.parametrize("size", [0, 3_000])
async def test_all_arrive_in_their_order(version: Version, qos: int, size: int) -> None:
    async with mqtt_broker() as broker:
        receiver = await connect(broker, "receiver", version=version)
        sender = await connect(broker, "sender", version=version)
        await receiver.subscribe("a", qos=1)
        sent = publications(qos=qos, size=size)
        sender.send(*sent)
        ids = []
        for packet in sent:
            found = await receiver.publication()
            assert isinstance(packet, Publish)
            assert (found.payload, found.topic, found.qos) == (packet.payload, "a", min(qos, 1))
            if qos:
                ids.append(found.packet_id)
                receiver.acknowledge(found)
        assert len(set(ids)) == (COUNT if qos else 0)
        kind = {1: PacketType.PUBACK, 2: PacketType.PUBREC}.get(qos)
        if kind is not None:
            assert [(await sender.answer(kind)).packet_id for _ in sent] == list(range(1, COUNT + 1))
        assert await receiver.nothing_waits()


async def test_aliases_identifiers_and_properties() -> None:
    async with mqtt_broker() as broker:
        receiver = await connect(broker, "receiver", properties={_P.TOPIC_ALIAS_MAXIMUM: 1})
        sender = await connect(broker, "sender")
        await receiver.subscribe("#", qos=1, identifier=300)
        user = {_P.USER_PROPERTY: (("k", "v"),)}
        sender.send(*publications(5, properties={**user, _P.TOPIC_ALIAS: 2}))
        sender.send(*(Publish("", b"later", 1, packet_id=9, properties={**user, _P.TOPIC_ALIAS: 2}) for _ in range(4)))
        found = [await receiver.publication() for _ in range(9)]
        assert [packet.topic for packet in found] == ["a", *[""] * 8]
        assert {packet.properties[_P.USER_PROPERTY] for packet in found} == {(("k", "v"),)}
        assert {packet.properties[_P.TOPIC_ALIAS] for packet in found} == {1}
        assert {packet.properties[_P.SUBSCRIPTION_ID] for packet in found} == {(300,)}


async def test_what_is_too_large_for_a_client_is_left_out() -> None:
    async with mqtt_broker() as broker:
        receiver = await connect(broker, "receiver", properties={_P.MAXIMUM_PACKET_SIZE: 100})
        sender = await connect(broker, "sender")
        await receiver.subscribe("a", qos=1)
        small, large = publications(COUNT), publications(COUNT, size=100)
        sender.send(*(packet for pair in zip(small, large, strict=True) for packet in [pair[0]] * 3 + [pair[1]]))
        for packet in small:
            for _ in range(3):
                found = await receiver.publication()
                assert isinstance(packet, Publish)
                assert found.payload == packet.payload
                receiver.acknowledge(found)
        assert await receiver.nothing_waits()


async def test_a_client_gets_no_more_than_it_takes() -> None:
    async with mqtt_broker() as broker:
        receiver = await connect(broker, "receiver", properties={_P.RECEIVE_MAXIMUM: 7})
        sender = await connect(broker, "sender")
        await receiver.subscribe("a", qos=1)
        sender.send(*publications(40))
        under_way = [await receiver.publication() for _ in range(7)]
        assert await receiver.nothing_waits()
        for packet in under_way:
            receiver.acknowledge(packet)
        assert [packet.payload for packet in [await receiver.publication() for _ in range(7)]] == [
            f"{number}:".encode() for number in range(7, 14)
        ]


async def test_who_sends_more_than_the_broker_takes_is_answered_all_the_same() -> None:
    """All are acknowledged at once: none is left that could count against the receive maximum."""
    async with mqtt_broker({"receive_maximum": 10}) as broker:
        sender = await connect(broker, "sender")
        sender.send(*publications(4))
        assert [(await sender.answer(PacketType.PUBACK)).packet_id for _ in range(4)] == [1, 2, 3, 4]


async def test_a_queue_that_is_full_refuses_those_that_it_has_no_room_for() -> None:
    async with mqtt_broker() as broker, aio.Connection(broker.url) as connection:
        session = await connection.session()
        await session.sender(
            "jobs; {create: always, node: {x-declare: {arguments: {'qpid.policy_type': reject, 'qpid.max_count': 5}},"
            " x-bindings: [{exchange: mqtt, key: a}]}}"
        )
        sender = await connect(broker, "sender")
        sender.send(*publications(20))
        codes = [(await sender.answer(PacketType.PUBACK)).code for _ in range(20)]
        assert codes == [0] * 5 + [ReasonCode.QUOTA_EXCEEDED] * 15


async def test_acknowledgements_that_come_together_empty_the_queue() -> None:
    async with mqtt_broker() as broker:
        receiver = await connect(broker, "receiver", expiry=100)
        sender = await connect(broker, "sender")
        await receiver.subscribe(SubscriptionRequest("a", 1))
        sender.send(*publications(50))
        found = [await receiver.publication() for _ in range(50)]
        receiver.send(*(MessageAnswer(PacketType.PUBACK, packet.packet_id or 0) for packet in found))
        receiver.send(MessageAnswer(PacketType.PUBACK, 60_000))  # of nothing
        assert await receiver.nothing_waits()
        receiver.cut()
        again = await connect(broker, "receiver", clean=False, expiry=100)
        assert again.connack is not None
        assert again.connack.session_present
        assert await again.nothing_waits()
