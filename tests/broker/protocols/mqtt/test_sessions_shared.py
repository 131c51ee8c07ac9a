"""Shared subscriptions: whom a message is for when a connection or the broker ends in the middle of its delivery."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from broker.protocols.mqtt.wire_client import WireClient, connect, mqtt_broker

from qmf.broker.protocols.mqtt.codec.packets import MessageAnswer, Publish
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty
from qmf.broker.protocols.mqtt.codec.values import PacketType, ReasonCode

pytestmark = pytest.mark.asyncio

SHARED = "$share/g/a/#"


async def test_with_qos_2_a_message_is_for_one_client_over_a_restart(tmp_path: Path) -> None:
    folder, later = tmp_path / "kept", tmp_path / "copy"
    async with mqtt_broker(data_dir=folder) as broker:
        clients = [await connect(broker, name, expiry=1000) for name in ("one", "two")]
        for client in clients:
            assert await client.subscribe(SHARED, qos=2) == (2,)
        other = await connect(broker, "other")
        for number in range(6):
            await other.publish("a/x", str(number).encode(), 2)
        sent = {id(client): [await client.publication() for _ in range(3)] for client in clients}
        released = sent[id(clients[0])][0]
        clients[0].acknowledge(released, PacketType.PUBREC)
        await clients[0].answer(PacketType.PUBREL)
        shutil.copytree(folder, later)  # what a kill would leave at this moment
    async with mqtt_broker(data_dir=later) as broker:
        two = await connect(broker, "two", clean=False, expiry=1000)
        assert await again(two, 3) == [marked(each) for each in sent[id(clients[1])]]
        assert await two.nothing_waits()
        one = await connect(broker, "one", clean=False, expiry=1000)
        assert (await one.answer(PacketType.PUBREL)).packet_id == released.packet_id
        assert await again(one, 2) == [marked(each) for each in sent[id(clients[0])][1:]]
        assert await one.nothing_waits()


async def again(client: WireClient, count: int) -> list[tuple[bytes, int | None, bool]]:
    found = [await client.publication() for _ in range(count)]
    return [(each.payload, each.packet_id, each.duplicate) for each in found]


def marked(packet: Publish) -> tuple[bytes, int | None, bool]:
    """A message as it comes again."""
    return packet.payload, packet.packet_id, True


async def test_with_qos_2_no_other_client_gets_what_one_has_not_completed() -> None:
    async with mqtt_broker() as broker:
        one, other = await connect(broker, "one", expiry=1000), await connect(broker, "other")
        await one.subscribe(SHARED, qos=2)
        await other.publish("a/x", b"1", 2)
        first = await one.publication()
        two = await connect(broker, "two")
        await two.subscribe(SHARED, qos=2)
        one.cut()
        assert await two.nothing_waits()
        one = await connect(broker, "one", clean=False, expiry=1000)
        assert await again(one, 1) == [marked(first)]
        await one.disconnect(properties={PacketProperty.SESSION_EXPIRY: 0})
        assert await two.nothing_waits()


@pytest.mark.parametrize("kind", [PacketType.PUBACK, PacketType.PUBREC], ids=["QoS 1", "QoS 2"])
async def test_what_a_client_refuses_goes_to_nobody_else(kind: PacketType) -> None:
    qos = 1 if kind is PacketType.PUBACK else 2
    async with mqtt_broker() as broker:
        one, other = await connect(broker, "one"), await connect(broker, "other")
        await one.subscribe(SHARED, qos=qos)
        await other.publish("a/x", b"1", 2)
        message = await one.publication()
        two = await connect(broker, "two")
        await two.subscribe(SHARED, qos=qos)
        assert message.packet_id is not None
        one.send(MessageAnswer(kind, message.packet_id, ReasonCode.IMPLEMENTATION_ERROR))
        assert await one.nothing_waits()
        one.cut()
        assert await two.nothing_waits()


async def test_the_qos_of_each_client_applies() -> None:
    async with mqtt_broker() as broker:
        clients = [await connect(broker, str(qos)) for qos in range(3)]
        for qos, client in enumerate(clients):
            await client.subscribe(SHARED, qos=qos)
        for _ in range(3):
            await clients[0].publish("a/x", b"x", 2)
        assert [(await client.publication()).qos for client in clients] == [0, 1, 2]


async def test_the_end_of_a_shared_subscription_lets_deliveries_end() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker)
        await client.subscribe(SHARED, qos=2)
        await client.publish("a/x", b"1", 2)
        message = await client.publication()
        assert await client.unsubscribe(SHARED) == (0,)
        client.acknowledge(message, PacketType.PUBREC)
        released = await client.answer(PacketType.PUBREL)
        assert released.packet_id == message.packet_id
        client.acknowledge(message, PacketType.PUBCOMP)
        assert await client.nothing_waits()
