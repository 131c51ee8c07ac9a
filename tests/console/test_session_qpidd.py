"""Both APIs against a real qpidd, named by QMF_TEST_QPIDD."""

from __future__ import annotations

import asyncio
import os
import re
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from support.recording import Notifications, RecordingConsole
from support.waiting import until

from qmf.console import Session
from qmf.console.aio import (
    BrokerIdentified,
    ChangeKind,
    Client,
    EventRaised,
    FollowMode,
    HeartbeatSeen,
    ObjectUpdated,
)
from qmf.errors import ConstraintError, NotFoundError, RemoteError
from qmf.models.broker import console as typed_broker
from qmf.schema import ClassSchema

URL = os.environ.get("QMF_TEST_QPIDD", "")
PACKAGE = "org.apache.qpid.broker"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not URL, reason="QMF_TEST_QPIDD names no qpidd")]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with Client(URL, timeout=10) as client:
        yield client


@pytest.fixture
def session() -> Iterator[Session]:
    with Session() as session:
        session.addBroker(URL)
        yield session


@pytest.fixture
def queue() -> str:
    return f"qmf-test-{uuid.uuid4()}"


async def test_the_broker_is_found_and_lists_everything(client: Client) -> None:
    assert client.broker is not None
    assert client.broker.is_qpidd
    assert PACKAGE in await client.packages()
    keys = await client.classes(PACKAGE)
    assert {"broker", "queue", "exchange", "binding", "queueDeclare", "bind"} <= {key.name for key in keys}
    for key in keys:
        schema = await client.schema(key)
        assert schema.key == key


async def test_it_says_that_properties_cannot_be_set(client: Client) -> None:
    (broker,) = await client.objects("broker", package=PACKAGE)
    with pytest.raises(RemoteError, match=f"qpidd cannot set properties, .*: look for a method of {PACKAGE}:broker"):
        await broker.set(mgmtPubInterval=5)


async def test_the_schema_of_queue(client: Client) -> None:
    (key,) = [item for item in await client.classes(PACKAGE) if item.name == "queue"]
    schema = await client.schema(key)
    assert isinstance(schema, ClassSchema)
    name, depth, latency = schema.property("name"), schema.statistic("byteDepth"), schema.statistic("messageLatency")
    assert name is not None
    assert depth is not None
    assert latency is not None
    assert (name.type.name, name.access.value, name.index) == ("sstr", "RC", True)
    assert depth.unit == "octet"
    assert latency.entries[0].name == "messageLatencyCount"
    assert {"purge", "reroute"} <= {method.name for method in schema.methods}


async def test_objects_methods_and_errors(client: Client, queue: str) -> None:
    (broker,) = await client.objects("broker", package=PACKAGE)
    assert dict(await broker.call("echo", 7, "hello")) == {"sequence": 7, "body": "hello"}
    with pytest.raises(ConstraintError, match="must be given"):
        await broker.call("echo", 7)
    await broker.call("create", "queue", queue, {"durable": False}, True)
    with pytest.raises(RemoteError, match="already exists"):
        await broker.call("create", "queue", queue, {}, True)
    (obj,) = await client.objects("queue", where={"name": queue})
    assert (obj.name, obj.durable, obj.msgDepth, obj.messageLatencySamples) == (queue, False, 0, 0)
    vhost = await obj.follow("vhostRef")
    assert vhost is not None
    assert vhost.name == "/"
    assert len(await client.objects("queue", where=["re_match", "name", ["quote", queue]])) == 1
    assert len(await client.objects("exchange")) >= 8
    await broker.call("delete", "queue", queue, {})
    with pytest.raises(NotFoundError):
        await obj.update()


async def test_events_updates_heartbeats_and_id(queue: str) -> None:
    heard = Notifications()
    client = Client(URL, timeout=10)
    client.listen(heard.append)
    async with client:
        await until(lambda: heard.of(BrokerIdentified))
        (broker,) = await client.objects("broker")
        await broker.call("create", "queue", queue, {}, True)
        await broker.call("delete", "queue", queue, {})

        def names(kind: str) -> list[object]:
            return [
                item.event.arguments.get("qName")
                for item in heard.of(EventRaised)
                if item.event.class_key and item.event.class_key.name == kind
            ]

        await until(lambda: queue in names("queueDeclare") and queue in names("queueDelete"))
        await until(lambda: heard.of(HeartbeatSeen))
        await until(lambda: any(item.object.is_deleted and item.object.name == queue for item in _queues(heard)))
        assert client.broken == 0


def _queues(heard: Notifications) -> list[ObjectUpdated]:
    return [item for item in heard.of(ObjectUpdated) if item.object.class_key and item.object.class_key.name == "queue"]


async def test_two_clients_at_once(queue: str) -> None:
    async with Client(URL) as one, Client(URL) as two:
        found = await asyncio.gather(*(client.objects("exchange") for client in (one, two) for _ in range(10)))
        assert len({len(item) for item in found}) == 1


