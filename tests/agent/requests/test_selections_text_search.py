"""Queries with a text: the objects whose names or values contain it."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest
from agent.asking import ask, objects
from agent.warehouse import PACKAGE, Shelf, Site
from support.fake_bus import FakeBus

from qmf.agent import Agent
from qmf.agent.providers import Page, Provider, ProviderQuery
from qmf.agent.requests.selections import ObjectSearch
from qmf.protocol import ObjectsResponse, OrderKey, TextSearch
from qmf.schema import ClassKey

SHELVES = ClassKey(PACKAGE, "shelf")


@pytest.fixture
def shelves(agent: Agent) -> list[Shelf]:
    site = Site(name="main")
    agent.add(site)
    found = []
    for number, label in enumerate(("Bread", None, "it's\\broad", "Straße", "ΣΑΣ")):
        shelf = Shelf(siteRef=site, number=number, label=label, options={"key": ["bread" if number == 1 else 77]})
        shelf.weight = number + 0.25
        shelf.token = UUID(int=number)
        shelf.in_.set(1000 * number)
        agent.add(shelf)
        found.append(shelf)
    return found


@pytest.mark.parametrize("row_form", [0, 1], ids=["objects", "rows"])
@pytest.mark.parametrize("limit", [0, 9])
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("bread", [0, 1]),
        ("BR", [0, 1, 2]),
        ("it's\\", [2]),
        ("STRASSE", []),
        ("straße", [3]),
        ("σας", [4]),
        ("3.25", [3]),
        ("8000", [4]),
        ("false", [0, 1, 2, 3, 4]),
        ("key", [0, 1, 2, 3, 4]),
        ("site:main", [0, 1, 2, 3, 4]),
        ("000000000002", [2]),
    ],
)
async def test_what_contains_the_text(
    agent: Agent, bus: FakeBus, shelves: list[Shelf], text: str, found: list[int], limit: int, row_form: int
) -> None:
    answers = await ask(bus, class_key=SHELVES, text=text, limit=limit, row_form=row_form)
    sent = objects(answers)
    assert [item.values["number"] for item in sent] == found
    content = answers[-1].content
    assert isinstance(content, ObjectsResponse)
    assert content.matched == (len(found) if limit else None)


async def test_the_first_of_them_that_match(agent: Agent, bus: FakeBus, shelves: list[Shelf]) -> None:
    where = ["gt", "number", ["quote", 0]]
    order = (OrderKey("number", descending=True),)
    answers = await ask(bus, class_key=SHELVES, text="77", where=where, order=order, limit=2, select=["number"])
    assert [dict(item.values) for item in objects(answers)] == [{"number": 4}, {"number": 3}]
    content = answers[-1].content
    assert isinstance(content, ObjectsResponse)
    assert content.matched == 3


class Rows(Provider):
    """Shelves that are made on demand."""

    def pages(self, query: ProviderQuery) -> Iterator[Page]:
        assert query.select == frozenset()
        yield [(f"Shelf-{at}", {"number": at, "label": f"l{at}"}) for at in range(12)]

    def find(self, key: str) -> None:
        return None


@pytest.mark.parametrize("limit", [0, 5])
async def test_objects_of_a_provider(agent: Agent, bus: FakeBus, limit: int) -> None:
    agent.provide(Shelf, Rows())
    answers = await ask(bus, class_key=SHELVES, text="L1", limit=limit, select=["number"])
    assert [dict(item.values) for item in objects(answers)] == [{"number": at} for at in (1, 10, 11)]


async def test_numbers_are_not_read_for_a_text_that_is_in_none(
    agent: Agent, shelves: list[Shelf], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []
    is_in_value = TextSearch.is_in_value

    def count(search: TextSearch, value: object) -> bool:
        read.append(value)
        return is_in_value(search, value)

    monkeypatch.setattr(TextSearch, "is_in_value", count)
    search = ObjectSearch("nowhere")
    assert not any(map(search.is_in, shelves))
    assert read == []  # not even those of texts, one by one
    assert [ObjectSearch("'").is_in(shelf) for shelf in shelves] == [False, False, True, False, False]
    assert not any(isinstance(value, (int, float)) for value in read)
