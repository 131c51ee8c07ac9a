"""gmqtt and aiomqtt, clients of MQTT for asyncio, against the embedded broker."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from support.foreign import required
from support.waiting import WAIT_LIMIT

from qmf.broker import Broker
from qmf.broker.protocols.mqtt.options import MqttOptions

pytestmark = [pytest.mark.slow, pytest.mark.asyncio]


@pytest.fixture
def libraries() -> Iterator[tuple[Any, Any]]:
    """gmqtt and aiomqtt, which are in a folder of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(required("python_mqtt"))
        yield importlib.import_module("gmqtt"), importlib.import_module("aiomqtt")


@pytest.fixture
async def port() -> AsyncIterator[int]:
    async with Broker(port=0, mqtt=MqttOptions(port=0)) as broker:
        yield int(broker.mqtt_urls[0].rpartition(":")[2])


class GmqttClient:
    """A client that keeps what it receives."""

    def __init__(self, library: Any, client_id: str, **options: Any) -> None:
        self.received: asyncio.Queue[tuple[str, bytes, int, Any]] = asyncio.Queue()
        self.client = library.Client(client_id, **options)
        self.client.on_message = self._on_message
        self._subscribed = asyncio.Event()
        self.client.on_subscribe = lambda *_: self._subscribed.set()

    async def _on_message(self, _: Any, topic: str, payload: bytes, qos: int, properties: Any) -> int:
        self.received.put_nowait((topic, payload, qos, properties))
        return 0

    async def connect(self, port: int, version: int) -> None:
        await self.client.connect("127.0.0.1", port, version=version)

    async def subscribe(self, topic: str, qos: int) -> None:
        self._subscribed.clear()
        self.client.subscribe(topic, qos=qos)
        async with asyncio.timeout(WAIT_LIMIT):
            await self._subscribed.wait()

    async def message(self) -> tuple[str, bytes, int, Any]:
        async with asyncio.timeout(WAIT_LIMIT):
            return await self.received.get()


@pytest.mark.parametrize("version", [4, 5])
async def test_gmqtt(libraries: tuple[Any, Any], port: int, version: int) -> None:
    gmqtt, _ = libraries
    one, other = GmqttClient(gmqtt, "one"), GmqttClient(gmqtt, "other")
    await one.connect(port, version)
    await other.connect(port, version)
    for qos in range(3):
        await one.subscribe(f"q/{qos}", qos)
    for number in range(30):
        options = {"user_property": ("a", "1"), "content_type": "x"} if version == 5 else {}
        other.client.publish(f"q/{number % 3}", str(number), qos=number % 3, **options)
    found = [await one.message() for _ in range(30)]
    for qos in range(3):
        assert [(int(payload), got) for topic, payload, got, _ in found if topic == f"q/{qos}"] == [
            (number, qos) for number in range(qos, 30, 3)
        ]
    if version == 5:
        assert all(properties["user_property"] == [("a", "1")] for *_, properties in found)
        assert all(properties["content_type"] == ["x"] for *_, properties in found)
    await one.client.disconnect()
    await other.client.disconnect()


async def test_gmqtt_keeps_its_session(libraries: tuple[Any, Any], port: int) -> None:
    gmqtt, _ = libraries
    options = {"clean_session": False, "session_expiry_interval": 1000}
    client = GmqttClient(gmqtt, "kept", **options)
    await client.connect(port, 5)
    await client.subscribe("kept/#", 2)
    await client.client.disconnect(session_expiry_interval=1000)
    other = GmqttClient(gmqtt, "other", will_message=gmqtt.Message("kept/will", "lost", qos=1))
    await other.connect(port, 5)
    other.client.publish("kept/1", "while away", qos=1)
    await other.client.disconnect(reason_code=4)  # with the will
    client = GmqttClient(gmqtt, "kept", **options)
    await client.connect(port, 5)
    assert [(await client.message())[:2] for _ in range(2)] == [("kept/1", b"while away"), ("kept/will", b"lost")]
    await client.client.disconnect()


@pytest.mark.parametrize("version", ["V311", "V5"])
async def test_aiomqtt(libraries: tuple[Any, Any], port: int, version: str) -> None:
    _, aiomqtt = libraries
    protocol = getattr(aiomqtt.ProtocolVersion, version)
    clients = [aiomqtt.Client("127.0.0.1", port, identifier=name, protocol=protocol) for name in ("one", "other")]
    async with clients[0] as one, clients[1] as other, asyncio.timeout(WAIT_LIMIT):
        await other.publish("kept", b"retained", qos=1, retain=True)
        for qos in range(3):
            await one.subscribe(f"q/{qos}", qos=qos)
        await one.subscribe("kept", qos=1)
        for number in range(30):
            await other.publish(f"q/{number % 3}", str(number), qos=number % 3)
        found: dict[str, list[bytes]] = {}
        async for message in one.messages:
            found.setdefault(message.topic.value, []).append(message.payload)
            if sum(map(len, found.values())) == 31:
                break
        assert found.pop("kept") == [b"retained"]
        assert found == {f"q/{qos}": [str(number).encode() for number in range(qos, 30, 3)] for qos in range(3)}