def test_a_script_of_the_published_api(session: Session, queue: str) -> None:
    broker = session.getObjects(_class="broker", _package=PACKAGE)[0]
    assert repr(broker.echo(1, "Message Body")) == "OK (0) - {'body': 'Message Body', 'sequence': 1}"
    assert broker.create("queue", queue, {}, False).status == 0
    obj = session.getObjects(_class="queue", name=queue)[0]
    assert repr(obj).startswith(f"{PACKAGE}:queue[0-")
    assert obj._vhostRef_.name == "/"
    assert {str(item): value for item, value in obj.getStatistics()}["messageLatencySamples"] == 0
    obj.update()
    assert broker.delete("queue", queue, {}).text == "OK"
    assert "0" in {agent.getAgentBank() for agent in session.getAgents()}


def test_the_schema_of_queue_in_the_published_api(session: Session) -> None:
    (key,) = [item for item in session.getClasses(PACKAGE) if item.getClassName() == "queue"]
    schema = session.getSchema(key)
    props = {item.name: item for item in schema.getProperties()}
    assert (props["name"].type, props["name"].access, props["name"].index) == (6, "1", True)
    assert (props["vhostRef"].type, props["arguments"].type, props["durable"].type) == (10, 15, 11)
    assert props["altExchange"].optional
    stats = {item.name: item for item in schema.getStatistics()}
    assert (stats["byteDepth"].unit, stats["consumerCountHigh"].unit, stats["msgDepth"].type) == (
        "octet",
        "consumer",
        4,
    )
    assert stats["msgTotalEnqueues"].desc == "Total messages enqueued"
    methods = {item.name: item for item in schema.getMethods()}
    assert [(arg.name, arg.dir, arg.type) for arg in methods["purge"].arguments] == [
        ("request", "I", 3),
        ("filter", "I", 15),
    ]
    assert methods["purge"].desc


def test_events_have_the_published_form(queue: str) -> None:
    console = RecordingConsole()
    with Session(console, userBindings=True) as session:
        broker = session.addBroker(URL)
        session.bindEvent(PACKAGE, "queueDeclare")
        session.getObjects(_class="broker")[0].create("queue", queue, {"auto-delete": True}, False)
        own: list[tuple[Any, ...]] = []
        count = 0
        while not own:  # other clients of the broker cause events as well
            count += 1
            own = [item for item in console.wait("event", count) if queue in repr(item[1])]
        ((_, event),) = own
        session.getObjects(_class="broker")[0].delete("queue", queue, {})
    begin = r"... ... .\d \d\d:\d\d:\d\d \d{4} INFO  "
    form = rf"{begin}{PACKAGE}:queueDeclare broker={broker.getUrl()} rhost=\S+ user=\S+ qName={queue} "
    assert re.match(form, repr(event)), event


async def test_following_finds_what_queries_hide(queue: str) -> None:
    """A queue that was queried before qpidd published it is not published any more (QMF2.md 7.1)."""
    async with Client(URL, data=False) as client, Client(URL) as other:
        (broker,) = await client.objects("broker", package=PACKAGE)
        async with client.follow("queue", package=PACKAGE, where={"name": queue}, recheck=3) as queues:
            assert client.broker is not None
            assert queues.sources[client.broker.name] is FollowMode.INDICATIONS
            await broker.call("create", "queue", queue, {}, True)
            await other.objects("queue", where={"name": queue})
            async with asyncio.timeout(15):
                added = await anext(queues)
                assert (added.kind, added.object.name) == (ChangeKind.ADDED, queue)
                await broker.call("delete", "queue", queue, {})
                while (gone := await anext(queues)).kind is ChangeKind.CHANGED:
                    pass
            assert (gone.kind, gone.object.name) == (ChangeKind.DELETED, queue)
            assert len(queues) == 0


async def test_typed_proxies(client: Client, queue: str) -> None:
    (broker,) = await client.objects(typed_broker.Broker)
    result = await broker.echo(sequence=3, body="x")
    assert (result.sequence, result.body) == (3, "x")
    await (await client.objects("broker", package=PACKAGE))[0].call("create", "queue", queue, {}, True)
    (made,) = await client.objects(typed_broker.Queue, where={"name": queue})
    assert (made.name, made.durable, made.msgDepth, made.consumerCount.value) == (queue, False, 0, 0)
    async with client.follow(typed_broker.Queue) as queues:
        assert queue in {item.name for item in queues}
    await (await client.objects("broker", package=PACKAGE))[0].call("delete", "queue", queue, {})


def test_a_thousand_asynchronous_calls_are_all_answered() -> None:
    console = RecordingConsole()
    with Session(console, rcvObjects=False, rcvEvents=False) as session:
        session.addBroker(URL)
        (broker,) = session.getObjects(_class="broker", _package=PACKAGE)
        numbers = {broker.echo(number, "x", _async=True): number for number in range(1000)}
        console.wait("methodResponse", 1000)
    results = {seq: result.sequence for _, seq, result in console.of("methodResponse")}
    assert results == numbers


def test_callbacks_of_the_published_api(queue: str) -> None:
    console = RecordingConsole()
    with Session(console) as session:
        session.addBroker(URL)
        console.wait("brokerInfo")
        console.wait("newClass", 40)
        broker = session.getObjects(_class="broker")[0]
        broker.create("queue", queue, {}, False)
        broker.delete("queue", queue, {})
        console.wait("event", 2)
        assert any(f"qName={queue}" in repr(event) for _, event in console.of("event"))
