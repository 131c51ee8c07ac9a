"""QueryHandler: by class, by id, with predicates, in parts; schemas."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import attrs
import pytest
from agent.object_states import changed, store_unchecked
from agent.warehouse import BELT, PACKAGE, SHELF, SITE, SPILL, Belt, Shelf, ShelfSpill, Site
from support.fake_bus import FakeBus
from support.waiting import WAIT_LIMIT, until

from qmf.agent import Agent, ObjectId
from qmf.agent.layout.object_state import object_id
from qmf.agent.sending.message_batcher import MAX_BYTES
from qmf.errors import DisconnectedError
from qmf.protocol import (
    Envelope,
    ExceptionResponse,
    ObjectData,
    ObjectsResponse,
    QueryRequest,
    SchemaIdsResponse,
    SchemasResponse,
    What,
    decode,
    encode,
)
from qmf.schema import ClassKey

SHELVES = ClassKey(PACKAGE, "shelf")


def objects(answers: Sequence[Envelope]) -> list[ObjectData]:
    found: list[ObjectData] = []
    for answer in answers:
        assert isinstance(answer.content, ObjectsResponse), answer
        found += answer.content.objects
    return found


def numbers(answers: Sequence[Envelope]) -> list[object]:
    return [item.values["number"] for item in objects(answers)]


async def ask(bus: FakeBus, **query: object) -> list[Envelope]:
    return await bus.request(QueryRequest(**{"what": What.OBJECT, **query}))  # type: ignore[arg-type]


@pytest.fixture
def shelves(agent: Agent) -> list[Shelf]:
    shelves = [Shelf(number=number, label="even" if number % 2 == 0 else None) for number in range(5)]
    for shelf in shelves:
        agent.add(shelf)
    return shelves


async def test_an_answer_is_sent_to_the_reply_address(agent: Agent, bus: FakeBus, shelves: list[Shelf]) -> None:
    (answer,) = await ask(bus, class_key=SHELVES)
    assert (answer.to, answer.subject, answer.correlation_id) == ("qmf.default.topic", "console-1", "7")
    assert (answer.agent, answer.partial) == ("example.org:stock:one", False)
    data = objects([answer])[2]
    assert data.object_id == ObjectId("org.example.stock:shelf:,2", "example.org:stock:one", 3)
    assert data.class_key == SHELF.key
    assert set(data.values) == set(shelves[2]._qmf_values())
    assert data.create_ts == data.update_ts > 0


@pytest.mark.parametrize(
    ("key", "count"),
    [
        (SHELVES, 5),
        (ClassKey("", "Shelf"), 5),
        (attrs.evolve(SHELF.key, hash=BELT.hash), 5),
        (ClassKey("other", "shelf"), 0),
        (ClassKey(PACKAGE, "belt"), 0),
    ],
)
async def test_by_class(agent: Agent, bus: FakeBus, shelves: list[Shelf], key: ClassKey, count: int) -> None:
    (answer,) = await ask(bus, class_key=key)
    assert len(objects([answer])) == count


@pytest.mark.parametrize(
    ("object_id", "found"),
    [
        (ObjectId("org.example.stock:shelf:,3", "example.org:stock:one", 3), [3]),
        (ObjectId("org.example.stock:shelf:,3"), [3]),
        (ObjectId("org.example.stock:shelf:,3", "example.org:stock:two"), []),
        (ObjectId("org.example.stock:shelf:,3", None, 4), []),
        (ObjectId("nobody"), []),
    ],
)
async def test_by_id_even_if_a_class_is_given(
    agent: Agent, bus: FakeBus, shelves: list[Shelf], object_id: ObjectId, found: list[int]
) -> None:
    assert numbers(await ask(bus, object_id=object_id, class_key=ClassKey(PACKAGE, "belt"))) == found


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (["eq", "number", ["quote", 3]], [3]),
        (["and", ["ge", "number", ["quote", 1]], ["exists", "label"]], [2, 4]),
        (["re_match", "label", ["quote", "^ev"]], [0, 2, 4]),
        (["false"], []),
    ],
)
async def test_predicates(
    agent: Agent, bus: FakeBus, shelves: list[Shelf], where: list[object], found: list[int]
) -> None:
    assert numbers(await ask(bus, class_key=SHELVES, where=where)) == found


@pytest.mark.parametrize(
    ("select", "names"),
    [
        (["number", "usersHigh", "nothing"], {"number", "usersHigh"}),
        (["users"], {"users"}),
        (["wait"], {"waitCount", "waitMin", "waitMax", "waitAvg"}),
        (["label"], set()),
    ],
)
async def test_select_leaves_the_ids(
    agent: Agent, bus: FakeBus, shelves: list[Shelf], select: list[str], names: set[str]
) -> None:
    (data,) = objects(await ask(bus, object_id=object_id(shelves[1]), select=select))
    assert set(data.values) == names
    assert (data.object_id, data.class_key) == (object_id(shelves[1]), SHELF.key)


async def test_object_ids_come_without_values(agent: Agent, bus: FakeBus, shelves: list[Shelf]) -> None:
    where = ["gt", "number", ["quote", 2]]
    for query, count in (({}, 5), ({"where": where}, 2)):
        found = objects(await ask(bus, what=What.OBJECT_ID, class_key=SHELVES, **query))
        assert [item.values for item in found] == [{}] * count
        assert {item.object_id for item in found} <= {object_id(shelf) for shelf in shelves}


async def test_large_answers_come_in_parts(agent: Agent, bus: FakeBus) -> None:
    for number in range(250):
        agent.add(Site(name=str(number)))
    answers = await ask(bus, class_key=ClassKey(PACKAGE, "site"))
    assert [len(objects([answer])) for answer in answers] == [100, 100, 50]
    assert [answer.partial for answer in answers] == [True, True, False]
    assert [item.values["name"] for item in objects(answers)] == [str(number) for number in range(250)]


async def test_an_exact_hundred_is_one_part(agent: Agent, bus: FakeBus) -> None:
    for number in range(100):
        agent.add(Site(name=str(number)))
    (answer,) = await ask(bus, class_key=ClassKey(PACKAGE, "site"))
    assert not answer.partial


async def test_parts_are_bounded_in_bytes(agent: Agent, bus: FakeBus) -> None:
    for number in range(60):
        agent.add(Shelf(number=number, class_="x" * 7000))
    answers = await ask(bus, class_key=SHELVES)
    assert max(len(data) for data in bus.sent) <= MAX_BYTES
    assert [answer.partial for answer in answers] == [True] * (len(answers) - 1) + [False]
    assert numbers(answers) == list(range(60))


async def test_the_last_part_comes_even_if_its_object_cannot_be_encoded(agent: Agent, bus: FakeBus) -> None:
    for number in range(101):
        agent.add(Shelf(number=number))
    store_unchecked(agent.objects[-1], "tags", [object()])
    answers = await ask(bus, class_key=SHELVES)
    assert answers[-1].partial is False
    assert len(objects(answers)) == 100


async def test_a_broken_connection_ends_the_answer(agent: Agent, bus: FakeBus) -> None:
    for number in range(250):
        agent.add(Site(name=str(number)))
    bus.failures = [None, DisconnectedError("fake://", "gone")]
    answers = await ask(bus, class_key=ClassKey(PACKAGE, "site"))
    assert len(answers) == 1
    assert agent.statistics.answers_lost == 1


async def test_a_query_takes_nothing_from_the_publication(agent: Agent, bus: FakeBus, shelves: list[Shelf]) -> None:
    shelves[0].users.inc(5)
    shelves[0].users.set(1)
    for _ in range(2):
        data = objects(await ask(bus, object_id=object_id(shelves[0])))[0]
        assert (data.values["usersHigh"], data.values["usersLow"]) == (5, 0)
    assert changed(shelves[0])


@pytest.mark.slow
async def test_ten_thousand_objects_do_not_hold_up_the_loop(agent: Agent, bus: FakeBus) -> None:
    for number in range(10_000):
        agent.add(Site(name=str(number)))
    bus.deliver(encode(Envelope(content=QueryRequest(what=What.OBJECT, class_key=SITE.key), reply_to="q")), "console.#")
    turns = 0
    while bus.undone:
        await asyncio.sleep(0)
        turns += 1
    assert len(bus.sent) == 100
    assert turns >= 100


async def test_objects_removed_meanwhile_are_left_out(agent: Agent, bus: FakeBus) -> None:
    sites = [Site(name=str(number)) for number in range(250)]
    for site in sites:
        agent.add(site)
    bus.deliver(encode(Envelope(content=QueryRequest(what=What.OBJECT, class_key=SITE.key), reply_to="q")), "console.#")
    async with asyncio.timeout(WAIT_LIMIT):
        while not bus.sent:  # turn by turn: the second message follows soon
            await asyncio.sleep(0)
    for site in sites[200:]:
        agent.remove(site)
    await until(lambda: bus.undone == 0)
    assert len(objects([item for item in map(decode, bus.sent) if isinstance(item, Envelope)])) == 200


async def test_schema_ids(agent: Agent, bus: FakeBus) -> None:
    agent.register(ShelfSpill, Belt, SITE)
    (answer,) = await ask(bus, what=What.SCHEMA_ID)
    assert isinstance(answer.content, SchemaIdsResponse)
    assert list(answer.content.keys) == [BELT.key, SPILL.key, SITE.key]


@pytest.mark.parametrize(
    ("key", "found"),
    [
        (SITE.key, SITE),
        (SPILL.key, SPILL),
        (ClassKey(PACKAGE, "shelfSpill"), SPILL),
        (ClassKey("", "Site"), SITE),
        (attrs.evolve(SITE.key, hash=SPILL.hash), None),
        (ClassKey(PACKAGE, "nothing"), None),
    ],
)
async def test_schemas(agent: Agent, bus: FakeBus, key: ClassKey, found: object) -> None:
    agent.register(ShelfSpill, Belt, Site)
    (answer,) = await ask(bus, what=What.SCHEMA, class_key=key)
    assert isinstance(answer.content, SchemasResponse)
    assert [schema.key for schema in answer.content.schemas] == ([] if found is None else [found.key])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"what": What.SCHEMA}, "a query for SCHEMA must name a class in '_schema_id'"),
        ({"what": What.OBJECT}, "a query for OBJECT must have an '_object_id' or a '_schema_id'"),
        ({"what": What.OBJECT_ID}, "a query for OBJECT_ID must have an '_object_id' or a '_schema_id'"),
        ({"what": What.OBJECT, "class_key": SHELVES, "where": ["like", "a", "b"]}, "invalid predicate: "),
    ],
)
async def test_invalid_queries(agent: Agent, bus: FakeBus, query: dict[str, object], text: str) -> None:
    (answer,) = await ask(bus, **query)
    assert isinstance(answer.content, ExceptionResponse)
    assert answer.content.code == 1
    assert answer.content.text.startswith(text)
    assert answer.correlation_id == "7"
    assert agent.statistics.queries == 1
