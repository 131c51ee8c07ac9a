"""Queries with a limit: the first objects in an order, and how many match in all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
from agent.asking import ask, objects
from agent.warehouse import PACKAGE, Shelf
from support.fake_bus import FakeBus

from qmf.agent import Agent
from qmf.agent.layout import object_state
from qmf.agent.providers import Page, Provider, ProviderQuery
from qmf.agent.requests import first_objects
from qmf.protocol import Envelope, ObjectsResponse, OrderKey, place_of
from qmf.schema import ClassKey

SHELVES = ClassKey(PACKAGE, "shelf")
WEIGHTS = (3.0, 1.0, float("nan"), 2.0, 10.0)


def numbers(answers: Sequence[Envelope]) -> list[object]:
    return [item.values["number"] for item in objects(answers)]


def matched(answers: Sequence[Envelope]) -> list[int | None]:
    contents = [answer.content for answer in answers]
    return [content.matched for content in contents if isinstance(content, ObjectsResponse)]


def shelf(agent: Agent, number: int, weight: float, label: str | None = None) -> Shelf:
    found = Shelf(number=number, label=label)
    found.weight = weight
    agent.add(found)
    return found


@pytest.fixture
def shelves(agent: Agent) -> list[Shelf]:
    labels = ("b10", "B9", None, "a", "b9")
    return [shelf(agent, at, weight, label) for at, (label, weight) in enumerate(zip(labels, WEIGHTS, strict=True))]


@pytest.mark.parametrize("row_form", [0, 1], ids=["objects", "rows"])
@pytest.mark.parametrize(
    ("order", "found"),
    [
        ((), [0, 1, 2]),
        ((OrderKey("weight"),), [1, 3, 0]),
        ((OrderKey("weight", descending=True),), [4, 0, 3]),
        ((OrderKey("number", descending=True),), [4, 3, 2]),
        ((OrderKey("label"),), [1, 3, 0]),
        ((OrderKey("label", natural=True, any_case=True),), [3, 1, 4]),
        ((OrderKey("label", descending=True, natural=True, any_case=True),), [0, 1, 4]),
        ((OrderKey("open"), OrderKey(OrderKey.OBJECT_NAME, descending=True)), [4, 3, 2]),
        ((OrderKey("nothing"),), [0, 1, 2]),
    ],
    ids=[
        "none",
        "number",
        "descending",
        "property",
        "text",
        "natural",
        "natural and descending",
        "two keys",
        "unknown",
    ],
)
async def test_the_first_ones_in_an_order(
    agent: Agent, bus: FakeBus, shelves: list[Shelf], order: Sequence[OrderKey], found: list[int], row_form: int
) -> None:
    answers = await ask(bus, class_key=SHELVES, limit=3, order=order, row_form=row_form)
    assert (numbers(answers), matched(answers)) == (found, [5])


async def test_what_lacks_the_value_comes_last_in_both_directions(
    agent: Agent, bus: FakeBus, shelves: list[Shelf]
) -> None:
    for descending in (False, True):
        for name in ("label", "weight"):
            order = (OrderKey(name, descending=descending),)
            assert numbers(await ask(bus, class_key=SHELVES, limit=5, order=order))[-1] == 2


async def test_with_a_predicate_those_that_match_are_counted(agent: Agent, bus: FakeBus, shelves: list[Shelf]) -> None:
    answers = await ask(
        bus,
        class_key=SHELVES,
        where=["gt", "number", ["quote", 1]],
        select=["number"],
        limit=1,
        order=(OrderKey("weight"),),
    )
    assert [dict(item.values) for item in objects(answers)] == [{"number": 3}]
    assert matched(answers) == [3]


async def test_without_a_limit_nothing_is_said_of_a_number(agent: Agent, bus: FakeBus, shelves: list[Shelf]) -> None:
    answers = await ask(bus, class_key=SHELVES)
    assert (numbers(answers), matched(answers)) == ([0, 1, 2, 3, 4], [None])


async def test_only_the_last_part_has_the_number(agent: Agent, bus: FakeBus) -> None:
    for number in range(250):
        agent.add(Shelf(number=number))
    answers = await ask(bus, class_key=SHELVES, limit=240)
    assert numbers(answers) == list(range(240))
    *others, last = matched(answers)
    assert last == 250
    assert others == [None] * (len(answers) - 1)
    assert len(answers) > 2


@pytest.mark.parametrize("values", [{}, {"weight": 1.0}], ids=["counted", "compared"])
async def test_of_many_objects_the_first_are_kept(
    agent: Agent, bus: FakeBus, monkeypatch: pytest.MonkeyPatch, values: dict[str, float]
) -> None:
    monkeypatch.setattr(first_objects, "_SPARE", 10)
    for number in range(300):
        shelf(agent, number, float(number * 7 % 300))
    order = (OrderKey("weight"),) if values else ()
    answers = await ask(bus, class_key=SHELVES, limit=4, order=order)
    assert matched(answers) == [300]
    found = [item.values["weight" if values else "number"] for item in objects(answers)]
    assert found == [0, 1, 2, 3]


@pytest.mark.parametrize("alike", [1, 3, 100], ids=["different", "some alike", "alike"])
async def test_the_second_key_is_looked_at_where_the_first_is_equal(
    agent: Agent, bus: FakeBus, monkeypatch: pytest.MonkeyPatch, alike: int
) -> None:
    monkeypatch.setattr(first_objects, "_SPARE", 10)
    looked: list[object] = []

    def count(order: Sequence[OrderKey], value_of: Callable[[str], object]) -> object:
        looked.append(order)
        return place_of(order, value_of)

    monkeypatch.setattr(first_objects, "place_of", count)
    made = [shelf(agent, at, float(at // alike)) for at in range(100)]
    order = (OrderKey("weight", descending=True), OrderKey("number", descending=True))
    found = numbers(await ask(bus, class_key=SHELVES, limit=4, order=order))
    assert found == [item.number for item in sorted(made, key=lambda item: (-item.weight, -item.number))][:4]
    if alike == 1:  # for the last of the first ones, whenever some are left out, and for those that are sent
        assert len(looked) < 20


async def test_values_of_objects_that_are_not_sent_are_not_encoded(
    agent: Agent, bus: FakeBus, shelves: list[Shelf], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded = []
    kept = object_state.kept_encoding

    def count(obj: Shelf, *args: object) -> object:
        encoded.append(obj.number)
        return kept(obj, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(object_state, "kept_encoding", count)
    await ask(bus, class_key=SHELVES, limit=2, row_form=1, order=(OrderKey("weight"),))
    assert encoded == [1, 3]


class Rows(Provider):
    """Shelves that are made on demand."""

    def __init__(self) -> None:
        self.selected: object = None

    def pages(self, query: ProviderQuery) -> Iterator[Page]:
        self.selected = query.select
        for first in (0, 3):
            yield [(str(at), {"number": at, "weight": WEIGHTS[at % 5]}) for at in range(first, first + 3)]

    def find(self, key: str) -> None:
        return None


async def test_objects_of_a_provider(agent: Agent, bus: FakeBus) -> None:
    rows = Rows()
    agent.provide(Shelf, rows)
    answers = await ask(
        bus, class_key=SHELVES, limit=2, order=(OrderKey("weight", descending=True),), select=["number"]
    )
    assert (numbers(answers), matched(answers)) == ([4, 0], [6])
    assert rows.selected == {"number", "weight"}
