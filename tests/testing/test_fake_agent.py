"""The fake agent: serves consoles as the test defines it, and fails on demand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from agent.warehouse import SHELF, SITE, SPILL, Shelf, ShelfSpill, Site
from hypothesis import given
from support.examples import examples
from support.schemas import schemas
from support.scripted_agent import ALARM, WIDGET

from qmf.agent import ManagedObject, MethodError
from qmf.agent.layout.object_state import object_name
from qmf.agent.model.arguments import python_name
from qmf.agent.model.managed_object import layout_of
from qmf.bus import MemoryBus, MemoryExchange
from qmf.console.aio import AgentRemoved, AgentRestarted, Client, EventRaised, Notification, ObjectUpdated
from qmf.errors import CallerError, ConstraintError, NotFoundError, RemoteError, RequestTimeout
from qmf.models.host import schema as host
from qmf.schema import Schema
from qmf.testing import FakeAgent, ManualClock, until
from qmf.testing.dynamic_classes import managed_class


@pytest.fixture
async def fake(qmf_exchange: MemoryExchange) -> AsyncIterator[FakeAgent]:
    async with FakeAgent(qmf_exchange, WIDGET, ALARM, SITE, SHELF, SPILL) as fake:
        yield fake


@pytest.fixture
async def client(fake: FakeAgent, qmf_exchange: MemoryExchange) -> AsyncIterator[Client]:
    async with Client(MemoryBus(qmf_exchange), timeout=5) as client:
        yield client


async def test_objects(fake: FakeAgent, client: Client) -> None:
    widget = fake.add("WIDGET", name="w", turns=7, load=(3, 5, 1), delay=[10, 30], enabled=True)
    (found,) = await client.objects("widget")
    assert (found.name, found.turns, found.enabled) == ("w", 7, True)
    assert [found[name] for name in ("load", "loadHigh", "loadLow")] == [3, 5, 1]
    assert [found[name] for name in ("delayCount", "delayMin", "delayMax", "delayAvg")] == [2, 10, 30, 20]
    widget.turns.inc()
    fake.set(widget, load=9, level=2)
    await found.update()
    assert (found.turns, found.load, found.loadHigh, found.level) == (8, 9, 9, 2)
    assert not await client.objects("widget", where={"turns": 1})
    fake.remove(widget)
    assert not await client.objects("widget")


async def test_what_is_required_is_made_up(fake: FakeAgent, client: Client) -> None:
    one, two = fake.add("shelf"), fake.add("shelf", label="x")
    assert (one.number, two.number, two.label) == (1, 2, "x")
    assert object_name(fake.add("widget", _key="k")).endswith(":k")
    generated = fake.add(Shelf(number=9))
    assert [obj.number for obj in await client.objects("shelf")] == [1, 2, generated.number]


@pytest.mark.slow
async def test_following_and_publishing(fake: FakeAgent, client: Client) -> None:
    widget = fake.add("widget", name="w")
    async with client.follow("widget", interval=0.1) as followed:
        await anext(followed)
        widget.turns.set(5)
        change = await anext(followed)
        assert change.object.turns == 5
    seen: list[Notification] = []
    client.listen(seen.append)
    widget.turns.set(6)
    await fake.publish()
    await until(lambda: [item for item in seen if isinstance(item, ObjectUpdated) and item.object.turns == 6])


async def test_methods(fake: FakeAgent, client: Client) -> None:
    widget = fake.add("widget", name="w")
    (remote,) = await client.objects("widget")
    with pytest.raises(RemoteError, match="not implemented") as caught:
        await remote.echo(1, "x")
    assert caught.value.code == 3

    @fake.on("widget", "echo")
    async def echo(obj: object, sequence: int, body: str) -> Mapping[str, object]:
        assert obj is widget
        await asyncio.sleep(0)
        if not body:
            raise MethodError("no reason", code=65536)
        return {"sequence": sequence + 1, "body": body}

    fake.on("widget", "stop", lambda obj: None)
    fake.on("widget", "link", lambda obj, target, force: {"mad": None})
    assert dict(await remote.echo(1, "x")) == {"sequence": 2, "body": "x"}
    assert dict(await remote.stop()) == {}
    with pytest.raises(RemoteError, match="no reason"):
        await remote.echo(1, "")
    with pytest.raises(RemoteError, match="link has no argument 'mad'"):
        await remote.link(remote.object_id)
    assert [name for name, _ in fake.calls] == ["echo", "echo", "stop", "echo", "link"]
    assert fake.calls[1][1] == {"sequence": 1, "body": "x"}
    with pytest.raises(NotFoundError, match="did you mean echo"):
        fake.on("widget", "ecko", echo)


async def test_events(fake: FakeAgent, client: Client) -> None:
    stream = client.notifications(EventRaised)
    fake.raise_event("WidgetAlarm", name="w", level=3, since=5, _severity=1)
    fake.raise_event(ShelfSpill(shelf=None, items=2, class_="A"))
    arguments: dict[str, Any] = {"items": 3, "class": "B"}
    fake.raise_event("shelfSpill", **arguments)
    events: list[tuple[int, dict[str, object]]] = []
    while len(events) < 3:
        item = await anext(stream)
        assert isinstance(item, EventRaised)
        events.append((item.event.severity, dict(item.event.arguments)))
    assert events == [
        (1, {"name": "w", "level": 3, "since": 5}),
        (4, {"items": 2, "class": "A"}),
        (4, {"items": 3, "class": "B"}),
    ]


async def test_faults(fake: FakeAgent, client: Client) -> None:
    fake.add("widget", name="w")
    stream = client.notifications(AgentRemoved, AgentRestarted)
    fake.silent = True
    with pytest.raises(RequestTimeout):
        await client.objects("widget", timeout=0.05)
    fake.silent = False
    fake.refusal = "closed for today"
    with pytest.raises(RemoteError, match="closed for today"):
        await client.objects("widget")
    fake.refusal = ""
    assert len(await client.objects("widget")) == 1
    await fake.restart()
    item = await anext(stream)
    assert isinstance(item, AgentRestarted)
    assert (item.old.epoch, item.agent.epoch, fake.agent.epoch) == (1, 2, 2)
    assert not await client.objects("widget")
    fake.add("widget", name="new")
    assert len(await client.objects("widget")) == 1
    await fake.close()
    assert isinstance(await anext(stream), AgentRemoved)


async def test_one_that_vanishes_sends_nothing(fake: FakeAgent, client: Client, qmf_exchange: MemoryExchange) -> None:
    received = qmf_exchange.received
    await fake.vanish()
    assert qmf_exchange.received == received
    assert [agent.name for agent in client.agents] == [fake.name]


async def test_mistakes_are_errors(fake: FakeAgent, qmf_exchange: MemoryExchange) -> None:
    with pytest.raises(CallerError, match="vendor:product:instance"):
        FakeAgent(qmf_exchange, name="me")
    with pytest.raises(NotFoundError, match="did you mean widget"):
        fake.add("widgt")
    with pytest.raises(CallerError, match="no property or statistic 'colour'"):
        fake.add("widget", colour=1)
    with pytest.raises(ConstraintError, match="level"):
        fake.add("widget", level="high")
    with pytest.raises(CallerError, match="needs a list of samples, not 5"):
        fake.add("widget", delay=5)
    with pytest.raises(CallerError, match="must be an integer"):
        fake.add("widget", turns="x")
    with pytest.raises(NotFoundError, match="did you mean widgetAlarm"):
        fake.raise_event("widgetAlert")
    with pytest.raises(CallerError, match="has no argument 'colour'"):
        fake.raise_event("widgetAlarm", colour=1)
    with pytest.raises(CallerError, match="needs its argument 'level'"):
        fake.raise_event("widgetAlarm", name="x")
    assert fake.agent.objects == ()


async def test_whole_schemas_and_a_clock(qmf_exchange: MemoryExchange, qmf_clock: ManualClock) -> None:
    fake = FakeAgent(qmf_exchange, host.SCHEMA, name="example.org:host:2", clock=qmf_clock, interval=5, epoch=7)
    fake.add("filesystem", mountPoint="/")
    async with fake, Client(MemoryBus(qmf_exchange)) as client:
        assert client.agent("example.org:host:2").epoch == 7
        assert {key.name for key in await client.classes("qmf.host")} == {item.key.name for item in host.SCHEMA}
        seen: list[Notification] = []
        client.listen(seen.append)
        await qmf_clock.advance(5)
        await until(lambda: [item for item in seen if isinstance(item, ObjectUpdated)])


@pytest.mark.slow
@examples(30)
@given(schema=schemas())
def test_classes_of_any_schema_have_all_members(schema: Schema) -> None:
    called: list[str] = []

    def dispatch(obj: ManagedObject, method: str, inputs: Mapping[str, object]) -> Mapping[str, object]:
        called.append(method)
        return {}

    for item in schema.classes:
        cls = managed_class(item, dispatch)
        layout = layout_of(cls)
        assert [field.name for field in layout.properties] == [value.name for value in item.properties]
        assert [field.name for field in layout.statistics] == [value.name for value in item.statistics]
        for method in item.methods:
            work = getattr(cls, python_name(cls, method.name))(None, *range(len(method.inputs)))
            with pytest.raises(StopIteration):
                work.send(None)
        assert called == [method.name for method in item.methods]
        called.clear()


def test_sites_are_generated_classes() -> None:
    assert Site._qmf_schema_ is SITE
