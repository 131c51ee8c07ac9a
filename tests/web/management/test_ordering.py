"""The order of objects, and where an object is in it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from qmf.web.management.ordering import ObjectOrdering

VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)


class Item(dict[str, Any]):
    """What an order needs of an object."""

    def __init__(self, number: int, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.agent, self.object_id = "a", SimpleNamespace(object_name=f"{number:03}")
        self.data = SimpleNamespace(values=values)


ITEMS: Any = st.lists(st.fixed_dictionaries({}, optional={"x": VALUES, "y": VALUES}), max_size=20).map(
    lambda found: [Item(number, values) for number, values in enumerate(found)]
)
ORDERS = st.sampled_from(["", "x", "-x", "x,-y", "-x,y", "y,x"]).map(ObjectOrdering.parse)


@given(ITEMS, ORDERS, st.integers(1, 25))
def test_the_first_ones_are_those_of_the_whole_order(items: Any, order: ObjectOrdering, count: int) -> None:
    assert list(order.first(items, count)) == sorted(items, key=order.key_of)[:count]


@given(ITEMS, ORDERS)
def test_a_place_survives_json(items: Any, order: ObjectOrdering) -> None:
    for item in items:
        assert order.key(json.loads(json.dumps(order.place(item)))) == order.key_of(item)


@given(st.lists(VALUES, min_size=2, max_size=10))
def test_numbers_then_texts_then_nothing_in_both_directions(values: list[Any]) -> None:
    def rank(value: Any) -> int:
        number = isinstance(value, (int, float)) and value == value
        return 0 if number else 1 if isinstance(value, str) else 2

    items: Any = [Item(number, {"x": value}) for number, value in enumerate(values)]
    for down in (False, True):
        order = ObjectOrdering.parse("-x" if down else "x")
        found = [item["x"] for item in order.first(items, len(items))]
        assert [rank(value) for value in found] == sorted(map(rank, values))
        for kind in (0, 1):
            same = [value for value in found if rank(value) == kind]
            assert same == sorted(same, reverse=down)


def test_reading() -> None:
    assert ObjectOrdering.parse(" name , -msgDepth,,-").fields == (("name", False), ("msgDepth", True))
    assert ObjectOrdering.parse(None) == ObjectOrdering()
