"""Sessions of MQTT as consoles see them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from broker.management.managed import NEVER, Raised, id_of, knows_agent, managed, queues
from broker.protocols.mqtt.wire_client import connect, mqtt_broker
from support.waiting import until

from qmf.broker.protocols.mqtt.codec.packets import Disconnect, MessageAnswer, Publish, Will
from qmf.broker.protocols.mqtt.codec.values import PacketType, ReasonCode
from qmf.console.aio import Client
from qmf.models.broker import console as remote
from qmf.models.mqtt import console as mqtt

pytestmark = pytest.mark.asyncio


async def sessions(client: Client, name: str = "") -> Sequence[mqtt.MqttSession]:
    return [item for item in await client.objects(mqtt.MqttSession) if name in (item.clientId, "")]


async def test_a_session_is_seen_with_its_client_and_without() -> None:
    async with mqtt_broker(management=NEVER) as broker, Client(broker.url, settle=0.0) as console:
        await knows_agent(console)
        raised = Raised(console)
        will = Will("lost/one", b"gone", 0, False, {})
        one = await connect(broker, "one", clean=False, expiry=600, will=will)
        await one.subscribe("a/#", "$share/g/b", qos=2)
        (session,) = await sessions(console, "one")
        (connection,) = [item for item in await console.objects(remote.Connection) if item.protocol == "MQTT 5.0"]
        queue = (await queues(console))["mqtt/one"]
        assert (session.clientId, session.user, session.version) == ("one", "anonymous", "MQTT 5.0")
        assert (session.connected, session.durable, session.expiry) == (True, False, 600)
        assert (session.connectionRef, session.queueRef) == (id_of(connection), id_of(queue))
        assert (session.willTopic, session.subscriptions) == ("lost/one", 2)

        two = await connect(broker, "two")
        await two.publish("a/1", b"x", 1)
        await two.publish("a/2", b"y", 1)
        await one.publication()
        await one.publication()
        one.send(Publish("c", b"", 2, False, packet_id=9))
        await one.answer(PacketType.PUBREC)
        (session,) = await sessions(console, "one")
        assert (session.queued, session.inflight, session.unreleased) == (2, 2, 1)

        one.send(MessageAnswer(PacketType.PUBREL, 9))
        await one.answer(PacketType.PUBCOMP)
        await one.disconnect()
        await until(lambda: raised("mqttSessionDisconnected", clientId="one"), "the event")
        (session,) = await sessions(console, "one")
        assert (session.connected, session.connectionRef, session.willTopic) == (False, None, "")
        assert session.unreleased == 0
        (begun,) = raised("mqttSessionConnected", clientId="one")
        assert begun["rhost"] == connection.address
        assert (begun["user"], begun["version"], begun["expiry"]) == ("anonymous", "MQTT 5.0", 600)

        one = await connect(broker, "one", clean=True, expiry=0)
        await until(lambda: raised("mqttSessionEnded", clientId="one"), "the end of the first session")
        assert len(await sessions(console)) == 2
        await one.disconnect()
        await until(lambda: len(raised("mqttSessionEnded", clientId="one")) == 2, "the end of the second session")
        assert [each.clientId for each in await sessions(console)] == ["two"]


async def test_a_client_is_disconnected_and_its_session_stays() -> None:
    async with mqtt_broker(management=NEVER) as broker, Client(broker.url, settle=0.0) as console:
        await knows_agent(console)
        one = await connect(broker, "one", clean=False, expiry=600)
        (session,) = await sessions(console)
        await session.disconnect()
        packet = await one.receive()
        assert isinstance(packet, Disconnect)
        assert packet.code == ReasonCode.ADMINISTRATIVE_ACTION
        (session,) = await sessions(console)
        assert not session.connected
        await session.disconnect()  # nobody is there: nothing happens
        one = await connect(broker, "one", clean=False, expiry=600)
        assert one.connack is not None
        assert one.connack.session_present


@pytest.mark.parametrize("present", [True, False], ids=["connected", "away"])
async def test_a_session_is_ended(*, present: bool) -> None:
    async with mqtt_broker(management=NEVER) as broker, Client(broker.url, settle=0.0) as console:
        await knows_agent(console)
        one = await connect(broker, "one", clean=False, expiry=600)
        await one.subscribe("a")
        if not present:
            await one.disconnect()
        (session,) = await sessions(console)
        await session.end()
        if present:
            assert isinstance(await one.receive(), Disconnect)
        assert not await sessions(console)
        assert "mqtt/one" not in await queues(console)


async def test_a_session_of_an_earlier_run_is_there(tmp_path: Path) -> None:
    options: dict[str, Any] = {"management": NEVER, "data_dir": tmp_path}
    async with mqtt_broker(**options) as broker:
        one = await connect(broker, "one", clean=False, expiry=600)
        await one.subscribe("a", qos=1)
        await one.disconnect()
    async with mqtt_broker(**options) as broker, Client(broker.url, settle=0.0) as console:
        await knows_agent(console)
        (session,) = await sessions(console)
        queue = (await queues(console))["mqtt/one"]
        assert (session.clientId, session.version, session.connected) == ("one", "", False)
        assert (session.durable, session.queueRef, session.subscriptions) == (True, id_of(queue), 1)


async def test_a_broker_without_mqtt_has_no_such_class() -> None:
    async with managed() as (_, console):
        assert "qmf.mqtt" not in {key.package for key in await console.classes()}
