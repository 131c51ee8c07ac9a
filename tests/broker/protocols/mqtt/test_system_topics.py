"""Topics below $SYS: their values, who gets them and when, and that no wildcard at the beginning finds them."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker.protocols.mqtt.wire_client import WireClient, connect, mqtt_broker

from qmf.broker.access.control import FileAccessControl
from qmf.broker.nodes.bindings import BindingSpec
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.operations.operations import Operations
from qmf.broker.protocols.mqtt.client_counts import ClientCounts, MqttTotals
from qmf.broker.protocols.mqtt.codec.values import ReasonCode
from qmf.broker.protocols.mqtt.mapping import read_content
from qmf.broker.protocols.mqtt.sessions import MqttSessions
from qmf.broker.protocols.mqtt.system_topics import SystemTopics

BROKER = "$SYS/broker/"


async def values(client: WireClient, count: int) -> dict[str, bytes]:
    found = [await client.publication() for _ in range(count)]
    return {each.topic.removeprefix(BROKER): each.payload for each in found}


@pytest.mark.asyncio
async def test_a_subscription_gets_the_values_of_now() -> None:
    async with mqtt_broker({"sys_interval": 600}) as broker:
        client, other = await connect(broker), await connect(broker, "other", expiry=100)
        await other.subscribe("a", "$share/g/b", qos=1)
        await other.publish("a", b"x", 1, retain=True)
        await other.disconnect()
        assert await client.subscribe("$SYS/broker/clients/+", "$SYS/broker/retained messages/#") == (0, 0)
        assert await values(client, 6) == {
            "clients/total": b"2",
            "clients/connected": b"1",
            "clients/disconnected": b"1",
            "clients/maximum": b"2",
            "clients/expired": b"0",
            "retained messages/count": b"1",
        }
        await client.subscribe("$SYS/broker/+/count")
        assert await values(client, 3) == {
            "subscriptions/count": b"5",
            "shared_subscriptions/count": b"1",
            "retained messages/count": b"1",
        }
        await client.subscribe("$SYS/broker/version", "$SYS/broker/uptime", "$SYS/broker/publish/#")
        found = await values(client, 4)
        assert found["version"].startswith(b"qmf-broker version ")
        assert found["uptime"].endswith(b" seconds")
        assert found["publish/messages/received"] == b"1"


@pytest.mark.asyncio
async def test_no_wildcard_at_the_beginning_finds_them() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker)
        await client.subscribe("#", "+/broker/uptime", "$share/g/#", "$share/g/+/broker/uptime")
        assert await client.nothing_waits()
        await client.subscribe("$SYS/broker/uptime")
        message = await client.publication()
        assert (message.topic, message.qos, message.retain) == ("$SYS/broker/uptime", 0, True)
        assert await client.nothing_waits()


@pytest.mark.asyncio
async def test_rules_decide_who_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "users.acl"
    rules = [
        "acl allow all access",
        "acl allow all create queue name=mqtt/*",
        "acl allow all consume queue",
        "acl allow all bind exchange name=mqtt routingkey=#",
        "acl allow ann@QPID bind exchange name=mqtt routingkey=$SYS/broker/clients/#",
        "acl deny all all",
    ]
    file.write_text("\n".join(rules) + "\n")
    async with mqtt_broker(users={"ann": "a", "bob": "b"}, access=FileAccessControl(file)) as broker:
        bob = await connect(broker, "bob", username="bob", password=b"b")
        assert await bob.subscribe("#", "$SYS/#", "$SYS/broker/clients/total") == (0, *[ReasonCode.NOT_AUTHORIZED] * 2)
        assert await bob.nothing_waits()
        ann = await connect(broker, "ann", username="ann", password=b"a")
        assert await ann.subscribe("$SYS/#", "$SYS/broker/clients/total") == (ReasonCode.NOT_AUTHORIZED, 0)
        assert await ann.payloads(1) == [b"2"]


@pytest.mark.asyncio
async def test_without_an_interval_there_are_none() -> None:
    async with mqtt_broker({"sys_interval": 0}) as broker:
        client = await connect(broker)
        assert await client.subscribe("$SYS/#") == (0,)
        assert await client.nothing_waits()


class CountedConnection:
    """A client with numbers that are set."""

    def __init__(self) -> None:
        self.now = MqttTotals(1)

    def totals(self) -> MqttTotals:
        return self.now


class Values:
    """The topics of a broker without clients, and a queue that is bound to some."""

    def __init__(self, interval: float, pattern: str) -> None:
        registry = NodeRegistry()
        sessions = MqttSessions(Operations(registry), 0)
        self.counts = sessions.counts
        self.topics = SystemTopics(sessions, interval)
        self._queue = registry.declare_queue("wanted")
        registry.bind(sessions.exchange, self._queue, BindingSpec(pattern))

    def published(self) -> dict[str, bytes]:
        """What is published after an interval, by the topic without the beginning."""
        self.topics.publish_changes()
        found = [read_content(entry.message, "mqtt") for entry in self._queue.contents.take()]
        for content, _ in found:
            assert content.retain
            assert content.qos == 0
        return {content.name.removeprefix(BROKER): payload for content, payload in found}


def test_what_has_changed_is_published_to_who_is_bound() -> None:
    values = Values(10, "$SYS/broker/clients/#")
    assert set(values.published()) == {
        f"clients/{name}" for name in ("total", "connected", "disconnected", "maximum", "expired")
    }
    assert values.published() == {}
    client = CountedConnection()
    values.counts.add(client)
    assert values.published() == {
        "clients/connected": b"1",
        "clients/disconnected": b"-1",
        "clients/maximum": b"1",
    }


def test_averages_follow_the_rates() -> None:
    values = Values(60, "$SYS/broker/load/+/+/1min")
    client = CountedConnection()
    values.counts.add(client)
    client.now = MqttTotals(1, packets_in=100, octets_in=1000, publications_in=90)
    first = values.published()
    assert (first["load/messages/received/1min"], first["load/messages/sent/1min"]) == (b"63.21", b"0.00")
    values.counts.remove(client)
    second = values.published()
    assert second["load/messages/received/1min"] == b"23.25"
    assert second["load/bytes/received/1min"] == b"232.54"
    assert second["load/publish/received/1min"] == b"20.93"


def test_what_went_over_connections_that_are_gone_counts() -> None:
    counts = ClientCounts()
    clients = [CountedConnection(), CountedConnection()]
    for client in clients:
        counts.add(client)
        client.now = MqttTotals(1, 2, 3, 4, 5, 6, 7)
    counts.remove(clients[0])
    counts.remove(clients[0])
    assert (counts.connected, counts.maximum) == (1, 2)
    assert counts.totals() == MqttTotals(2, 4, 6, 8, 10, 12, 14)


@pytest.mark.slow
@pytest.mark.asyncio
async def test_they_are_published_again_and_again() -> None:
    async with mqtt_broker({"sys_interval": 1}) as broker:
        client = await connect(broker)
        await client.subscribe("$SYS/broker/messages/received")
        first, second = await client.publication(), await client.publication()
        assert (first.retain, second.retain) == (True, False)
        assert int(first.payload) <= int(second.payload)
