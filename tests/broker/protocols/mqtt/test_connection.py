"""Connections: their errors, their end, TLS, and what consoles see of them."""

from __future__ import annotations

import asyncio
import ssl

import pytest
import trustme
from broker.management.managed import managed
from broker.protocols.mqtt.wire_client import connect, mqtt_broker
from support.waiting import until

from qmf.broker.protocols.mqtt.codec.packets import ConnAck, Connect, Publish
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty
from qmf.broker.protocols.mqtt.codec.values import ReasonCode, Version
from qmf.broker.protocols.mqtt.codec.writing import encode_packet
from qmf.broker.protocols.mqtt.options import MqttOptions
from qmf.errors import CallerError
from qmf.models.broker import console as remote

_P = PacketProperty

pytestmark = pytest.mark.asyncio


async def test_a_packet_that_is_too_large_ends_the_connection() -> None:
    async with mqtt_broker({"max_packet": 1000}) as broker:
        client = await connect(broker)
        client.send(Publish("a", b"x" * 2000))
        reason = await client.closed()
        assert reason is not None
        assert reason.code == ReasonCode.PACKET_TOO_LARGE


async def test_an_error_ends_the_connection_with_its_reason() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker)
        client.send(ConnAck())
        reason = await client.closed()
        assert reason is not None
        assert (reason.code, reason.properties[_P.REASON_STRING]) == (
            ReasonCode.PROTOCOL_ERROR,
            "a client must not send CONNACK",
        )
        assert broker.counters.failures == 1


@pytest.mark.slow
async def test_who_sends_nothing_is_dropped_after_the_keep_alive() -> None:
    async with mqtt_broker({"max_keep_alive": 1}) as broker:
        client = await connect(broker)
        assert client.connack is not None
        assert client.connack.properties[_P.SERVER_KEEP_ALIVE] == 1
        reason = await client.closed()
        assert reason is not None
        assert reason.code == ReasonCode.KEEP_ALIVE_TIMEOUT


async def test_a_client_that_does_not_read_is_not_read_from() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker)
        await client.subscribe("a")
        payload = b"x" * 100_000
        for _ in range(200):
            client.send(Publish("a", payload))
            await asyncio.sleep(0)
        assert await client.payloads(200) == [payload] * 200


async def test_tls() -> None:
    authority = trustme.CA()
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("localhost").configure_cert(server)
    authority.configure_trust(client)
    async with mqtt_broker({"tls_port": 0}, ssl_context=server) as broker:
        assert [url.partition(":")[0] for url in broker.mqtt_urls] == ["mqtt", "mqtts"]
        port = int(broker.mqtt_urls[1].rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname="localhost")
        writer.write(encode_packet(Connect(Version.V3, "x"), Version.V3))
        assert await reader.readexactly(4) == b"\x20\x02\0\0"
        writer.close()
        await writer.wait_closed()


async def test_a_port_for_tls_needs_a_certificate() -> None:
    with pytest.raises(CallerError, match="tls_port of MQTT needs ssl_context"):
        async with mqtt_broker({"tls_port": 0}):
            pass


async def test_who_speaks_another_protocol_is_dropped() -> None:
    async with mqtt_broker() as broker:
        port = int(broker.mqtt_urls[0].rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"AMQP\x00\x01\x00\x00")
        assert await reader.read() == b""
        writer.close()
        assert broker.counters.failures == 1


@pytest.mark.slow
async def test_consoles_see_clients_and_close_them() -> None:
    async with managed(0.05, mqtt=MqttOptions(port=0)) as (broker, console):
        client = await connect(broker, "seen", expiry=100, properties={_P.USER_PROPERTY: (("place", "hall"),)})
        await client.subscribe("a/#", qos=1)
        await client.publish("a/b", b"x", 1)
        found = [each for each in await console.objects(remote.Connection) if each.protocol == "MQTT 5.0"]
        assert [each.remoteProperties for each in found] == [{"place": "hall", "container-id": "seen"}]
        assert (found[0].msgsFromClient, found[0].framesFromClient >= 2) == (1, True)
        queues = [each.name for each in await console.objects(remote.Queue)]
        assert {"mqtt/seen", "mqtt.retained"} <= set(queues)
        subscribed = await console.objects(remote.Subscription)
        assert any(each.name == "mqtt/seen" for each in subscribed)
        await found[0].close()
        reason = await client.closed()
        assert reason is not None
        assert reason.code == ReasonCode.ADMINISTRATIVE_ACTION
        await until(lambda: broker.connections == 1, "the end of the client")
