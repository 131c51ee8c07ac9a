"""Filters: console and agents select the same objects by any predicate."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from agent.warehouse import Shelf
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from support.examples import examples

from qmf.agent import Agent
from qmf.bus import MemoryBus, MemoryExchange
from qmf.console import LoopThread
from qmf.console.aio import Client, ClientOptions, FollowMode
from qmf.console.aio.core import ClientCore
from qmf.console.aio.objects.object_query import ObjectQuery, compile_filter

pytestmark = pytest.mark.slow

LABELS = ("top", "Top", "t.p", "5", "", "täp", None)
COUNT = 24

_names = st.sampled_from(["number", "label", "limit", "weight", "open", "in", "class", "usersHigh", "missing", "token"])
_values = st.one_of(
    st.integers(-3, 60),
    st.sampled_from([2**63 - 1, 2**64 - 1, -(2**63)]),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.booleans(),
    st.sampled_from([item for item in LABELS if item is not None]),
    st.text(max_size=3),
)
_operands = st.one_of(_names, _values.map(lambda value: ["quote", value]))
_patterns = st.sampled_from(["^t", "op$", ".", "^$", "[0-9]+", "T|t", "t\\.p"]).map(lambda text: ["quote", text])
_simple = st.one_of(
    st.tuples(st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"]), _operands, _operands).map(list),
    st.tuples(st.just("re_match"), _names, _patterns).map(list),
    st.tuples(st.just("exists"), _names).map(list),
    st.sampled_from([["true"], ["false"], []]),
)
PREDICATES: st.SearchStrategy[Any] = st.recursive(
    _simple,
    lambda inner: st.tuples(st.sampled_from(["and", "or", "not"]), st.lists(inner, max_size=3)).map(
        lambda parts: [parts[0], *parts[1]]
    ),
    max_leaves=6,
)
#: Those that a client sends: it refuses to compare a value that the class does not have.
SENT = PREDICATES.filter(lambda predicate: "missing" not in str(predicate))


class Site:
    """An agent with shelves of all kinds and a client, on a bus in memory."""

    def __init__(self) -> None:
        self.loop = LoopThread("test-predicates")
        self.loop.run(self._start())

    async def _start(self) -> None:
        exchange = MemoryExchange()
        self.agent = Agent(MemoryBus(exchange), vendor="e", product="p", instance="i", epoch=1, interval=0.05)
        for number in range(COUNT):
            shelf = Shelf(number=number, label=LABELS[number % len(LABELS)], limit=5 + number)
            shelf.weight = number / 4
            shelf.open = number % 2 == 0
            shelf.in_.inc(number)
            shelf.class_ = str(number)
            self.agent.add(shelf)
        await self.agent.start()
        self.client = Client(MemoryBus(exchange), settle=5)
        await self.client.open()
        self.core = ClientCore(MemoryBus(exchange), ClientOptions(settle=5))
        await self.core.open(5)
        self.everything = await self.client.objects("shelf")

    def close(self) -> None:
        async def end() -> None:
            await self.core.close()
            await self.client.close()
            await self.agent.close()

        self.loop.run(end())
        self.loop.stop()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


def here(site: Site, predicate: Any) -> list[int]:
    """Numbers of the shelves that match, evaluated by the console."""
    _, test = compile_filter(predicate, [])
    return sorted(obj["number"] for obj in site.everything if test(obj))


@examples(190, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(predicate=PREDICATES)
def test_agent_and_console_agree(site: Site, predicate: Any) -> None:
    async def ask() -> tuple[list[int], bool]:
        (agent,) = site.core.agents
        sent, _ = compile_filter(predicate, [])
        found = await site.core.requests.query(agent, ObjectQuery("shelf"), predicate, 5)
        asked = await site.core.requests.query(agent, ObjectQuery("shelf"), sent, 5)
        local = here(site, predicate)
        return sorted(obj["number"] for obj in found), set(local) <= {obj["number"] for obj in asked}

    found, kept = site.loop.run(ask())
    assert found == here(site, predicate)
    assert kept  # what is sent to foreign agents hides nothing


@examples(30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(predicate=SENT)
def test_a_query_returns_what_matches(site: Site, predicate: Any) -> None:
    async def ask() -> list[int]:
        return sorted(obj["number"] for obj in await site.client.objects("shelf", where=predicate))

    assert site.loop.run(ask()) == here(site, predicate)


_EQUAL = st.dictionaries(
    st.sampled_from(["number", "label", "limit", "weight", "open", "class"]),
    st.one_of(st.integers(0, 30), st.booleans(), st.sampled_from(LABELS), st.floats(0, 6, width=16)),
    min_size=1,
    max_size=2,
)


@examples(95, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=_EQUAL)
def test_values_by_name_select_exactly_those_that_are_equal(site: Site, values: dict[str, object]) -> None:
    async def ask() -> list[int]:
        return sorted(obj["number"] for obj in await site.client.objects("shelf", where=values))

    expected = [
        obj["number"]
        for obj in site.everything
        if all(
            obj[name] == value and isinstance(obj[name], bool) == isinstance(value, bool)
            for name, value in values.items()
        )
    ]
    assert site.loop.run(ask()) == sorted(expected)


@examples(20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(predicate=SENT)
def test_following_shows_what_matches(site: Site, predicate: Any) -> None:
    async def look() -> tuple[list[int], list[FollowMode]]:
        async with asyncio.timeout(10), site.client.follow("shelf", where=predicate) as shelves:
            return sorted(obj["number"] for obj in shelves), list(shelves.sources.values())

    assert site.loop.run(look()) == (here(site, predicate), [FollowMode.SUBSCRIPTION])
