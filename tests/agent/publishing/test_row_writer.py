"""Consoles that read rows get the same objects in them as others get in ordinary messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import pytest
from agent.asking import ask, names, objects
from agent.object_states import store_unchecked
from agent.warehouse import PACKAGE, Belt, Shelf, Site
from support.fake_bus import FakeBus
from support.waiting import until

from qmf.agent import Agent, ObjectId, ProviderQuery
from qmf.agent.sending.message_batcher import MAX_BYTES, MAX_ROW_BYTES
from qmf.codec import amqp010, decode_message
from qmf.protocol import BodyForm, Envelope, ObjectData, QueryRequest, What, encode
from qmf.protocol.objects import row_encoding
from qmf.protocol.objects.lazy_values import LazyValues
from qmf.schema import ClassKey
from qmf.testing import ManualClock

SHELVES = ClassKey(PACKAGE, "shelf")


def plain(messages: Sequence[Envelope]) -> list[ObjectData]:
    """The objects, their values as dictionaries."""
    return [attrs.evolve(item, values=dict(item.values)) for item in objects(messages)]


def blocks(bus: FakeBus) -> list[dict[str, Any]]:
    """The blocks in all messages sent."""
    found = []
    for data in bus.sent:
        body = decode_message(data).body
        if isinstance(body, bytes):
            body = amqp010.decode_list(body, text=True)
        assert isinstance(body, list)
        found += [item for item in body if isinstance(item, dict) and "_row_form" in item]
    return found


@pytest.fixture
def shelves(agent: Agent) -> list[Shelf]:
    site = Site(name="s")
    agent.add(site)
    shelves = [
        Shelf(number=number, siteRef=site, label="even" if number % 2 == 0 else None, options={"n": number})
        for number in range(5)
    ]
    for shelf in shelves:
        agent.add(shelf)
        shelf.in_.inc(7)
        shelf.wait.sample(3)
    agent.add(Belt(speed=1.5))
    return shelves


QUERIES: list[dict[str, Any]] = [
    {"class_key": SHELVES},
    {"class_key": ClassKey("", "Belt")},
    {"class_key": ClassKey("", "nothing")},
    {"class_key": SHELVES, "where": ["ge", "number", ["quote", 3]]},
    {"class_key": SHELVES, "where": ["exists", "label"], "select": ["label", "wait"]},
    {"class_key": SHELVES, "select": ["number", "usersHigh", "nothing"]},
    {"class_key": SHELVES, "select": ["nothing"]},
    {"object_id": ObjectId(f"{PACKAGE}:shelf:{PACKAGE}:site:s,3")},
    {"object_id": ObjectId("nobody")},
]


@pytest.mark.parametrize("query", QUERIES)
async def test_rows_have_the_values_of_ordinary_objects(
    agent: Agent, bus: FakeBus, shelves: list[Shelf], query: dict[str, Any]
) -> None:
    expected = plain(await ask(bus, **query))
    assert blocks(bus) == []
    bus.take()
    assert plain(await ask(bus, **query, row_form=1)) == expected
    assert len(blocks(bus)) == bool(expected)


async def test_a_newer_form_is_answered_with_what_the_agent_writes(
    agent: Agent, bus: FakeBus, shelves: list[Shelf]
) -> None:
    answers = await ask(bus, class_key=SHELVES, row_form=2)
    assert len(plain(answers)) == 5
    (block,) = blocks(bus)
    assert (block["_row_form"], block["_agent_name"], block["_agent_epoch"]) == (1, "example.org:stock:one", 3)
    assert block["_columns"][:2] == ["siteRef", "number"]


async def test_ids_come_in_ordinary_objects(agent: Agent, bus: FakeBus, shelves: list[Shelf]) -> None:
    answers = await ask(bus, what=What.OBJECT_ID, class_key=SHELVES, row_form=1)
    assert blocks(bus) == []
    assert [item.values for item in objects(answers)] == [{}] * 5


async def test_what_does_not_fit_a_row_comes_beside_the_block(agent: Agent, bus: FakeBus, shelves: list[Shelf]) -> None:
    shelves[1].label = "a\udcff"
    answers = await ask(bus, class_key=SHELVES, row_form=1)
    kinds = {item.values["number"]: type(item.values) for item in objects(answers)}
    assert [number for number, kind in sorted(kinds.items()) if kind is not LazyValues] == [1]


async def test_one_that_cannot_be_encoded_does_not_stop_the_others(
    agent: Agent, bus: FakeBus, shelves: list[Shelf], caplog: pytest.LogCaptureFixture
) -> None:
    store_unchecked(shelves[3], "tags", [object()])
    answers = await ask(bus, class_key=SHELVES, row_form=1)
    assert sorted(str(item.values["number"]) for item in objects(answers)) == ["0", "1", "2", "4"]
    assert agent.statistics.unencodable == 1
    assert "skipped object" in caplog.text


async def test_long_answers_come_in_messages_of_a_bearable_size(agent: Agent, bus: FakeBus) -> None:
    for number in range(2500):
        agent.add(Site(name=f"{number:0200}"))
    answers = await ask(bus, class_key=ClassKey("", "site"), row_form=1)
    assert [int(name) for name in names(answers)] == list(range(2500))
    assert [answer.partial for answer in answers] == [True] * (len(answers) - 1) + [False]
    sizes = [len(data) for data in bus.sent]
    assert max(sizes) <= MAX_ROW_BYTES
    assert max(sizes) > MAX_BYTES


async def test_amqp_values_hold_blocks_too(bus: FakeBus, clock: ManualClock) -> None:
    async with Agent(bus, vendor="v", product="p", epoch=3, clock=clock, form=BodyForm.VALUE) as agent:
        agent.add(Shelf(number=7, options={"a": "b"}))
        expected = plain(await ask(bus, class_key=SHELVES))
        bus.take()
        assert plain(await ask(bus, class_key=SHELVES, row_form=1)) == expected
        assert len(blocks(bus)) == 1


async def test_objects_and_rows_of_providers(agent: Agent, bus: FakeBus, clock: ManualClock) -> None:
    def mixed(query: ProviderQuery) -> Iterator[list[Any]]:
        yield [("1", {"number": 1, "users": 3, "siteRef": ObjectId("s")}), Shelf(number=2, label="x")]
        yield [("3", {})]

    agent.provide(Shelf, mixed)
    queries: list[dict[str, Any]] = [{"select": ["number", "users", "usersLow"]}, {"where": ["exists", "users"]}, {}]
    for query in queries:
        expected = plain(await ask(bus, class_key=SHELVES, **query))
        bus.take()
        assert plain(await ask(bus, class_key=SHELVES, row_form=1, **query)) == expected
        assert len(expected) == (2 if "where" in query else 3)
        assert len(blocks(bus)) == 1


@pytest.mark.slow
async def test_ten_thousand_rows_do_not_hold_up_the_loop(agent: Agent, bus: FakeBus) -> None:
    for number in range(10_000):
        agent.add(Site(name=str(number)))
    query = QueryRequest(what=What.OBJECT, class_key=ClassKey("", "site"), row_form=1)
    bus.deliver(encode(Envelope(content=query, reply_to="q")), "console.#")
    seen: list[int] = []
    await until(lambda: seen.append(len(bus.sent)) or not bus.undone)  # type: ignore[func-returns-value]
    # How many turns it takes depends on the speed of the machine.
    assert len(seen) >= 20
    assert len(bus.sent) <= 20


async def test_classes_with_more_values_than_rows_have_come_as_ordinary_objects(
    agent: Agent, bus: FakeBus, shelves: list[Shelf], monkeypatch: pytest.MonkeyPatch
) -> None:
    queries: list[dict[str, Any]] = [
        {"class_key": SHELVES},
        {"class_key": SHELVES, "where": ["ge", "number", ["quote", 3]]},
    ]
    for query in queries:
        expected = plain(await ask(bus, **query))
        bus.take()
        with monkeypatch.context() as patch:
            patch.setattr(row_encoding, "MAX_COLUMNS", 3)
            assert plain(await ask(bus, **query, row_form=1)) == expected
        assert blocks(bus) == []
        bus.take()
    assert agent.statistics.unencodable == 0
