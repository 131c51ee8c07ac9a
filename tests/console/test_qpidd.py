"""Both APIs against a real qpidd, named by QMF_TEST_QPIDD."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Iterator

import pytest
from console.fakes import Heard, until
from console.test_session import Recorder

from qmf.console import Session
from qmf.console.aio import BrokerIdentified, Client, EventRaised, HeartbeatSeen, ObjectUpdated
from qmf.errors import ConstraintError, NotFoundError, RemoteError
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
    heard = Heard()
    client = Client(URL, timeout=10)
    client.listen(heard.append)
    async with client:
        await until(lambda: heard.of(BrokerIdentified))
        (broker,) = await client.objects("broker")
        await broker.call("create", "queue", queue, {}, True)
        await broker.call("delete", "queue", queue, {})

        def names(kind: str) -> list[object]:
            return [
                news.event.arguments.get("qName")
                for news in heard.of(EventRaised)
                if news.event.class_key and news.event.class_key.name == kind
            ]

        await until(lambda: queue in names("queueDeclare") and queue in names("queueDelete"))
        await until(lambda: heard.of(HeartbeatSeen), 15)
        await until(lambda: any(news.object.is_deleted and news.object.name == queue for news in _queues(heard)), 15)
        assert client.broken == 0


def _queues(heard: Heard) -> list[ObjectUpdated]:
    return [news for news in heard.of(ObjectUpdated) if news.object.class_key and news.object.class_key.name == "queue"]


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
    assert [agent.getAgentBank() for agent in session.getAgents()] == ["0"]


def test_callbacks_of_the_published_api(queue: str) -> None:
    console = Recorder()
    with Session(console) as session:
        session.addBroker(URL)
        console.wait("brokerInfo")
        console.wait("newClass", 40)
        broker = session.getObjects(_class="broker")[0]
        broker.create("queue", queue, {}, False)
        broker.delete("queue", queue, {})
        console.wait("event", 2)
        assert any(f"qName={queue}" in repr(event) for _, event in console.of("event"))
