"""Providers of many things, and providers that fail; objects that are added when somebody looks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping

import attrs
import pytest
from agent.asking import ask, call, objects, refusal
from agent.provided import SHELVES, SITES, Warehouse, oid
from agent.warehouse import Shelf, Site
from support.fake_bus import FakeBus
from support.waiting import until

from qmf.agent import Agent, ProviderQuery
from qmf.agent.providers import Item
from qmf.errors import DisconnectedError
from qmf.protocol import (
    Envelope,
    ExceptionResponse,
    QueryRequest,
    What,
    encode,
)
from qmf.schema import ClassKey
from qmf.testing import ManualClock


async def test_pages_become_parts_of_their_own_size(agent: Agent, bus: FakeBus) -> None:
    agent.provide(Site, lambda query: ([(f"{page}-{n}", {"name": "x"}) for n in range(70)] for page in range(3)))
    answers = await ask(bus, class_key=SITES)
    assert [(len(objects([answer])), answer.partial) for answer in answers] == [(100, True), (100, True), (10, False)]


@pytest.mark.slow
async def test_a_large_class_takes_little_memory(agent: Agent, bus: FakeBus) -> None:
    made = most = 0

    def many(query: ProviderQuery) -> Iterator[list[tuple[str, Mapping[str, object]]]]:
        nonlocal made, most
        for page in range(200):
            made += 100
            yield [(f"{page}-{n}", {"name": "x"}) for n in range(100)]
            most = max(most, made - 100 * len(bus.sent))

    agent.provide(Site, many)
    answers = await ask(bus, class_key=SITES)
    assert sum(len(objects([answer])) for answer in answers) == 20_000
    # Never more than a page and a part ahead of what was sent.
    assert most <= 200


async def test_other_requests_are_answered_meanwhile(agent: Agent, bus: FakeBus) -> None:
    agent.provide(Site, lambda query: ([(f"{page}-{n}", {"name": "x"}) for n in range(100)] for page in range(50)))
    query = encode(Envelope(content=QueryRequest(what=What.OBJECT, class_key=SITES), reply_to="q", correlation_id="1"))
    bus.deliver(query, "console.#")
    await until(lambda: len(bus.sent) > 2)
    bus.deliver(
        encode(Envelope(content=QueryRequest(what=What.SCHEMA_ID), reply_to="q", correlation_id="2")), "console.#"
    )
    await until(lambda: bus.undone == 0)
    order = [message.correlation_id for message in bus.take()]
    assert 0 < order.index("2") < len(order) - 10


async def test_a_broken_connection_closes_the_handler(agent: Agent, bus: FakeBus) -> None:
    warehouse = Warehouse(1000, size=50)
    agent.provide(Shelf, warehouse)
    bus.failures = [None, DisconnectedError("fake://", "gone")]
    await ask(bus, class_key=SHELVES)
    assert (warehouse.closed, warehouse.pages_made < 12) == (1, True)


async def test_closing_the_agent_closes_the_handler(bus: FakeBus, clock: ManualClock) -> None:
    entered = asyncio.Event()
    ended: list[str] = []

    async def endless(query: ProviderQuery) -> AsyncIterator[list[Item]]:
        try:
            entered.set()
            await asyncio.Event().wait()
            yield []
        finally:
            ended.append("closed")

    async with Agent(bus, vendor="v", product="p", clock=clock) as agent:
        agent.provide(Site, endless)
        bus.deliver(
            encode(Envelope(content=QueryRequest(what=What.OBJECT, class_key=SITES), reply_to="q")), "console.#"
        )
        await entered.wait()
    assert ended == ["closed"]


@pytest.mark.parametrize("by_id", [False, True])
async def test_a_failure_in_the_middle_ends_the_answer(
    agent: Agent, bus: FakeBus, by_id: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(query: ProviderQuery) -> Iterator[list[Item]]:
        if not by_id:
            yield [(str(n), {"name": "x"}) for n in range(150)]
        raise OSError("the table is locked")

    agent.provide(Site, failing)
    wanted = {"object_id": oid(agent, "a", "site")} if by_id else {"class_key": SITES}
    with caplog.at_level(logging.ERROR, "qmf.agent"):
        *parts, last = await ask(bus, **wanted)
    assert [len(objects([part])) for part in parts] == ([] if by_id else [100])
    assert isinstance(last.content, ExceptionResponse)
    assert refusal(last) == (7, "the provider of Site failed: the table is locked")
    assert any(record.exc_info for record in caplog.records)


async def test_objects_are_added_when_somebody_looks(agent: Agent, bus: FakeBus, clock: ManualClock) -> None:
    filled: list[str] = []

    def fill() -> None:
        filled.append("sites")
        if len(filled) == 1:
            agent.add(Site(name="a"), created=7)

    agent.fill(Site, fill)
    assert objects(await ask(bus, class_key=SHELVES)) == []
    assert objects(await ask(bus, object_id=oid(agent, "a"))) == []
    assert filled == []
    (found,) = objects(await ask(bus, object_id=oid(agent, "a", "site")))
    assert (found.create_ts, found.update_ts, filled) == (7, 7, ["sites"])
    assert len(objects(await ask(bus, object_id=oid(agent, "a", "site")))) == 1
    assert filled == ["sites"]
    assert len(objects(await ask(bus, class_key=ClassKey("", "Site")))) == 1
    assert filled == ["sites"] * 2
    assert objects(await ask(bus, object_id=attrs.evolve(oid(agent, "b", "site"), agent_name="other"))) == []
    assert objects(await ask(bus, object_id=attrs.evolve(oid(agent, "b", "site"), object_name="b"))) == []
    assert filled == ["sites"] * 2


async def test_a_call_adds_the_object_that_it_is_for(agent: Agent, bus: FakeBus) -> None:
    agent.fill(Shelf, lambda: agent.add(Shelf(number=5)))
    _, text = refusal(await call(bus, oid(agent, ",5"), "none"))
    assert text == "no Shelf method 'none'"
    assert [shelf.number for shelf in agent.objects] == [5]  # type: ignore[attr-defined]
