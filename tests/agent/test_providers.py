"""Providers: objects on demand, by class and id, in pages, and what they do wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping

import pytest
from agent.asking import ask, call, names, objects, refusal
from agent.provided import SHELVES, SITES, Warehouse, oid
from agent.warehouse import PACKAGE, SHELF, Belt, Shelf, Site
from support.fake_bus import FakeBus
from support.waiting import until

from qmf.agent import Agent, ManagedObject, ObjectId, Provider, ProviderQuery
from qmf.agent.objects.provided_class import used_names
from qmf.agent.providers import Item
from qmf.errors import CallerError
from qmf.protocol import (
    MethodResponse,
    SchemaIdsResponse,
    What,
)
from qmf.schema import ClassKey
from qmf.testing import ManualClock


@pytest.fixture
def warehouse(agent: Agent) -> Warehouse:
    warehouse = Warehouse(25)
    agent.provide(Shelf, warehouse)
    return warehouse


async def test_objects_of_a_class(agent: Agent, bus: FakeBus, warehouse: Warehouse) -> None:
    (answer,) = await ask(bus, class_key=SHELVES)
    found = objects([answer])
    assert [item.values["number"] for item in found] == list(range(1, 26))
    assert found[0].object_id == oid(agent, ",1")
    assert found[0].class_key == SHELF.key
    assert (found[0].create_ts, found[0].update_ts > 0) == (0, True)
    assert set(found[1].values) == set(Shelf(number=1, label="")._qmf_values())
    assert isinstance(warehouse, Provider)
    assert warehouse.queries == [ProviderQuery(class_key=SHELF.key)]


async def test_objects_that_the_agent_has_come_first(agent: Agent, bus: FakeBus, warehouse: Warehouse) -> None:
    agent.add(Shelf(number=1000))
    assert names(await ask(bus, class_key=ClassKey("", "Shelf")))[:3] == [",1000", ",1", ",2"]
    assert [item.values["number"] for item in objects(await ask(bus, object_id=oid(agent, ",1000")))] == [1000]
    assert warehouse.looked_up == []


@pytest.mark.parametrize("key", [ClassKey("other", "shelf"), SITES])
async def test_other_classes_ask_no_provider(agent: Agent, bus: FakeBus, warehouse: Warehouse, key: ClassKey) -> None:
    assert objects(await ask(bus, class_key=key)) == []
    assert warehouse.queries == []


async def test_predicate_and_selection(agent: Agent, bus: FakeBus, warehouse: Warehouse) -> None:
    where = ["and", ["eq", "label", ["quote", "even"]], ["gt", "users", ["quote", 20]]]
    answers = await ask(bus, class_key=SHELVES, where=where, select=["number", "wait"])
    assert [dict(item.values) for item in objects(answers)] == [
        {"number": number, "waitCount": 0, "waitMin": 0, "waitMax": 0, "waitAvg": 0} for number in (22, 24)
    ]
    (query,) = warehouse.queries
    assert list(query.where) == where
    assert query.select == {"number", "wait", "waitCount", "waitMin", "waitMax", "waitAvg", "label", "users"}


async def test_ids_only(agent: Agent, bus: FakeBus, warehouse: Warehouse) -> None:
    found = objects(await ask(bus, what=What.OBJECT_ID, class_key=SHELVES, where=["eq", "number", ["quote", 7]]))
    assert [(item.object_id, dict(item.values)) for item in found] == [(oid(agent, ",7"), {})]


@pytest.mark.parametrize(
    ("object_id", "found", "asked"),
    [
        (ObjectId(f"{PACKAGE}:shelf:,3"), [3], [",3"]),
        (ObjectId(f"{PACKAGE}:shelf:,26"), [], [",26"]),
        (ObjectId(f"{PACKAGE}:shelf:,3", "other"), [], []),
        (ObjectId(f"{PACKAGE}:shelf:,3", None, 77), [], []),
        (ObjectId(f"{PACKAGE}:site:,3"), [], []),
    ],
)
async def test_by_id(
    agent: Agent, bus: FakeBus, warehouse: Warehouse, object_id: ObjectId, found: list[int], asked: list[str]
) -> None:
    assert [item.values["number"] for item in objects(await ask(bus, object_id=object_id))] == found
    assert (warehouse.looked_up, warehouse.queries) == (asked, [])


async def test_methods_and_settings_go_through_the_provider(agent: Agent, bus: FakeBus, warehouse: Warehouse) -> None:
    answer = await call(bus, oid(agent, ",7"), "move", items=3)
    assert isinstance(answer.content, MethodResponse)
    assert answer.content.arguments == {"moved": 7, "note": "door"}
    assert warehouse.moved == 3
    assert isinstance((await call(bus, oid(agent, ",7"), "_set_properties", limit=9)).content, MethodResponse)
    assert warehouse.moved == 9
    assert refusal(await call(bus, oid(agent, ",99"), "move", items=3))[0] == 1


async def test_nothing_is_published(agent: Agent, bus: FakeBus, clock: ManualClock, warehouse: Warehouse) -> None:
    await clock.advance(10)
    await until(lambda: bool(bus.sent))
    assert len(bus.take()) == 1
    assert warehouse.queries == []


async def test_the_schema_is_known(agent: Agent, bus: FakeBus, warehouse: Warehouse) -> None:
    (answer,) = await ask(bus, what=What.SCHEMA_ID)
    assert isinstance(answer.content, SchemaIdsResponse)
    assert list(answer.content.keys) == [SHELF.key]


# -- functions and rows ------------------------------------------------------------------------------------------------


async def test_a_function_with_rows(agent: Agent, bus: FakeBus) -> None:
    asked: list[ProviderQuery] = []

    @agent.provider(Shelf)
    def shelves(query: ProviderQuery) -> Iterator[list[tuple[str, Mapping[str, object]]]]:
        asked.append(query)
        for number in range(3):
            yield [(f"s{number}", {"number": number, "users": 5, "siteRef": ObjectId("x"), "label": None, "weight": 2})]

    found = objects(await ask(bus, class_key=SHELVES))
    assert [item.object_id for item in found] == [oid(agent, f"s{number}") for number in range(3)]
    values = dict(found[1].values)
    assert values.pop("siteRef") == {"_object_name": "x"}
    assert values == {"number": 1, "users": 5, "usersHigh": 5, "usersLow": 5, "weight": 2.0}
    assert [item.values["number"] for item in objects(await ask(bus, object_id=oid(agent, "s2")))] == [2]
    assert asked[1] == ProviderQuery(class_key=SHELF.key, object_id=oid(agent, "s2"), key="s2")
    assert refusal(await call(bus, oid(agent, "s2"), "clear")) == (
        3,
        "the provider of Shelf gives rows, which have no methods",
    )
    assert objects(await ask(bus, object_id=oid(agent, "s3"))) == []


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (("a", {"size": 1}), "a row of Shelf has a value 'size', which the class does not have"),
        (("a", {"number": -1}), "Shelf.number (uint16): must be 0 to 65535, not -1"),
        (("a", {"waitCount": "x"}), "Shelf.waitCount (deltaTime): must be a whole number, not 'x'"),
        ((1, {}), "key of Shelf (sstr): must be a string, not 1"),
        (Belt(), "<Belt without agent> is not a Shelf"),
    ],
)
async def test_rows_are_checked(
    agent: Agent, bus: FakeBus, row: Item, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    agent.provide(Shelf, lambda query: [[row]])
    (answer,) = await ask(bus, class_key=SHELVES)
    assert refusal(answer) == (7, f"the provider of Shelf failed: {text}")
    assert "the provider of Shelf failed" in caplog.text


async def test_rows_without_a_generator_and_references_to_objects(agent: Agent, bus: FakeBus) -> None:
    site = Site(name="a")
    site_id = agent.add(site)
    agent.provide(Shelf, lambda query: [[("a", {"siteRef": site, "nextRef": Site(name="lost")})], []])
    (found,) = objects(await ask(bus, class_key=SHELVES))
    assert found.values == {
        "siteRef": {
            "_object_name": site_id.object_name,
            "_agent_name": site_id.agent_name,
            "_agent_epoch": site_id.agent_epoch,
        }
    }


async def test_objects_need_a_key(agent: Agent, bus: FakeBus) -> None:
    agent.provide(Belt, lambda query: [[Belt()]])
    (answer,) = await ask(bus, class_key=ClassKey(PACKAGE, "belt"))
    text = "the provider of Belt failed: objects of Belt have no index properties that could make a key"
    assert refusal(answer) == (7, text)


def test_a_class_has_one_provider() -> None:
    agent = Agent(FakeBus(), vendor="v", product="p")
    agent.provide(Shelf, Warehouse(1))
    with pytest.raises(CallerError, match="class Shelf has a provider already"):
        agent.provide(Shelf, Warehouse(2))


async def test_look_up_may_be_synchronous_and_give_rows(agent: Agent, bus: FakeBus) -> None:
    class Table:
        def pages(self, query: ProviderQuery) -> list[list[Item]]:
            raise AssertionError("only one is asked for")

        def find(self, key: str) -> Item | None:
            return (key, {"number": 4})

    agent.provide(Shelf, Table())
    assert [item.values for item in objects(await ask(bus, object_id=oid(agent, "k")))] == [{"number": 4}]


async def test_what_has_another_id_is_not_what_was_asked_for(agent: Agent, bus: FakeBus) -> None:
    class Wrong:
        def pages(self, query: ProviderQuery) -> list[list[Item]]:
            return []

        def find(self, key: str) -> ManagedObject | Awaitable[ManagedObject | None] | None:
            return Shelf(number=5)

    agent.provide(Shelf, Wrong())
    assert objects(await ask(bus, object_id=oid(agent, ",6"))) == []


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ([], set()),
        (["eq", "a", ["quote", "b"]], {"a"}),
        (["and", ["exists", "x"], ["not", ["re_match", ["quote", "t"], "y"]], ["or", ["true"]]], {"x", "y"}),
    ],
)
def test_names_that_a_predicate_uses(where: list[object], expected: set[str]) -> None:
    assert used_names(where) == expected
