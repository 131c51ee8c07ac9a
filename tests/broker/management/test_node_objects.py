"""The broker and its nodes as consoles see them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from broker.management.managed import TOPIC, Control, connected, exchange, id_of, knows_agent, managed, queues
from support.managed_brokers import NAMES, managed_broker, unique
from support.recording import Inbox, message
from support.waiting import until

from qmf.broker import QueueLimits
from qmf.broker.connection_limits import ConnectionLimits
from qmf.bus import Binding
from qmf.console.aio import Client
from qmf.errors import LinkError, RemoteError
from qmf.messaging import aio
from qmf.messaging.exceptions import MessagingError, NotFound
from qmf.messaging.message import Message
from qmf.models.broker import console as remote


async def test_the_broker_and_its_exchanges_are_there() -> None:
    async with managed(domains=["site"]) as (broker, client):
        (agent,) = client.agents
        assert agent.name.startswith("qmf:broker:")
        assert agent.name.endswith(f":{broker.port}")
        (system,) = await client.objects(remote.System)
        (it,) = await client.objects(remote.Broker)
        (vhost,) = await client.objects(remote.Vhost)
        assert (it.name, it.port, it.systemRef, it.mgmtPubInterval) == ("amqp-broker", broker.port, id_of(system), 3600)
        assert it.uptime > 0
        assert (vhost.name, vhost.brokerRef) == ("/", id_of(it))
        exchanges = {item.name: item for item in await client.objects(remote.Exchange)}
        assert {name: item.type for name, item in exchanges.items()} == {
            "": "direct",
            "amq.direct": "direct",
            "amq.fanout": "fanout",
            "amq.match": "headers",
            "amq.topic": "topic",
            "qmf.default.direct": "direct",
            "qmf.default.topic": "topic",
            "qmf.site.direct": "direct",
            "qmf.site.topic": "topic",
            "qpid.management": "topic",
        }
        assert {item.vhostRef for item in exchanges.values()} == {id_of(vhost)}


async def test_counts_are_exact() -> None:
    async with managed(queues=["jobs"]) as (broker, client), connected(broker.url) as bus:
        inbox = Inbox(hold=True)
        await bus.subscribe(Binding(TOPIC, "k.#"), inbox, prefetch=3)
        data = [message(TOPIC, "k.1", "x" * size) for size in range(10)]
        for item in data:
            await bus.send(item, confirm=True)
        await bus.send(message(TOPIC, "other", "nobody"), confirm=True)
        await inbox.wait(3)

        found = await exchange(client, TOPIC)
        size, lost = sum(map(len, data)), len(message(TOPIC, "other", "nobody"))
        assert (found.msgReceives, found.byteReceives) == (11, size + lost)
        assert (found.msgRoutes, found.byteRoutes) == (10, size)
        assert (found.msgDrops, found.byteDrops) == (1, lost)
        assert found.bindingCount.value == 1
        (binding,) = [item for item in await client.objects(remote.Binding) if item.bindingKey == "k.#"]
        assert binding.msgMatched == 10
        (queue,) = [item for item in await client.objects(remote.Queue) if id_of(item) == binding.queueRef]
        assert (queue.msgTotalEnqueues, queue.byteTotalEnqueues) == (10, size)
        # AmqpBus has messages settled by the broker, so that those it was sent have left the queue.
        left = 10 - queue.acquires
        assert (queue.msgDepth, queue.byteDepth) == (left, sum(map(len, data[10 - left :])))
        assert queue.msgTotalDequeues == queue.acquires == 3

        for held in inbox.held:
            held.settle()
        inbox.hold = False
        await inbox.wait(10)
        queue = (await queues(client))[queue.name]
        assert (queue.msgDepth, queue.byteDepth, queue.msgTotalDequeues, queue.acquires) == (0, 0, 10, 10)


async def test_a_named_queue_is_counted_and_purged() -> None:
    async with managed(queues=["jobs"], limits=QueueLimits(count=5)) as (broker, client), connected(broker.url) as bus:
        for _ in range(3):
            await bus.send(message("jobs", None, "direct"), confirm=True)
        for _ in range(2):
            await bus.send(message("", "jobs", "by default"), confirm=True)
        with pytest.raises(LinkError, match="Maximum depth exceeded on jobs"):
            await bus.send(message("jobs", None, "too many"), confirm=True)
        jobs = (await queues(client))["jobs"]
        assert (jobs.durable, jobs.autoDelete, jobs.exclusive, jobs.creator) == (False, False, False, "")
        assert (jobs.arguments, jobs.altExchange) == ({}, None)
        assert (jobs.msgDepth, jobs.msgTotalEnqueues, jobs.discardsOverflow, jobs.acquires) == (5, 5, 1, 0)
        (binding,) = [item for item in await client.objects(remote.Binding) if item.queueRef == id_of(jobs)]
        assert (binding.bindingKey, binding.msgMatched) == ("jobs", 2)
        default = await exchange(client, "")
        assert (default.msgReceives, default.msgRoutes) == (2, 2)

        await jobs.purge(2, {})
        jobs = (await queues(client))["jobs"]
        assert (jobs.msgDepth, jobs.discardsPurge) == (3, 2)
        with pytest.raises(RemoteError, match="Unrecognized message filter"):
            await jobs.purge(0, {"filter_type": "header_match_str"})
        await jobs.purge(0, {})
        jobs = (await queues(client))["jobs"]
        assert (jobs.msgDepth, jobs.byteDepth, jobs.discardsPurge) == (0, 0, 5)


async def test_totals_keep_what_deleted_queues_counted() -> None:
    async with managed() as (broker, client):
        async with connected(broker.url) as bus:
            await bus.subscribe(Binding(TOPIC, "k"), Inbox(hold=True), prefetch=1)
            before = (await client.objects(remote.Broker))[0]
            for _ in range(4):
                await bus.send(message(TOPIC, "k"), confirm=True)
        await until(lambda: broker.connections == 1, "the end of the connection")
        after = (await client.objects(remote.Broker))[0]
        assert after.msgTotalEnqueues - before.msgTotalEnqueues >= 4
        assert after.queueCount == before.queueCount - 1
        assert after.abandoned == 3
        # The messages of the queries are on queues, too, and not always as many.
        async with asyncio.timeout(30):
            while after.msgDepth != sum(item.msgDepth for item in await client.objects(remote.Queue)):
                after = (await client.objects(remote.Broker))[0]


async def test_echo_works_and_settings_are_refused() -> None:
    async with managed() as (_, client):
        (it,) = await client.objects(remote.Broker)
        result = await it.echo(7, "hello")
        assert (result.sequence, result.body) == (7, "hello")
        with pytest.raises(RemoteError, match=r"setting Broker\.mgmtPubInterval is not supported by this broker"):
            await it.set(mgmtPubInterval=1)


async def test_the_process_is_controlled() -> None:
    control = Control()
    async with managed(process=control) as (_, client):
        (it,) = await client.objects(remote.Broker)
        assert (await it.getLogLevel()).level == "notice+"
        await it.setLogLevel("debug+:Broker")
        assert (await it.getLogLevel()).level == "debug+:Broker"
        with pytest.raises(RemoteError, match="log rule 'loud'"):
            await it.setLogLevel("loud")
        await it.setLogHiresTimestamp(True)
        assert (await it.getLogHiresTimestamp()).logHires is True
        await it.shutdown()
        assert control.ended


async def test_limits_and_publishing_are_shown() -> None:
    async with managed(publishes=False, connection_limits=ConnectionLimits(total=7), backlog=5) as (_, client):
        (it,) = await client.objects(remote.Broker)
        assert (it.maxConns, it.connBacklog, it.mgmtPublish) == (7, 5, False)


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
