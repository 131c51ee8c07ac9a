"""Both APIs with real agents over the embedded broker: every byte passes sockets, both codecs and the agent."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from agent.warehouse import PACKAGE, SHELF, Belt, Shelf, ShelfImportResult, ShelfMoveResult, ShelfSpill, Site
from support.recording import Notifications, RecordingConsole
from support.waiting import until

from qmf.agent import Agent, MethodError
from qmf.broker import Broker, EmbeddedBroker
from qmf.console import ClassKey, LoopThread, Session
from qmf.console.aio import (
    AgentAdded,
    AgentLost,
    AgentRemoved,
    ClassSeen,
    Client,
    EventRaised,
    HeartbeatSeen,
    ObjectUpdated,
    Removal,
)
from qmf.errors import ConnectError, ConstraintError, NotFoundError, RemoteError
from qmf.schema import ClassSchema, EventSchema

pytestmark = pytest.mark.slow


class WorkingShelf(Shelf):
    """A shelf whose methods do something."""

    async def move(self, items: int, from_: str, factor: float) -> ShelfMoveResult:
        self.in_.inc(items)
        return ShelfMoveResult(moved=int(items * factor), note=from_)

    def clear(self) -> None:
        raise MethodError("it is nailed down", 0x10007)

    def import_(self, data: object) -> ShelfImportResult:
        return ShelfImportResult(data=data)


def make_agent(url: str, instance: str = "one", **options: Any) -> tuple[Agent, WorkingShelf]:
    agent = Agent(
        url, vendor="example.org", product="stock", instance=instance, **{"interval": 0.1, "epoch": 1, **options}
    )
    agent.register(ShelfSpill, Belt)
    site = Site(name="north")
    shelf = WorkingShelf(number=1, siteRef=site, label="top", limit=7, options={"a": 1}, class_="wood")
    agent.add(site)
    agent.add(shelf)
    return agent, shelf


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker("127.0.0.1", 0) as broker:
        yield broker


async def test_an_agent_is_read_called_changed_and_received(broker: Broker) -> None:
    agent, shelf = make_agent(broker.url)
    async with agent, Client(broker.url, timeout=5) as client:
        assert [item.name for item in client.agents] == ["example.org:stock:one"]
        assert list(await client.packages()) == [PACKAGE]
        assert {key.name for key in await client.classes()} == {"site", "shelf", "belt", "shelfSpill"}
        (obj,) = await client.objects("Shelf")
        assert obj.schema == SHELF
        assert (obj.number, obj.label, obj.limit, obj.options, obj.class_) == (1, "top", 7, {"a": 1}, "wood")
        site = await obj.follow("siteRef")
        assert site is not None
        assert site.name == "north"
        assert obj.depth == obj["in"] == 0
        result = await obj.move(5, factor=2.0)
        assert dict(result) == {"moved": 10, "note": "door"}
        assert dict(await obj.call("import", {"deep": [1, "x", None]})) == {"data": {"deep": [1, "x", None]}}
        with pytest.raises(RemoteError, match=r"it is nailed down \(code 65543\)"):
            await obj.call("clear")
        with pytest.raises(RemoteError) as caught:
            await obj.call("unwritten")
        assert caught.value.code == 3
        with pytest.raises(ConstraintError, match="must be at most 1000"):
            await obj.move(1001)
        await obj.update()
        assert obj["in"] == obj.depth == 5
        await obj.set(limit=9, label=None)
        assert (shelf.limit, shelf.label) == (9, None)
        with pytest.raises(ConstraintError, match="5 to 50"):
            await obj.set(limit=51)
        agent.remove(shelf)
        with pytest.raises(NotFoundError):
            await obj.update()


@pytest.mark.parametrize(
    ("where", "numbers"),
    [
        ({"number": 2}, [2]),
        ({"label": "top", "number": 1}, [1]),
        ({"label": None}, [2, 3]),
        (["ge", "number", ["quote", 2]], [2, 3]),
        (["re_match", "label", ["quote", "^t.p$"]], [1]),
        (["or", ["eq", "number", ["quote", 1]], ["eq", "number", ["quote", 3]]], [1, 3]),
    ],
)
async def test_filters_reach_the_agent(broker: Broker, where: Any, numbers: list[int]) -> None:
    agent, _ = make_agent(broker.url)
    for number in (2, 3):
        agent.add(Shelf(number=number))
    async with agent, Client(broker.url, timeout=5) as client:
        found = await client.objects("shelf", where=where)
        assert sorted(obj["number"] for obj in found) == numbers


@pytest.mark.parametrize("where", [{"numbr": 2}, ["eq", "numbr", ["quote", 2]], ["not", ["eq", "numbr", ["quote", 2]]]])
@pytest.mark.parametrize("empty", [False, True])
async def test_unknown_names_in_filters_are_refused_at_the_first_query(broker: Broker, where: Any, empty: bool) -> None:
    agent, shelf = make_agent(broker.url)
    if empty:
        agent.remove(shelf)
    error = pytest.raises(NotFoundError, match=r"^no value of [Ss]helf 'numbr'; did you mean number")
    async with agent:
        async with Client(broker.url, timeout=5) as client:
            with error:
                await client.objects("shelf", where=where)
        async with Client(broker.url, timeout=5) as client:
            with error:
                _ = [obj async for obj in client.each("shelf", where=where)]


async def test_events_updates_and_heartbeats_arrive(broker: Broker) -> None:
    agent, shelf = make_agent(broker.url)
    async with Client(broker.url, timeout=5, discover=True) as client:
        heard = Notifications()
        client.listen(heard.append)
        async with agent:
            await until(lambda: heard.of(HeartbeatSeen) and len(heard.of(ClassSeen)) == 4)
            await until(lambda: any(item.object.class_key == SHELF.key for item in heard.of(ObjectUpdated)))
            agent.raise_event(ShelfSpill(shelf=shelf, items=3, class_="oil"))
            await until(lambda: heard.of(EventRaised))
            event = heard.of(EventRaised)[0].event
            assert (event.arguments["items"], event.arguments["class"], event.severity) == (3, "oil", 4)
            assert str(event.arguments["shelf"]) == str((await client.objects("shelf"))[0].object_id)
            heard.clear()
            shelf.in_.inc(4)
            await until(lambda: [item for item in heard.of(ObjectUpdated) if item.statistics])
            update = next(item for item in heard.of(ObjectUpdated) if item.statistics)
            assert (update.object["in"], update.object["label"], update.properties) == (4, "top", False)
            agent.remove(shelf)
            await until(lambda: [item for item in heard.of(ObjectUpdated) if item.object.is_deleted])


async def test_an_agent_that_closes_fails_calls_and_is_found_again(broker: Broker) -> None:
    class Sleepy(WorkingShelf):
        async def move(self, items: int, from_: str, factor: float) -> ShelfMoveResult:
            await asyncio.Event().wait()
            raise AssertionError

    agent, _ = make_agent(broker.url)
    agent.add(Sleepy(number=9))
    async with Client(broker.url, timeout=5) as client:
        heard = Notifications()
        client.listen(heard.append)
        await agent.start()
        await until(lambda: heard.of(AgentAdded))
        (obj,) = await client.objects("shelf", where={"number": 9})
        calling = asyncio.create_task(obj.call("move", 1))
        await until(lambda: client.counts.pending == 1)
        await agent.close()
        again, _ = make_agent(broker.url, epoch=2)
        async with again:
            with pytest.raises((AgentLost, RemoteError)):
                await calling
            await until(lambda: len(heard.of(AgentAdded)) == 2)
            assert [item.reason for item in heard.of(AgentRemoved)] == [Removal.GOODBYE]
            assert len(await client.objects("shelf")) == 1


async def test_many_objects_come_in_parts_and_all(broker: Broker) -> None:
    agent, _ = make_agent(broker.url)
    for number in range(2, 500):
        agent.add(Shelf(number=number))
    async with agent, Client(broker.url, timeout=10, data=False) as client:
        assert len(await client.objects("shelf")) == 499


async def test_a_refused_connection_names_url_and_reason() -> None:
    async with Broker("127.0.0.1", 0) as broker:
        url = broker.url
    with pytest.raises(ConnectError, match="refused"):
        async with Client(url):
            pass


# -- the published API


class Running:
    """An embedded broker and an agent on threads of their own."""

    def __init__(self) -> None:
        self.broker = EmbeddedBroker()
        self.broker.start()
        self.loop = LoopThread("test-agent")
        self.agent, self.shelf = make_agent(self.broker.url)
        self.loop.run(self.agent.start())

    def close(self) -> None:
        self.loop.run(self.agent.close())
        self.loop.stop()
        self.broker.close()


@pytest.fixture
def running() -> Iterator[Running]:
    made = Running()
    yield made
    made.close()


def test_a_script_of_the_published_api(running: Running) -> None:
    with Session() as session:
        broker = session.addBroker(running.broker.url)
        assert session.getPackages() == [PACKAGE]
        kinds = {}
        for key in session.getClasses(PACKAGE):
            kinds[key.getClassName()] = type(session.getSchema(key).core)
        assert kinds["shelf"] is ClassSchema
        assert kinds["shelfSpill"] is EventSchema
        shelf = session.getObjects(_class="shelf", _package=PACKAGE)[0]
        assert shelf._siteRef_.name == "north"
        assert [str(prop) for prop, _ in shelf.getProperties()][:3] == ["siteRef", "number", "label"]
        result = shelf.move(3, "truck", 1.5)
        assert (result.status, result.moved, result.note) == (0, 4, "truck")
        assert repr(shelf.clear()) == "it is nailed down (65543) - {}"
        shelf.update()
        assert shelf.getStatistics()[0][1] == 3
        assert [agent.getAgentBank() for agent in session.getAgents(broker)] == ["example.org:stock:one"]
        assert session.getObjects(_objectId=shelf.getObjectId())[0].number == 1
        assert session.getSchema(ClassKey(repr(shelf.getClassKey()))) is not None


def test_callbacks_of_the_published_api(running: Running) -> None:
    console = RecordingConsole()
    with Session(console) as session:
        session.addBroker(running.broker.url)
        console.wait("newAgent")
        console.wait("newClass", 4)
        running.agent.raise_event(ShelfSpill(shelf=running.shelf, items=3, class_="oil spill"))
        ((_, event),) = console.wait("event")
        assert f" WARN  {PACKAGE}:shelfSpill broker=127.0.0.1:{running.broker.port} shelf=" in repr(event)
        assert repr(event).endswith(' items=3 class="oil spill"')
        running.shelf.in_.inc()
        assert any(record.getClassKey().getClassName() == "shelf" for _, record in console.wait("objectStats"))
        console.wait("heartbeat")
    console.wait("brokerDisconnected")


@pytest.mark.parametrize("target", ["127.0.0.1:1", "no-such-host.invalid"])
def test_an_unreachable_broker_is_an_error_within_the_timeout(target: str) -> None:
    session = Session()
    done: list[ConnectError] = []

    def add() -> None:
        try:
            session.addBroker(target, timeout=3)
        except ConnectError as error:
            done.append(error)

    thread = threading.Thread(target=add)
    thread.start()
    thread.join(5)
    assert len(done) == 1
    assert target.split(":")[0] in str(done[0])
    session.close()
