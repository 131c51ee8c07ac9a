"""The broker as consoles see it through its own agent, over real sockets."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
from bus.certificates import server_tls, trusting
from support.processes import running
from support.recording import Inbox, message
from support.waiting import until

from qmf.broker import Broker, EmbeddedBroker, QueueLimits
from qmf.broker.daemon.cli import main
from qmf.bus import AmqpBus, Binding, Bus
from qmf.console.aio import AgentRemoved, Client, EventRaised, ObjectUpdated, Removal
from qmf.console.typed import ObjectId, TypedObject
from qmf.errors import CallerError, LinkError, RemoteError
from qmf.models.broker import console as remote

TOPIC = "amq.topic"
#: Publications that come while a test waits for them, and such that don't come into any test.
OFTEN, NEVER = 0.05, 3600.0
BROKER = (sys.executable, "-W", "error", "-m", "qmf.broker")


@asynccontextmanager
async def managed(interval: float = NEVER, **options: object) -> AsyncIterator[tuple[Broker, Client]]:
    """A broker with an agent, and a console that knows it."""
    async with Broker(port=0, management=interval, **options) as broker, Client(broker.url, settle=0.0) as client:  # type: ignore[arg-type]
        await knows_agent(client)
        yield broker, client


async def knows_agent(client: Client) -> None:
    # Heartbeats are rare here, so it is asked for.
    await client.locate(settle=0.0)
    await until(lambda: client.agents, "the agent of the broker")


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Bus]:
    """A plain client."""
    bus = AmqpBus(url)
    await bus.open()
    yield bus
    await bus.close()


def id_of(item: TypedObject) -> ObjectId:
    found = item._qmf_remote.object_id
    assert found is not None
    return found


async def queues(client: Client) -> Mapping[str, remote.Queue]:
    return {item.name: item for item in await client.objects(remote.Queue)}


async def exchange(client: Client, name: str) -> remote.Exchange:
    (found,) = [item for item in await client.objects(remote.Exchange) if item.name == name]
    return found


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


async def test_a_console_sees_itself() -> None:
    async with managed() as (broker, client):
        (connection,) = await client.objects(remote.Connection)
        (vhost,) = await client.objects(remote.Vhost)
        assert re.fullmatch(rf"qpid\.127\.0\.0\.1:{broker.port}-127\.0\.0\.1:\d+", connection.address)
        assert (connection.vhostRef, connection.protocol, connection.incoming) == (id_of(vhost), "AMQP 1.0", True)
        assert (connection.saslMechanism, connection.authIdentity) == ("ANONYMOUS", "anonymous")
        assert (connection.remotePid, connection.remoteParentPid) == (os.getpid(), os.getppid())
        assert connection.remoteProcessName
        assert connection.msgsFromClient > 0
        assert connection.msgsToClient > 0
        (session,) = await client.objects(remote.Session)
        assert session.connectionRef == id_of(connection)
        subscriptions = await client.objects(remote.Subscription)
        mine = {id_of(item): item for item in await client.objects(remote.Queue) if item.creator == "anonymous"}
        assert len(subscriptions) == len(mine) > 0
        assert {item.queueRef for item in subscriptions} == set(mine)
        assert {item.sessionRef for item in subscriptions} == {id_of(session)}
        bindings = [item for item in await client.objects(remote.Binding) if item.queueRef in mine]
        assert "agent.ind.heartbeat.#" in {item.bindingKey for item in bindings}
        # Each queue is bound to the default exchange, too.
        assert len(bindings) == 2 * len(mine)
        assert {item.bindingCount.value for item in mine.values()} == {2}
        assert {item.consumerCount.value for item in mine.values()} == {1}


async def test_the_management_is_no_client() -> None:
    async with Broker(port=0, management=NEVER) as broker:
        assert (broker.connections, broker.counters.connections) == (0, 0)


async def test_without_being_asked_a_broker_has_no_agent() -> None:
    async with Broker(port=0) as broker, Client(broker.url, settle=0.0) as client:
        assert await client.locate(settle=0.05) == []
        assert broker.connections == 1


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
        with pytest.raises(LinkError, match="full"):
            await bus.send(message("jobs", None, "too many"), confirm=True)
        jobs = (await queues(client))["jobs"]
        assert (jobs.durable, jobs.autoDelete, jobs.exclusive, jobs.creator) == (False, False, False, "")
        assert jobs.arguments == {
            "qpid.max_count": 5,
            "qpid.max_size": QueueLimits().size,
            "qpid.policy_type": "reject",
        }
        assert (jobs.msgDepth, jobs.msgTotalEnqueues, jobs.discardsOverflow, jobs.acquires) == (5, 5, 1, 0)
        (binding,) = [item for item in await client.objects(remote.Binding) if item.queueRef == id_of(jobs)]
        assert (binding.bindingKey, binding.msgMatched) == ("jobs", 2)
        default = await exchange(client, "")
        assert (default.msgReceives, default.msgRoutes) == (2, 2)

        await jobs.purge(2, {})
        jobs = (await queues(client))["jobs"]
        assert (jobs.msgDepth, jobs.discardsPurge) == (3, 2)
        with pytest.raises(RemoteError, match="filter is not supported"):
            await jobs.purge(0, {"filter_type": "header_match_str"})
        await jobs.purge(0, {})
        jobs = (await queues(client))["jobs"]
        assert (jobs.msgDepth, jobs.byteDepth, jobs.discardsPurge) == (0, 0, 5)
        with pytest.raises(RemoteError, match=r"Queue\.reroute is not supported by this broker"):
            await jobs.reroute(0, False, "amq.direct", {})


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
        assert after.msgDepth == sum(item.msgDepth for item in await client.objects(remote.Queue))


async def test_objects_go_with_their_client() -> None:
    async with managed() as (broker, client):
        classes = (remote.Connection, remote.Session, remote.Subscription, remote.Queue, remote.Binding)

        async def counts() -> list[int]:
            return [len(await client.objects(cls)) for cls in classes]

        before = await counts()
        async with connected(broker.url) as bus:
            subscription = await bus.subscribe(Binding(TOPIC, "a"), Inbox())
            await bus.subscribe(Binding(TOPIC, "b"), Inbox())
            await bus.send(message(TOPIC, "a"), confirm=True)
            assert await counts() == [before[0] + 1, before[1] + 1, before[2] + 2, before[3] + 2, before[4] + 4]
            await subscription.close()
            assert await counts() == [before[0] + 1, before[1] + 1, before[2] + 1, before[3] + 1, before[4] + 2]
        await until(lambda: broker.connections == 1, "the end of the connection")
        assert await counts() == before


async def test_what_clients_do_is_told_as_events() -> None:
    async with managed() as (broker, client):
        heard: list[tuple[str, dict[str, object]]] = []

        def listen(news: object) -> None:
            if isinstance(news, EventRaised) and news.event.class_key is not None:
                heard.append((news.event.class_key.name, dict(news.event.arguments)))

        def told(name: str, **wanted: object) -> list[dict[str, object]]:
            return [values for kind, values in heard if kind == name and wanted.items() <= values.items()]

        client.listen(listen)
        async with connected(broker.url) as bus:
            subscription = await bus.subscribe(Binding(TOPIC, "k.#"), Inbox())
            # The console's own beginnings are told, too.
            await until(lambda: told("bind", exName=TOPIC), "the binding")
            (bound,) = told("bind", exName=TOPIC)
            queue = bound["qName"]
            who = {"rhost": bound["rhost"], "user": "anonymous"}
            assert bound == {**who, "exName": TOPIC, "qName": queue, "key": "k.#", "args": {}}
            # Events that are sent together are grouped by class, so their order is not that of what happened.
            await until(lambda: told("subscribe", qName=queue), "the subscription")
            await until(lambda: told("clientConnect", **who), "the connection")
            (opened,) = told("clientConnect", **who)
            assert told("queueDeclare", **who) == [
                {
                    **who,
                    "qName": queue,
                    "durable": False,
                    "excl": True,
                    "autoDel": True,
                    "altEx": "",
                    "args": {},
                    "disp": "created",
                }
            ]
            (subscribed,) = told("subscribe", **who)
            assert subscribed == {**who, "qName": queue, "dest": subscribed["dest"], "excl": True, "args": {}}
            await subscription.close()
            for name in ("queueDelete", "unbind", "unsubscribe"):
                await until(lambda name=name: told(name), name)  # type: ignore[misc]
            assert told("unsubscribe") == [{**who, "dest": subscribed["dest"]}]
            assert told("unbind") == [{**who, "exName": TOPIC, "qName": queue, "key": "k.#"}]
            assert told("queueDelete") == [{**who, "qName": queue}]
        await until(lambda: told("clientDisconnect"), "the end of the connection")
        assert told("clientDisconnect") == [opened]


async def test_echo_works_and_what_makes_no_sense_is_refused() -> None:
    async with managed() as (_, client):
        (it,) = await client.objects(remote.Broker)
        result = await it.echo(7, "hello")
        assert (result.sequence, result.body) == (7, "hello")
        for refused, name in (
            (it.shutdown(), "Broker.shutdown"),
            (it.create("queue", "q", {}, True), "Broker.create"),
            (it.getLogLevel(), "Broker.getLogLevel"),
            (it.set(mgmtPubInterval=1), "setting Broker.mgmtPubInterval"),
        ):
            with pytest.raises(RemoteError, match=f"{re.escape(name)} is not supported by this broker"):
                await refused


async def test_a_connection_can_be_cut() -> None:
    async with managed() as (broker, client):
        (mine,) = await client.objects(remote.Connection)
        bus = AmqpBus(broker.url, reconnect=False)
        await bus.open()
        (other,) = [item for item in await client.objects(remote.Connection) if id_of(item) != id_of(mine)]
        await other.close()
        await until(lambda: not bus.connected, "the end of the connection")
        await until(lambda: broker.connections == 1, "the end of the connection")
        await bus.close()


async def test_names_that_the_model_cannot_hold_do_no_harm() -> None:
    async with managed() as (broker, client):
        bus = AmqpBus(broker.url, container="ü" * 300)
        await bus.open()
        inboxes = [Inbox(), Inbox()]
        for inbox in inboxes:
            await bus.subscribe(Binding(TOPIC, "k"), inbox)
        await bus.send(message(TOPIC, "k", "hello"), confirm=True)
        for inbox in inboxes:
            assert await inbox.wait(1) == ["hello"]
        # Cut to the same text, so that only one of them can be shown.
        assert "ü" * 127 in await queues(client)
        await bus.close()


@pytest.mark.slow
async def test_changes_are_published() -> None:
    async with managed(OFTEN) as (broker, client):
        news: list[ObjectUpdated] = []
        client.listen(lambda item: news.append(item) if isinstance(item, ObjectUpdated) else None)

        def published(name: str) -> list[ObjectUpdated]:
            return [item for item in news if item.object.class_key and item.object.class_key.name == name]

        async with connected(broker.url) as bus:
            await bus.send(message(TOPIC, "k"), confirm=True)
            await until(lambda: len(published("connection")) > 0, "the new connection")
            await until(lambda: len(published("exchange")) > 0, "the exchange")
            await until(lambda: len(published("broker")) > 1, "the broker's uptime, again")
        await until(
            lambda: any(item.object.is_deleted for item in published("connection")), "the end of the connection"
        )


@pytest.mark.slow
async def test_who_follows_gets_statistics_of_the_moment() -> None:
    """At intervals of the subscription, while the agent publishes nothing."""
    async with (
        managed(queues=["jobs"]) as (broker, client),
        connected(broker.url) as bus,
        client.follow(remote.Queue, where={"name": "jobs"}, interval=1) as jobs,
    ):
        await until(lambda: [item.msgDepth for item in jobs] == [0], "the queue")
        await bus.send(message("jobs", None), confirm=True)
        await until(lambda: [item.msgDepth for item in jobs] == [1], "the message")


async def test_with_users() -> None:
    async with Broker(port=0, users={"guest": "secret"}, management=NEVER) as broker:
        url = f"amqp://guest:secret@127.0.0.1:{broker.port}"
        async with Client(url, settle=0.0) as client:
            await knows_agent(client)
            (connection,) = await client.objects(remote.Connection)
            assert (connection.saslMechanism, connection.authIdentity) == ("PLAIN", "guest")
            assert {item.creator for item in await client.objects(remote.Queue)} == {"guest", ""}


async def test_over_tls() -> None:
    async with (
        Broker(port=0, ssl_context=server_tls(), management=NEVER) as broker,
        Client(AmqpBus(broker.url, ssl_context=trusting()), settle=0.0) as client,
    ):
        await knows_agent(client)
        assert len(await client.objects(remote.Connection)) == 1


async def test_the_end_is_told_first_and_leaves_nothing() -> None:
    broker = Broker(port=0, management=OFTEN)
    await broker.start()
    async with Client(broker.url, settle=0.0) as client:
        await knows_agent(client)
        removed: list[AgentRemoved] = []
        client.listen(lambda news: removed.append(news) if isinstance(news, AgentRemoved) else None)
        await broker.close()
        await until(lambda: removed, "the agent's goodbye")
        assert removed[0].reason is Removal.GOODBYE
    await broker.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_an_interval_that_is_none() -> None:
    broker = Broker(port=0, management=0)
    with pytest.raises(CallerError, match="interval"):
        await broker.start()
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.slow
async def test_in_a_thread() -> None:
    with EmbeddedBroker(management=NEVER, name="mine") as broker:
        async with Client(broker.url, settle=0.0) as client:
            await knows_agent(client)
            assert [agent.name for agent in client.agents] == ["qmf:broker:mine"]


def url_of(line: str) -> str:
    return line.removeprefix("Listening on ")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_program_is_managed(number: signal.Signals) -> None:
    with running(*BROKER, "--port", "0", "--management-interval", "0.5", "--queue", "jobs") as broker:
        line = await asyncio.to_thread(broker.wait_for, "Listening")
        async with Client(url_of(line), settle=0.0) as client:
            await knows_agent(client)
            (it,) = await client.objects(remote.Broker)
            assert it.mgmtPubInterval == 1
            assert "jobs" in await queues(client)
            assert await asyncio.to_thread(broker.end, number) == 0
        assert broker.lines == [line]


@pytest.mark.slow
async def test_the_program_can_do_without() -> None:
    with running(*BROKER, "--port", "0", "--no-management") as broker:
        url = url_of(await asyncio.to_thread(broker.wait_for, "Listening"))
        async with Client(url, settle=0.0) as client:
            assert await client.locate(settle=0.1) == []
        assert await asyncio.to_thread(broker.end) == 0


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "70000", "often"])
def test_intervals_that_are_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([f"--management-interval={text}"])
    assert caught.value.code == 2
    assert f"'{text}' is not a number of seconds above 0" in capsys.readouterr().err
