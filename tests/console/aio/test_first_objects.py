"""Requests with a limit: the first objects of one agent, of several, and of agents that know no limit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from agent.warehouse import SHELF, Shelf
from console.conftest import MakeAgent, MakeClient
from support.scripted_agent import WIDGET, ScriptedAgent, widget

from qmf.agent import Agent
from qmf.bus import MemoryBus, MemoryExchange
from qmf.console.aio import Client, OrderKey, first_objects
from qmf.errors import CallerError, NotFoundError
from qmf.protocol import QueryRequest, What
from qmf.schema import ClassKey

SHELVES, WIDGETS = ClassKey(SHELF.package, "shelf"), ClassKey(WIDGET.package, "widget")


def numbers(objects: Any) -> list[object]:
    return [obj["number"] for obj in objects]


@pytest.fixture
async def stock(exchange: MemoryExchange) -> AsyncIterator[Agent]:
    async with Agent(MemoryBus(exchange), vendor="example.org", product="stock", instance="one", interval=1e6) as agent:
        for number in range(250):
            shelf = Shelf(number=number, label=f"l{number}")
            shelf.weight = float(number * 7 % 250)
            agent.add(shelf)
        yield agent


async def test_an_agent_of_ours_sends_the_first_ones(stock: Agent, exchange: MemoryExchange) -> None:
    async with Client(MemoryBus(exchange)) as client:
        found = await client.objects(class_key=SHELVES, limit=3, order=[OrderKey("weight", descending=True)])
        assert ([obj["weight"] for obj in found], found.total) == ([249.0, 248.0, 247.0], 250)
        unordered = await client.objects("shelf", limit=2)
        assert (numbers(unordered), unordered.total) == ([0, 1], 250)
        assert (await client.objects("shelf")).total == 250
        few = await client.objects("shelf", where=["lt", "number", ["quote", 2]], limit=9)
        assert (numbers(few), few.total) == ([0, 1], 2)


async def test_values_that_are_not_selected_are_not_sent(stock: Agent, exchange: MemoryExchange) -> None:
    async with Client(MemoryBus(exchange)) as client:
        (found,) = await client.objects("shelf", where={"label": "l3"}, limit=1, select=["number", "weight"])
        assert dict(found.data.values) == {"number": 3, "label": "l3", "weight": 21.0}


@pytest.mark.parametrize(
    ("where", "limited"),
    [
        (None, 2),
        ({"label": "l3"}, 2),
        ({"number": 3}, 2),
        ({"open": False}, 2),
        (["eq", "number", ["quote", 3]], 2),
        ({"weight": 21.0}, 0),
        ({"number": 3, "weight": 21.0}, 0),
        ({"number": "3"}, 0),
        (["re_match", "label", ["quote", "^l3$"]], 0),
    ],
    ids=[
        "none",
        "text",
        "number",
        "boolean",
        "predicate",
        "float",
        "partly",
        "number as text",
        "pattern",
    ],
)
async def test_the_limit_is_sent_if_agents_decide_as_the_console_does(
    make_agent: MakeAgent, make_client: MakeClient, where: Any, limited: int
) -> None:
    agent = await make_agent()
    agent.schemas = [SHELF]
    client, _ = await make_client()
    await client.schema((await client.classes())[0])
    found = await client.objects(class_key=SHELVES, where=where, limit=2)
    (asked,) = (item.content for item in agent.asked if isinstance(item.content, QueryRequest) and is_query(item))
    assert isinstance(asked, QueryRequest)
    assert (asked.limit, len(found), found.total) == (limited, 0, 0)


def is_query(item: Any) -> bool:
    return bool(item.content.what is What.OBJECT)


async def filled(make_agent: MakeAgent, name: str = "example.org:widgets:1", count: int = 10) -> ScriptedAgent:
    agent = await make_agent(name)
    agent.objects = [widget(f"w{number}", level=number % 9 + 1, turns=number) for number in range(count)]
    agent.part = 3
    return agent


async def test_of_an_agent_that_knows_no_limit_the_first_parts_are_enough(
    make_agent: MakeAgent, make_client: MakeClient
) -> None:
    await filled(make_agent)
    client, _ = await make_client()
    found = await client.objects(class_key=WIDGETS, limit=4)
    assert [obj["name"] for obj in found] == ["w0", "w1", "w2", "w3"]
    assert found.total is None
    assert (client.counts.answered, client.counts.late) == (client.counts.asked, 2)


async def test_what_is_to_be_in_order_takes_the_whole_answer(make_agent: MakeAgent, make_client: MakeClient) -> None:
    await filled(make_agent)
    client, _ = await make_client()
    found = await client.objects("widget", limit=3, order=[OrderKey("turns", descending=True)])
    assert ([obj["turns"] for obj in found], found.total) == ([9, 8, 7], 10)
    named = await client.objects("widget", limit=2, order=[OrderKey(OrderKey.OBJECT_NAME, descending=True)])
    assert [obj["name"] for obj in named] == ["w9", "w8"]


async def test_the_console_tests_and_cuts_what_agents_cannot_decide(
    make_agent: MakeAgent, make_client: MakeClient
) -> None:
    await filled(make_agent)
    client, _ = await make_client()
    found = await client.objects("widget", where=["re_match", "name", ["quote", "[5-9]"]], limit=2)
    assert ([obj["name"] for obj in found], found.total) == (["w5", "w6"], 5)
    with pytest.raises(NotFoundError, match="colour"):
        await client.objects("widget", where={"colour": "red"}, limit=2)


async def test_objects_of_several_agents_in_one_order(make_agent: MakeAgent, make_client: MakeClient) -> None:
    for first, name in enumerate("bac"):
        agent = await make_agent(f"example.org:{name}:1")
        agent.objects = [widget(f"w{turns}", turns=turns) for turns in range(first, 12, 3)]
    client, _ = await make_client()
    found = await client.objects("widget", limit=5, order=[OrderKey("turns")])
    assert ([obj["turns"] for obj in found], found.total) == ([0, 1, 2, 3, 4], 12)
    in_turn = await client.objects("widget", limit=5, order=[OrderKey("turns", True)], in_turn=True)
    assert [(obj.agent, obj["turns"]) for obj in in_turn] == [
        *(("example.org:a:1", turns) for turns in (10, 7, 4, 1)),
        ("example.org:b:1", 9),
    ]


async def test_agents_are_asked_in_turn_until_there_are_enough(
    make_agent: MakeAgent, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_objects, "AGENTS_AT_FIRST", 1)
    agents = [await filled(make_agent, f"example.org:{name}:1", 2) for name in "dbca"]
    client, _ = await make_client()
    await client.classes()
    found = await client.objects("widget", limit=3)
    assert [obj.agent[12] for obj in found] == ["a", "a", "b"]
    assert found.total is None
    asked = [any(isinstance(item.content, QueryRequest) and is_query(item) for item in agent.asked) for agent in agents]
    assert asked == [False, True, False, True]
    everything = await client.objects("widget", limit=50)
    assert (len(everything), everything.total) == (8, 8)


async def test_agents_of_ours_search_for_a_text(stock: Agent, exchange: MemoryExchange) -> None:
    async with Client(MemoryBus(exchange)) as client:
        found = await client.objects(class_key=SHELVES, text="L24", limit=2)
        assert (numbers(found), found.total) == ([24, 240], 11)
        assert len(await client.objects("shelf", text="l24")) == 11
        with pytest.raises(CallerError, match="text"):
            await client.objects("shelf", text="l24", select=["label"])


async def test_of_other_agents_the_console_leaves_out_what_lacks_the_text(
    make_agent: MakeAgent, make_client: MakeClient
) -> None:
    await filled(make_agent, count=12)
    client, _ = await make_client()
    found = await client.objects("widget", text="W1", limit=2)
    assert ([obj["name"] for obj in found], found.total) == (["w1", "w10"], 3)
    assert [obj["name"] for obj in await client.objects("widget", text="w1")] == ["w1", "w10", "w11"]


async def test_agents_without_the_class_are_not_asked(make_agent: MakeAgent, make_client: MakeClient) -> None:
    await filled(make_agent, "example.org:a:1", 1)
    other = await make_agent("example.org:b:1")
    other.schemas = []
    client, _ = await make_client()
    await client.classes()
    other.asked.clear()
    found = await client.objects(class_key=WIDGETS, limit=5)
    assert (len(found), found.total, other.asked) == (1, 1, [])


async def test_agents_that_fail_are_named(make_agent: MakeAgent, make_client: MakeClient) -> None:
    await filled(make_agent, "example.org:a:1", 1)
    silent = await make_agent("example.org:b:1")
    client, _ = await make_client()
    await client.classes()
    silent.mute.add(QueryRequest)
    found = await client.objects("widget", limit=5, timeout=0.01)
    assert (len(found), "example.org:b:1" in found.failures) == (1, True)


@pytest.mark.parametrize("arguments", [{"limit": 0}, {"order": [OrderKey("level")]}], ids=["limit 0", "order alone"])
async def test_a_wrong_limit(make_client: MakeClient, arguments: dict[str, Any]) -> None:
    client, _ = await make_client()
    with pytest.raises(CallerError, match="limit"):
        await client.objects("widget", **arguments)
