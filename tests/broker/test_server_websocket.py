"""WebSocket ports of a broker: AMQP and MQTT over them, by clients of ours and of others."""

from __future__ import annotations

import ssl
import sys

import pytest
import trustme
import websockets
from support.shelf import store_agent
from support.waiting import until

from qmf.broker import Broker
from qmf.broker.listener import ListenError
from qmf.broker.protocols.mqtt.options import MqttOptions
from qmf.bus import AmqpBus
from qmf.bus.websocket import WebSocketMissing
from qmf.console.aio import Client, EventRaised
from qmf.errors import ConnectError
from qmf.messaging import aio


async def test_amqp() -> None:
    async with Broker(port=0, ws_port=0, queues=["jobs"]) as broker:
        assert broker.ws_url is not None
        assert broker.urls == [broker.url, broker.ws_url]
        async with aio.Connection(f"{broker.ws_url}/any/path") as connection:
            session = await connection.session()
            sender, receiver = await session.sender("jobs"), await session.receiver("jobs")
            for content in ("one", b"x" * 300_000):
                await sender.send(content)
                assert (await receiver.fetch(timeout=10)).content == content
            await session.acknowledge()


async def test_tls() -> None:
    authority = trustme.CA()
    server, client = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(server)
    authority.configure_trust(client)
    async with Broker(port=0, ws_port=0, ssl_context=server) as broker:
        assert broker.ws_url is not None
        assert broker.ws_url.startswith("wss://")
        bus = AmqpBus(broker.ws_url, ssl_context=client)
        await bus.open()
        assert bus.connected
        await bus.close()


async def test_mqtt() -> None:
    connect = bytes.fromhex("100c00044d51545404020000") + b"\x00\x00"
    async with Broker(port=0, ws_port=0, mqtt=MqttOptions(port=0)) as broker:
        assert broker.ws_url is not None
        subprotocols = [websockets.Subprotocol("mqtt")]
        async with websockets.connect(broker.ws_url, subprotocols=subprotocols, proxy=None) as client:
            await client.send(connect)
            assert await client.recv() == bytes.fromhex("20020000")  # CONNACK, accepted


async def test_what_is_switched_off_is_refused() -> None:
    async with Broker(port=0, ws_port=0) as broker:
        assert broker.ws_url is not None
        with pytest.raises(websockets.InvalidStatus):
            async with websockets.connect(broker.ws_url, subprotocols=[websockets.Subprotocol("mqtt")], proxy=None):
                pass
        # The port of AMQP has no WebSocket, and that of WebSocket no AMQP.
        with pytest.raises(ConnectError, match="no WebSocket"):
            await AmqpBus(broker.url.replace("amqp", "ws")).open()
        with pytest.raises(ConnectError):
            await AmqpBus(broker.ws_url.replace("ws", "amqp")).open()


async def test_reconnecting() -> None:
    async with Broker(port=0, ws_port=0, queues=["jobs"]) as broker:
        assert broker.ws_url is not None
        port = int(broker.ws_url.rpartition(":")[2])
        options = {"reconnect": True, "reconnect_interval": 0.01}
        async with aio.Connection(broker.ws_url, **options) as connection:
            session = await connection.session()
            sender = await session.sender("jobs")
            await broker.close()
            async with Broker(port=0, ws_port=port, queues=["jobs"]):
                await sender.send("again")
                assert (await (await session.receiver("jobs")).fetch(timeout=10)).content == "again"
                await session.acknowledge()


async def test_a_port_that_is_taken() -> None:
    async with Broker(port=0) as other:
        with pytest.raises(ListenError):
            await Broker(port=0, ws_port=other.port).start()


async def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "websockets.protocol", None)
    with pytest.raises(WebSocketMissing):
        await Broker(port=0, ws_port=0).start()


async def test_an_agent_and_a_console() -> None:
    """QMF itself passes over WebSocket: both ends are found, queried and called there, and see events."""
    async with Broker(port=0, ws_port=0) as broker:
        assert broker.ws_url is not None
        raised: list[str] = []
        async with store_agent(broker.ws_url) as agent, Client(broker.ws_url, settle=0.0) as console:
            agent.on("shelf", "add", lambda obj, count, at: {"total": count + 1})
            console.listen(
                lambda seen: raised.append(str(seen.event.class_key)) if isinstance(seen, EventRaised) else None
            )
            await console.locate(settle=0.0)
            await until(lambda: console.agents, "the agent")
            (shelf,) = [item for item in await console.objects("shelf") if item["name"] == "a/1"]
            assert (await shelf.call("add", count=4))["total"] == 5
            agent.raise_event("sale", shelf="a/1", count=1)
            await until(lambda: any("sale" in text for text in raised), "the event")
