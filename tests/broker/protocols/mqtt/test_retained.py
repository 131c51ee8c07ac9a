"""Retained messages: replaced, removed, found by wildcards, kept over a restart, seen by other tools."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker.protocols.mqtt.wire_client import connect, mqtt_broker
from hypothesis import given
from hypothesis import strategies as st

from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.settings import QueueLimits
from qmf.broker.operations.operations import Operations
from qmf.broker.protocols.mqtt.codec.packets import Publish, SubscriptionRequest
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty
from qmf.broker.protocols.mqtt.codec.topics import matches
from qmf.broker.protocols.mqtt.codec.values import ReasonCode, Version
from qmf.broker.protocols.mqtt.mapping import to_message
from qmf.broker.protocols.mqtt.retained import RetainedMessages


@pytest.mark.asyncio
async def test_new_subscriptions_get_the_last_messages() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker)
        for topic, payload in (("a/1", b"old"), ("a/1", b"1"), ("a/2", b"2"), ("b", b"3"), ("a/3", b"4"), ("a/3", b"")):
            await client.publish(topic, payload, 1, retain=True)
        await client.publish("a/1", b"passes")
        await client.subscribe("a/+", qos=1)
        found = [await client.publication(), await client.publication()]
        assert [(each.topic, each.payload, each.retain, each.qos) for each in found] == [
            ("a/1", b"1", True, 1),
            ("a/2", b"2", True, 1),
        ]
        await client.publish("a/1", b"live", 1, retain=True)
        message = await client.publication()
        assert (message.payload, message.retain) == (b"live", False)


@pytest.mark.asyncio
async def test_retain_handling() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker)
        await client.publish("a", b"x", retain=True)
        await client.subscribe(SubscriptionRequest("a", retain_handling=2))
        assert await client.nothing_waits()
        await client.subscribe(SubscriptionRequest("a", retain_handling=1))
        assert await client.nothing_waits()
        await client.subscribe(SubscriptionRequest("a", retain_handling=0))
        assert await client.payloads(1) == [b"x"]
        await client.unsubscribe("a")
        await client.subscribe(SubscriptionRequest("a", retain_handling=1), "$share/g/a")
        assert await client.payloads(1) == [b"x"]
        assert await client.nothing_waits()


@pytest.mark.asyncio
async def test_they_survive_a_restart(tmp_path: Path) -> None:
    async with mqtt_broker(data_dir=tmp_path) as broker:
        client = await connect(broker)
        await client.publish("a/1", b"1", 1, retain=True)
        await client.publish("a/2", b"2", 2, retain=True)
        await client.publish("a/3", b"3", 1, retain=True)
        await client.publish("a/3", b"", 1, retain=True)
        await client.publish("a/4", b"in memory", 0, retain=True)
    async with mqtt_broker(data_dir=tmp_path) as broker:
        client = await connect(broker)
        await client.subscribe("#")
        assert await client.payloads(2) == [b"1", b"2"]
        assert await client.nothing_waits()


@pytest.mark.asyncio
async def test_they_end_with_their_time() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker)
        await client.publish("a", b"x", retain=True, properties={PacketProperty.MESSAGE_EXPIRY: 0})
        await client.subscribe("a")
        assert await client.nothing_waits()


@pytest.mark.asyncio
async def test_what_cannot_be_retained_is_not_published() -> None:
    async with mqtt_broker(limits=QueueLimits(None, 1_000)) as broker:
        client = await connect(broker)
        await client.subscribe("a")
        assert await client.publish("a", b"x" * 500, 2, retain=True) == 0
        assert await client.publish("a", b"y" * 500, 2, retain=True) == ReasonCode.QUOTA_EXCEEDED
        assert await client.payloads(1) == [b"x" * 500]
        assert await client.nothing_waits()
        old = await connect(broker, "old", version=Version.V3)
        old.send(Publish("a", b"z" * 900, 1, True, packet_id=1))
        await old.closed()
        assert await client.nothing_waits()


topics = st.lists(st.sampled_from(["a", "b", "$x", ""]), min_size=1, max_size=4).map("/".join).filter(bool)
filters = st.lists(st.sampled_from(["a", "b", "+", "$x", ""]), min_size=1, max_size=4).map("/".join).filter(bool)


@pytest.mark.slow
@given(st.lists(topics), st.lists(topics), filters, st.booleans())
def test_filters_find_what_they_match(put: list[str], removed: list[str], pattern: str, all_below: bool) -> None:
    registry = NodeRegistry()
    retained = RetainedMessages(Operations(registry))
    for topic in put:
        message = to_message(topic, b"x", 0, retain=True, properties={}, exchange="mqtt", now=0.0, origin=None)
        assert retained.put(message) is None
    for topic in removed:
        retained.remove(topic)
    wanted = f"{pattern}/#" if all_below else pattern
    kept = set(put) - set(removed)
    assert {each.subject for each in retained.matching(wanted)} == {topic for topic in kept if matches(wanted, topic)}
    assert len(retained) == len(kept)
