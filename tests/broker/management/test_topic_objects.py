"""Topics and policies as consoles create them, and clients use them; also on the qpidd that QMF_TEST_QPIDD names."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from broker.management.managed import id_of, knows_agent, managed
from support.managed_brokers import NAMES, managed_broker, unique

from qmf.console.aio import Client
from qmf.errors import RemoteError
from qmf.messaging import aio
from qmf.messaging.exceptions import MessagingError, NotFound
from qmf.messaging.message import Message
from qmf.models.broker import console as remote


@asynccontextmanager
async def console(name: str) -> AsyncIterator[tuple[str, Client, remote.Broker]]:
    with managed_broker(name) as url:
        async with Client(url, settle=0.0) as client:
            await knows_agent(client)
            (it,) = await client.objects(remote.Broker)
            yield url, client, it


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
async def test_a_topic_gives_its_subscribers_queues_with_its_settings(name: str) -> None:
    topic = unique("news")
    async with console(name) as (url, client, it):
        await it.create(
            "topic", topic, {"exchange": "amq.fanout", "qpid.max_count": 2, "qpid.policy_type": "ring"}, True
        )
        try:
            (found,) = [item for item in await client.objects(remote.Topic) if item.name == topic]
            (fanout,) = [item for item in await client.objects(remote.Exchange) if item.name == "amq.fanout"]
            assert found.exchangeRef == id_of(fanout)
            assert not found.durable
            assert {"qpid.max_count", "qpid.policy_type"} <= found.properties.keys()
            for arguments, error in (
                ((topic, {"exchange": "amq.fanout"}), f"A topic named {topic} already exists"),
                ((unique("x"), {"exchange": "none"}), "not-found: Exchange not found: none"),
            ):
                with pytest.raises(RemoteError) as caught:
                    await it.create("topic", *arguments, True)
                assert caught.value.text.startswith(error)
            async with aio.Connection(url) as connection:
                session = await connection.session()
                receiver = await session.receiver(topic)
                sender = await session.sender(topic)
                for number in range(4):
                    await sender.send(Message(str(number)), timeout=30)
                assert [(await receiver.fetch(timeout=30)).content for _ in range(2)] == ["2", "3"]
                await session.acknowledge()
        finally:
            await it.delete("topic", topic, {})
        assert topic not in {item.name for item in await client.objects(remote.Topic)}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
async def test_addresses_that_match_a_pattern_are_created_when_they_are_used(name: str) -> None:
    stem = unique("on-demand")
    policies: dict[str, tuple[str, dict[str, object]]] = {
        "QueuePolicy": (f"{stem}-q.*", {"qpid.max_count": 2}),
        "TopicPolicy": (f"{stem}-t.*", {"exchange-type": "fanout"}),
    }
    async with console(name) as (url, client, it):
        for type, (pattern, properties) in policies.items():
            await it.create(type, pattern, properties, True)
        try:
            assert f"{stem}-q.*" in {item.name for item in await client.objects(remote.QueuePolicy)}
            assert f"{stem}-t.*" in {item.name for item in await client.objects(remote.TopicPolicy)}
            with pytest.raises(RemoteError) as caught:
                await it.create("QueuePolicy", f"{stem}-q.*", {}, True)
            assert caught.value.text.startswith(f"An object of type QueuePolicy with key {stem}-q.* already exists")
            async with aio.Connection(url) as connection:
                session = await connection.session()
                queue, topic = await session.sender(f"{stem}-q1"), await session.sender(f"{stem}-t1")
                subscriber = await session.receiver(f"{stem}-t1")
                for sender in (queue, topic):
                    await sender.send(Message("x"), timeout=30)
                for receiver in (subscriber, await session.receiver(f"{stem}-q1")):
                    assert (await receiver.fetch(timeout=30)).content == "x"
                await session.acknowledge()
                (made,) = [item for item in await client.objects(remote.Queue) if item.name == f"{stem}-q1"]
                assert made.arguments["qpid.max_count"] == 2
                assert f"{stem}-t1" in {item.name for item in await client.objects(remote.Topic)}
                with pytest.raises(NotFound):
                    await session.sender(f"{stem}-other")
        finally:
            for type, (pattern, _) in policies.items():
                await it.delete(type, pattern, {})


async def test_a_queue_of_a_policy_is_deleted_after_its_use() -> None:
    async with managed(queue_patterns=["temp-.*"]) as (broker, client), aio.Connection(broker.url) as connection:
        session = await connection.session()
        await (await session.sender("temp-1")).send(Message("x"))
        receiver = await session.receiver("temp-1")
        await receiver.fetch(timeout=30)
        await session.acknowledge()
        await receiver.close()
        assert "temp-1" not in {item.name for item in await client.objects(remote.Queue)}


async def test_messages_to_the_anonymous_relay_reach_a_topic() -> None:
    async with managed() as (broker, client):
        (it,) = await client.objects(remote.Broker)
        await it.create("topic", "news", {"exchange": "amq.fanout"}, True)
        async with aio.Connection(broker.url) as connection:
            session = await connection.session()
            receiver = await session.receiver("news")
            await (await session.sender("news/subject")).send(Message("x"))
            assert (await receiver.fetch(timeout=30)).content == "x"


async def test_a_subscriber_whose_queue_is_full_refuses_messages_if_the_topic_says_so() -> None:
    async with managed() as (broker, client):
        (it,) = await client.objects(remote.Broker)
        await it.create("topic", "news", {"exchange": "amq.fanout", "qpid.max_count": 1}, True)
        async with aio.Connection(broker.url) as connection:
            session = await connection.session()
            await session.receiver("news")
            sender = await session.sender("news")
            await sender.send(Message("1"), timeout=30)
            with pytest.raises(MessagingError, match="Maximum depth exceeded"):
                await sender.send(Message("2"), timeout=30)


async def test_a_policy_whose_node_cannot_be_created_refuses_the_link() -> None:
    async with managed() as (broker, client):
        (it,) = await client.objects(remote.Broker)
        await it.create("QueuePolicy", "q.*", {"alternate-exchange": "none"}, True)
        async with aio.Connection(broker.url) as connection:
            with pytest.raises(NotFound, match="Exchange not found: none"):
                await (await connection.session()).sender("q1")


async def test_durable_topics_and_policies_are_there_after_a_restart(tmp_path: Path) -> None:
    async with managed(data_dir=tmp_path) as (_, client):
        (it,) = await client.objects(remote.Broker)
        await it.create("exchange", "own", {"exchange-type": "fanout", "durable": True}, True)
        await it.create("topic", "kept", {"exchange": "own", "durable": True, "qpid.max_count": 3}, True)
        await it.create("topic", "predeclared", {"exchange": "amq.topic", "durable": True}, True)
        await it.create("topic", "ended", {"exchange": "own", "durable": True}, True)
        await it.create("topic", "transient", {"exchange": "own"}, True)
        await it.create("QueuePolicy", "q.*", {"durable": True, "qpid.max_count": 4}, True)
        await it.create("TopicPolicy", "t.*", {"durable": True, "exchange-type": "headers"}, True)
        await it.create("TopicPolicy", "u.*", {}, True)
        await it.create("exchange", "transient-exchange", {}, True)
        with pytest.raises(RemoteError, match="Durable topic must be backed by durable exchange"):
            await it.create("topic", "impossible", {"exchange": "transient-exchange", "durable": True}, True)
        await it.delete("topic", "ended", {})
    async with managed(data_dir=tmp_path, topic_patterns=["t.*", "v.*"]) as (broker, client):
        topics = {item.name: item for item in await client.objects(remote.Topic)}
        assert topics.keys() == {"kept", "predeclared"}
        assert topics["kept"].durable
        assert topics["kept"].properties == {"qpid.max_count": 3}
        (queue_policy,) = await client.objects(remote.QueuePolicy)
        assert (queue_policy.name, queue_policy.properties["qpid.max_count"]) == ("q.*", 4)
        patterns = {item.name: item.properties for item in await client.objects(remote.TopicPolicy)}
        assert patterns.keys() == {"t.*", "v.*"}
        assert patterns["t.*"]["exchange-type"] == "headers"
        async with aio.Connection(broker.url) as connection:
            await (await (await connection.session()).sender("q1")).send(Message("x"), timeout=30)
        (made,) = [item for item in await client.objects(remote.Queue) if item.name == "q1"]
        assert made.durable
