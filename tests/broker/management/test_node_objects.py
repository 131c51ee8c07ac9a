"""The broker and its nodes as consoles see them."""

from __future__ import annotations

import asyncio

import pytest
from broker.management.managed import TOPIC, Control, connected, exchange, id_of, managed, queues
from support.recording import Inbox, message
from support.waiting import until

from qmf.broker import QueueLimits
from qmf.broker.connection_limits import ConnectionLimits
from qmf.bus import Binding
from qmf.errors import LinkError, RemoteError
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
