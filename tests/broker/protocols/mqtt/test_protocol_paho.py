"""Eclipse Paho's client at the embedded broker: another implementation of both versions."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt import properties as paho_properties
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.subscribeoptions import SubscribeOptions
from support.waiting import WAIT_LIMIT, wait_until

from qmf.broker import EmbeddedBroker
from qmf.broker.protocols.mqtt.options import MqttOptions

#: Without types.
Properties: Any = paho_properties.Properties

VERSIONS = pytest.mark.parametrize("version", [paho.MQTTv311, paho.MQTTv5], ids=["3.1.1", "5"])


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with EmbeddedBroker(mqtt=MqttOptions(port=0)) as broker:
        yield int(broker.mqtt_urls[0].rpartition(":")[2])


class PahoClient:
    """A client with its loop in a thread; keeps what it receives."""

    def __init__(self, port: int, client_id: str, version: Any, **connect: Any) -> None:
        self.received: queue.Queue[paho.MQTTMessage] = queue.Queue()
        self._subscribed: queue.Queue[Any] = queue.Queue()
        self.client = paho.Client(CallbackAPIVersion.VERSION2, client_id, protocol=version)
        self.client.on_message = lambda client, data, message: self.received.put(message)
        self.client.on_subscribe = lambda client, data, number, codes, properties: self._subscribed.put(codes)
        self._connect = {"host": "127.0.0.1", "port": port, **connect}

    def __enter__(self) -> PahoClient:
        self.client.connect(**self._connect)
        self.client.loop_start()
        wait_until(self.client.is_connected)
        return self

    def __exit__(self, *error: object) -> None:
        self.client.disconnect()
        self.client.loop_stop()

    def subscribe(self, *args: Any, **options: Any) -> list[int]:
        self.client.subscribe(*args, **options)
        return [code.value for code in self._subscribed.get(timeout=WAIT_LIMIT)]

    def message(self) -> paho.MQTTMessage:
        return self.received.get(timeout=WAIT_LIMIT)


@VERSIONS
def test_each_qos(port: int, version: Any) -> None:
    with PahoClient(port, "one", version) as one, PahoClient(port, "other", version) as other:
        assert one.subscribe([("q/0", 0), ("q/1", 1), ("q/2", 2)]) == [0, 1, 2]
        for number in range(60):
            other.client.publish(f"q/{number % 3}", str(number), qos=2)
        found = [one.message() for _ in range(60)]
        # It hands over what has QoS 2 when that is released, behind others: each topic has its own order.
        for qos in range(3):
            assert [int(each.payload) for each in found if each.qos == qos] == list(range(qos, 60, 3))


@VERSIONS
def test_retained_messages(port: int, version: Any) -> None:
    topic = f"retained/{int(version)}"
    with PahoClient(port, "one", version) as one:
        one.client.publish(topic, "x", qos=1, retain=True).wait_for_publish(WAIT_LIMIT)
        one.subscribe(topic, qos=1)
        message = one.message()
        assert (message.payload, message.retain) == (b"x", True)
        one.client.publish(topic, "", qos=1, retain=True).wait_for_publish(WAIT_LIMIT)


def test_properties_and_options(port: int) -> None:
    with PahoClient(port, "one", paho.MQTTv5) as one:
        properties = Properties(PacketTypes.SUBSCRIBE)
        properties.SubscriptionIdentifier = 9
        one.subscribe("p", options=SubscribeOptions(qos=1, retainAsPublished=True), properties=properties)
        given = Properties(PacketTypes.PUBLISH)
        given.ContentType = "text/plain"
        given.UserProperty = [("a", "1"), ("a", "2")]
        given.MessageExpiryInterval = 100
        one.client.publish("p", "x", qos=1, retain=True, properties=given)
        message = one.message()
        assert message.retain
        of_message: Any = message.properties
        found = of_message.json()
        assert found.pop("MessageExpiryInterval") <= 100
        assert found == {
            "ContentType": "text/plain",
            "UserProperty": [("a", "1"), ("a", "2")],
            "SubscriptionIdentifier": [9],
        }
