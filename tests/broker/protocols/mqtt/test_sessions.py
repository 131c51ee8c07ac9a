"""Sessions: what is kept when a client is away or the broker starts again, wills, taking over, shared subscriptions."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from broker.protocols.mqtt.wire_client import WireClient, connect, mqtt_broker
from broker.visible_broker import VisibleBroker
from support.waiting import until

from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.message import read_message
from qmf.broker.nodes.queues import Queue
from qmf.broker.protocols.mqtt.codec.packets import MessageAnswer, Publish, Will
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty
from qmf.broker.protocols.mqtt.codec.values import PacketType, ReasonCode, Version
from qmf.broker.protocols.mqtt.sent_messages import MAX_PACKET_ID
from qmf.codec.message import Message as AmqpMessage
from qmf.codec.message import Section, encode_message
from qmf.codec.types import UInt8, UInt32

_P = PacketProperty

pytestmark = pytest.mark.asyncio


def present(client: WireClient) -> bool:
    assert client.connack is not None
    assert client.connack.code == 0
    return client.connack.session_present


@pytest.mark.parametrize("version", list(Version), ids=["3.1.1", "5"])
async def test_a_session_is_gone_on_with(version: Version) -> None:
    expiry = 100 if version is Version.V5 else None
    async with mqtt_broker() as broker:
        client = await connect(broker, version=version, clean=False, expiry=expiry)
        assert not present(client)
        await client.subscribe("a", qos=1)
        await client.disconnect()
        other = await connect(broker, "other")
        await other.publish("a", b"while away", 1)
        client = await connect(broker, version=version, clean=False, expiry=expiry)
        assert present(client)
        assert await client.payloads(1) == [b"while away"]
        await client.disconnect()
        client = await connect(broker, version=version, clean=True)
        assert not present(client)
        await other.publish("a", b"for nobody", 1)
        assert await client.nothing_waits()


async def test_what_was_not_acknowledged_comes_again() -> None:
    async with mqtt_broker() as broker:
        client, other = await connect(broker, expiry=100), await connect(broker, "other")
        await client.subscribe("a", qos=2)
        for number in range(4):
            await other.publish("a", str(number).encode(), 1 + number % 2)
        first = [await client.publication() for _ in range(4)]
        client.acknowledge(first[0])
        client.acknowledge(first[1], PacketType.PUBREC)
        await client.answer(PacketType.PUBREL)
        client.cut()
        client = await connect(broker, clean=False, expiry=100)
        assert (await client.answer(PacketType.PUBREL)).packet_id == first[1].packet_id
        again = [await client.publication(), await client.publication()]
        assert [(each.payload, each.duplicate, each.packet_id) for each in again] == [
            (each.payload, True, each.packet_id) for each in first[2:]
        ]


@pytest.mark.slow
async def test_a_session_ends_with_its_time() -> None:
    async with mqtt_broker({"max_session_expiry": 1}) as broker:
        client = await connect(broker, expiry=100)
        assert client.connack is not None
        assert client.connack.properties[_P.SESSION_EXPIRY] == 1
        await client.subscribe("a", qos=1)
        await client.disconnect()
        await until(lambda: not queues(broker))
        assert not present(await connect(broker, clean=False, expiry=100))


def queues(broker: VisibleBroker) -> list[str]:
    """The queues of sessions."""
    return sorted(queue.name for queue in broker.registry.queues if queue.name.startswith(("mqtt/", "$share/")))


async def test_the_end_of_a_connection_may_end_the_session() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker, expiry=100)
        await client.subscribe("a", qos=1)
        assert queues(broker) == ["mqtt/client"]
        await client.disconnect(properties={_P.SESSION_EXPIRY: 0})
        assert not present(await connect(broker, clean=False))
        assert queues(broker) == []


async def test_another_connection_takes_over() -> None:
    async with mqtt_broker() as broker:
        first = await connect(broker, expiry=100)
        await first.subscribe("a", qos=1)
        second = await connect(broker, clean=False, expiry=100)
        assert present(second)
        reason = await first.closed()
        assert reason is not None
        assert reason.code == ReasonCode.SESSION_TAKEN_OVER
        await second.publish("a", b"x", 1)
        assert await second.payloads(1) == [b"x"]


async def test_the_broker_gives_client_ids() -> None:
    async with mqtt_broker() as broker:
        one, other = await connect(broker, ""), await connect(broker, "")
        assert one.connack is not None
        assert other.connack is not None
        assert one.connack.properties[_P.ASSIGNED_CLIENT_ID] != other.connack.properties[_P.ASSIGNED_CLIENT_ID]
        refused = await connect(broker, "", version=Version.V3, clean=False)
        assert refused.connack is not None
        assert refused.connack.code == 2


async def test_a_will_is_published_when_the_client_is_lost() -> None:
    async with mqtt_broker() as broker:
        watcher = await connect(broker, "watcher")
        await watcher.subscribe("wills/#", qos=1)
        client = await connect(broker, will=Will("wills/1", b"lost", 1, properties={_P.CONTENT_TYPE: "x"}))
        client.cut()
        assert await watcher.publication() == Publish(
            "wills/1", b"lost", 1, packet_id=1, properties={_P.CONTENT_TYPE: "x"}
        )
        client = await connect(broker, will=Will("wills/2", b"no"))
        await client.disconnect()
        client = await connect(broker, will=Will("wills/3", b"asked for"))
        await client.disconnect(ReasonCode.DISCONNECT_WITH_WILL)
        assert await watcher.payloads(1) == [b"asked for"]


@pytest.mark.slow
async def test_a_will_waits_for_its_delay_or_the_end_of_the_session() -> None:
    async with mqtt_broker() as broker:
        watcher = await connect(broker, "watcher")
        await watcher.subscribe("wills/#")
        client = await connect(broker, expiry=100, will=Will("wills/1", b"back", properties={_P.WILL_DELAY: 50}))
        client.cut()
        client = await connect(
            broker, clean=False, expiry=1, will=Will("wills/2", b"x", properties={_P.WILL_DELAY: 50})
        )
        client.cut()
        assert await watcher.payloads(1) == [b"x"]
        client = await connect(broker, expiry=100, will=Will("wills/3", b"y", properties={_P.WILL_DELAY: 1}))
        client.cut()
        assert await watcher.payloads(1) == [b"y"]


async def test_a_will_may_be_retained() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker, will=Will("wills/1", b"lost", retain=True))
        client.cut()
        watcher = await connect(broker, "watcher")
        await until(lambda: broker.counters.received >= 2)
        await watcher.subscribe("wills/#")
        assert (await watcher.publication()).retain


async def test_shared_subscriptions_share_messages() -> None:
    async with mqtt_broker() as broker:
        clients = [await connect(broker, str(number)) for number in range(2)]
        for client in clients:
            assert await client.subscribe("$share/g/a/#", qos=1, identifier=5) == (1,)
        single = await connect(broker, "single")
        await single.subscribe("a/#")
        other = await connect(broker, "other")
        for number in range(10):
            await other.publish("a/x", str(number).encode(), 1)
        shares = [[await client.publication() for _ in range(5)] for client in clients]
        payloads = sorted(int(each.payload) for share in shares for each in share)
        assert payloads == list(range(10))
        assert shares[0][0].properties[_P.SUBSCRIPTION_ID] == (5,)
        assert len(await single.payloads(10)) == 10
        # What one has not acknowledged goes to the other when it is lost.
        clients[0].cut()
        again = [await clients[1].publication() for _ in range(5)]
        assert sorted(each.payload for each in again) == sorted(each.payload for each in shares[0])
        assert await clients[1].unsubscribe("$share/g/a/#") == (0,)
        assert queues(broker) == ["mqtt/single"]


@pytest.mark.slow
async def test_sessions_survive_a_restart(tmp_path: Path) -> None:
    async with mqtt_broker(data_dir=tmp_path) as broker:
        client = await connect(broker, expiry=1000)
        await client.subscribe("a/#", qos=2, identifier=7)
        await client.subscribe("b", qos=0)
        await client.unsubscribe("b")
        await client.disconnect()
        other = await connect(broker, "other")
        assert await other.publish("a/1", b"1", 1) == 0
        assert await other.publish("a/2", b"2", 2) == 0
    async with mqtt_broker(data_dir=tmp_path) as broker:
        client = await connect(broker, clean=False, expiry=1000)
        assert present(client)
        first, second = await client.publication(), await client.publication()
        assert [(each.payload, each.qos) for each in (first, second)] == [(b"1", 1), (b"2", 2)]
        assert first.properties == {_P.SUBSCRIPTION_ID: (7,)}
        client.acknowledge(first)
        client.acknowledge(second, PacketType.PUBREC)
        await client.answer(PacketType.PUBREL)
    # Only the release of the second message is under way now.
    async with mqtt_broker(data_dir=tmp_path) as broker:
        client = await connect(broker, clean=False, expiry=1000)
        assert (await client.answer(PacketType.PUBREL)).packet_id == second.packet_id
        client.acknowledge(second, PacketType.PUBCOMP)
        assert await client.nothing_waits()
        await client.publish("b", b"no subscription")
        await client.publish("a/3", b"3", 1)
        assert await client.payloads(1) == [b"3"]


async def test_packet_ids_of_qos_2_survive_a_restart(tmp_path: Path) -> None:
    async with mqtt_broker(data_dir=tmp_path) as broker:
        client = await connect(broker, expiry=1000)
        await client.subscribe("a", qos=2)
        other = await connect(broker, "other", expiry=1000)
        await other.publish("a", b"0", 1)
        await other.publish("a", b"1", 2)
        sent = [await client.publication(), await client.publication()]
        client.acknowledge(sent[0])
        other.send(Publish("a", b"2", 2, packet_id=77))
        await other.answer(PacketType.PUBREC)
        sent.append(await client.publication())
    async with mqtt_broker(data_dir=tmp_path) as broker:
        other = await connect(broker, "other", clean=False, expiry=1000)
        other.send(Publish("a", b"2", 2, duplicate=True, packet_id=77))
        await other.answer(PacketType.PUBREC)
        other.send(MessageAnswer(PacketType.PUBREL, 77))
        assert (await other.answer(PacketType.PUBCOMP)).code == 0
        client = await connect(broker, clean=False, expiry=1000)
        again = [await client.publication(), await client.publication()]
        assert [(each.payload, each.packet_id) for each in again] == [
            (each.payload, each.packet_id) for each in sent[1:]
        ]
        assert await client.nothing_waits()


async def test_packet_ids_of_qos_1_survive_a_restart(tmp_path: Path) -> None:
    """Also where messages before them have gone, some are sent the first time, and QoS 2 is in between."""
    folder, later = tmp_path / "kept", tmp_path / "copy"
    properties = {_P.RECEIVE_MAXIMUM: 6}
    async with mqtt_broker(data_dir=folder) as broker:
        client = await connect(broker, expiry=1000, properties=properties)
        await client.subscribe("a", qos=2)
        other = await connect(broker, "other")
        for number in range(9):
            await other.publish("a", str(number).encode(), 2 if number in (3, 6) else 1)
        sent = [await client.publication() for _ in range(6)]
        for packet in (sent[0], sent[2], sent[4]):
            client.acknowledge(packet)
        sent += [await client.publication() for _ in range(3)]
        assert [packet.duplicate for packet in sent] == [False] * 9
        await other.publish("a", b"9", 1)
        shutil.copytree(folder, later)  # what a kill would leave at this moment
    async with mqtt_broker(data_dir=later) as broker:
        client = await connect(broker, clean=False, expiry=1000, properties=properties)
        again = [await client.publication() for _ in range(6)]
        wanted = {
            packet.payload: (packet.packet_id, True) for packet in sent if packet.payload not in (b"0", b"2", b"4")
        }
        assert {packet.payload: (packet.packet_id, packet.duplicate) for packet in again} == wanted
        assert [packet.payload for packet in again if packet.qos == 1] == [b"1", b"5", b"7", b"8"]
        assert await client.nothing_waits()
        client.acknowledge(again[-1])
        new = await client.publication()
        assert new.payload == b"9"
        assert new.packet_id not in {packet.packet_id for packet in sent}


async def test_a_packet_id_that_is_in_use_is_kept_elsewhere(tmp_path: Path) -> None:
    """A client that never acknowledges a message has its packet id in use when it would be due again."""
    folder, later = tmp_path / "kept", tmp_path / "copy"
    async with mqtt_broker(data_dir=folder) as broker:
        client = await connect(broker, expiry=1000)
        await client.subscribe("a", qos=1)
        other = await connect(broker, "other")
        await other.publish("a", b"first", 1)
        sent = [await client.publication()]
        queue = broker.registry.queue("mqtt/client")
        assert queue is not None
        queue.contents.position = MAX_PACKET_ID
        for number in range(3):
            await other.publish("a", str(number).encode(), 1)
            sent.append(await client.publication())
        assert len({packet.packet_id for packet in sent}) == 4
        assert await other.publish("b", b"", 1) == 0  # what was changed before is stored as well
        shutil.copytree(folder, later)
    async with mqtt_broker(data_dir=later) as broker:
        client = await connect(broker, clean=False, expiry=1000)
        again = [await client.publication() for _ in range(4)]
        assert [(packet.payload, packet.packet_id) for packet in again] == [
            (packet.payload, packet.packet_id) for packet in sent
        ]
        assert await client.nothing_waits()


async def test_a_packet_id_is_free_after_a_kill_once_the_client_knows_it(tmp_path: Path) -> None:
    folder, later = tmp_path / "kept", tmp_path / "copy"
    async with mqtt_broker(data_dir=folder) as broker:
        client = await connect(broker, expiry=1000)
        for _ in range(3):
            client.send(Publish("a", b"1", 2, packet_id=7))
            await client.answer(PacketType.PUBREC)
            client.send(MessageAnswer(PacketType.PUBREL, 7))
            await client.answer(PacketType.PUBCOMP)
            # What a kill would leave at this moment.
            shutil.copytree(folder, later)
            async with mqtt_broker(data_dir=later) as restarted:
                other = await connect(restarted, clean=False, expiry=1000)
                await other.subscribe("a")
                other.send(Publish("a", b"2", 2, packet_id=7))
                await other.answer(PacketType.PUBREC)
                assert await other.payloads(1) == [b"2"]
            shutil.rmtree(later)


async def test_what_a_session_had_ends_with_it(tmp_path: Path) -> None:
    async with mqtt_broker(data_dir=tmp_path) as broker:
        client = await connect(broker, expiry=1000)
        await client.subscribe("a", "$share/g/b", qos=2)
        await client.publish("a", b"1", 2)
        assert queues(broker) == ["$share/g/b", "mqtt/client"]
        await client.disconnect(properties={_P.SESSION_EXPIRY: 0})
        await until(lambda: queues(broker) == [])
    async with mqtt_broker(data_dir=tmp_path) as broker:
        assert queues(broker) == []
        sessions = broker.registry.queue("mqtt.sessions")
        assert sessions is not None
        assert len(sessions.contents) == 0


async def test_a_queue_that_is_deleted_ends_its_session() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker, expiry=100)
        await client.subscribe("a", qos=1)
        queue = broker.registry.queue("mqtt/client")
        assert queue is not None
        broker.registry.delete_queue(queue)
        reason = await client.closed()
        assert reason is not None
        assert reason.code == ReasonCode.ADMINISTRATIVE_ACTION
        assert not present(await connect(broker, clean=False, expiry=100))


async def test_a_session_that_has_lost_a_binding_or_queue_while_its_client_was_away_ends() -> None:
    async with mqtt_broker() as broker:
        for loss in ("binding", "shared queue", "exchange"):
            client = await connect(broker, expiry=100)
            await client.subscribe("a", "$share/g/b", qos=1)
            await client.disconnect()
            registry = broker.registry
            queue, shared = registry.queue("mqtt/client"), registry.queue("$share/g/b")
            exchange = registry.exchange("mqtt")
            assert queue is not None
            assert shared is not None
            assert isinstance(exchange, Exchange)
            if loss == "binding":
                registry.unbind(exchange, queue, "a")
            elif loss == "shared queue":
                registry.delete_queue(shared)
            else:
                registry.delete(exchange)
            assert not present(await connect(broker, clean=False, expiry=100))


@pytest.mark.parametrize("name", ["$share/g/b", "mqtt"])
async def test_what_a_client_uses_is_deleted(name: str) -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker, expiry=100)
        await client.subscribe("a", "$share/g/b", qos=1)
        node = broker.registry.find(name)
        assert isinstance(node, Exchange | Queue)
        broker.registry.delete(node)
        reason = await client.closed()
        assert reason is not None
        assert reason.code == ReasonCode.ADMINISTRATIVE_ACTION
        other = await connect(broker, clean=False, expiry=100)
        assert not present(other)
        await other.subscribe("a", qos=1)
        await other.publish("a", b"x", 1)
        assert await other.payloads(1) == [b"x"]


async def test_an_annotation_of_others_is_no_packet_id(tmp_path: Path) -> None:
    async with mqtt_broker(data_dir=tmp_path) as broker:
        client = await connect(broker, expiry=100)
        await client.subscribe("a", qos=2)
        await client.disconnect()
        for number in (0, 5, 5, 70_000):
            fields = AmqpMessage(
                durable=True,
                subject="a",
                message_annotations={"x-opt-mqtt-packet-id": UInt32(number), "x-opt-mqtt-qos": UInt8(2)},
                section=Section.DATA,
                body=str(number).encode(),
            )
            exchange = broker.registry.exchange("mqtt")
            broker.registry.publish(exchange, read_message(encode_message(fields), broker.registry.clock()))
        await until(lambda: broker.counters.received >= 4)
    async with mqtt_broker(data_dir=tmp_path) as broker:
        client = await connect(broker, clean=False, expiry=100)
        assert sorted(await client.payloads(4)) == [b"0", b"5", b"5", b"70000"]


async def test_the_broker_says_that_it_ends() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker)
        ending = asyncio.create_task(broker.close())
        reason = await client.closed()
        assert reason is not None
        assert reason.code == ReasonCode.SERVER_SHUTTING_DOWN
        await ending
