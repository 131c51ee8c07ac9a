"""An agent and a bare console over a real bus: discovery, queries, calls and events, also after a lost connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from agent.warehouse import PACKAGE, Shelf, ShelfMoveResult, ShelfSpill, Site
from support.waiting import until

from qmf.agent import Agent
from qmf.broker import Broker
from qmf.bus import AmqpBus, Binding, Bus, MemoryBus, MemoryExchange, ReceivedMessage
from qmf.protocol import (
    LOCATE_KEY,
    Content,
    Envelope,
    EventsIndication,
    Heartbeat,
    LocateRequest,
    LocateResponse,
    MethodRequest,
    MethodResponse,
    ObjectData,
    ObjectsIndication,
    ObjectsResponse,
    QueryRequest,
    What,
    decode,
    encode,
)
from qmf.schema import ClassKey


class MovingShelf(Shelf):
    async def move(self, items: int, from_: str, factor: float) -> ShelfMoveResult:
        await asyncio.sleep(0)
        self.in_.inc(items)
        return ShelfMoveResult(moved=items, note=from_)


class Console:
    """Sends requests and keeps everything that comes."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.received: list[Envelope] = []
        self._news = asyncio.Event()

    async def open(self) -> None:
        await self.bus.open()
        await self.bus.subscribe(Binding("qmf.default.topic", "agent.ind.#"), self._deliver)
        await self.bus.subscribe(Binding("qmf.default.topic", "direct-console.1"), self._deliver)

    def _deliver(self, received: ReceivedMessage) -> None:
        message = decode(received.data)
        received.settle()
        if isinstance(message, Envelope):
            self.received.append(message)
            self._news.set()

    async def receive(self, wanted: Callable[[Envelope], bool]) -> Envelope:
        """The first message that is wanted, once it is there; the others stay."""
        async with asyncio.timeout(10):
            while True:
                self._news.clear()
                for number, message in enumerate(self.received):
                    if wanted(message):
                        return self.received.pop(number)
                await self._news.wait()

    async def ask(self, content: Content, to: str, subject: str) -> Envelope:
        message = Envelope(
            content=content, to=to, subject=subject, reply_to="qmf.default.topic/direct-console.1", correlation_id="1"
        )
        await self.bus.send(encode(message))
        return await self.receive(lambda answer: answer.correlation_id == "1")


def of(kind: type[Content]) -> Callable[[Envelope], bool]:
    return lambda message: isinstance(message.content, kind)


def objects(wanted: Callable[[ObjectData], bool]) -> Callable[[Envelope], bool]:
    """Indications of which one object is wanted."""
    return lambda message: isinstance(message.content, ObjectsIndication) and any(map(wanted, message.content.objects))


@pytest.fixture(params=["memory", "broker"])
async def make_bus(request: pytest.FixtureRequest) -> AsyncIterator[Callable[[], Bus]]:
    if request.param == "memory":
        exchange = MemoryExchange()
        yield lambda: MemoryBus(exchange)
        return
    async with Broker(port=0) as broker:
        yield lambda: AmqpBus(broker.url)


@pytest.mark.slow
async def test_discovery_queries_calls_and_events(make_bus: Callable[[], Bus]) -> None:
    console = Console(make_bus())
    await console.open()
    agent_bus = make_bus()
    async with Agent(agent_bus, vendor="example.org", product="stock", instance="one", interval=0.1) as agent:
        assert isinstance((await console.receive(of(Heartbeat))).content, Heartbeat)

        found = await console.ask(LocateRequest(), "qmf.default.topic", LOCATE_KEY)
        assert isinstance(found.content, LocateResponse)
        assert found.content.agent.name == agent.name

        site = Site(name="north")
        agent.add(site)
        shelf = MovingShelf(number=7, siteRef=site)
        shelf_id = agent.add(shelf)
        await console.receive(objects(lambda item: item.object_id == shelf_id and item.values["number"] == 7))

        answer = await console.ask(
            QueryRequest(what=What.OBJECT, class_key=ClassKey(PACKAGE, "shelf")), "qmf.default.direct", agent.name
        )
        assert isinstance(answer.content, ObjectsResponse)
        assert [item.values["number"] for item in answer.content.objects] == [7]

        call = MethodRequest(method="move", object_id=shelf_id, arguments={"items": 3, "from": "left"})
        answer = await console.ask(call, "qmf.default.topic", agent.info.direct_subject or "")
        assert isinstance(answer.content, MethodResponse)
        assert answer.content.arguments == {"moved": 3, "note": "left"}
        await console.receive(objects(lambda item: item.values.get("in") == 3))

        agent.raise_event(ShelfSpill(shelf=shelf, items=1, class_="A"))
        event = await console.receive(of(EventsIndication))
        assert isinstance(event.content, EventsIndication)
        assert event.content.events[0].values["items"] == 1

        agent.remove(shelf)
        await console.receive(objects(lambda item: item.object_id == shelf_id and item.delete_ts > 0))
    await console.bus.close()


@pytest.mark.slow
async def test_an_agent_continues_after_a_lost_connection() -> None:
    exchange = MemoryExchange()
    console = Console(MemoryBus(exchange))
    await console.open()
    bus = MemoryBus(exchange)
    async with Agent(bus, vendor="example.org", product="stock", interval=0.1) as agent:
        await console.receive(of(Heartbeat))
        bus.on_dropped("the cable was pulled")
        await until(lambda: not agent.connected)
        site = Site(name="north")
        agent.add(site)
        for number in range(3):
            agent.raise_event(ShelfSpill(shelf=site, items=number, class_="A"))
        items: list[object] = []
        while len(items) < 3:
            content = (await console.receive(of(EventsIndication))).content
            assert isinstance(content, EventsIndication)
            items += [item.values["items"] for item in content.events]
        assert items == [0, 1, 2]
        await console.receive(objects(lambda item: item.values.get("name") == "north"))
    await console.bus.close()
