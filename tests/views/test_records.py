"""Values as JSON: what all faces have alike, and what a form decides."""

from __future__ import annotations

import json
import math
from collections import UserDict
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.protocol import ObjectId
from qmf.views.records import JsonForm, collection_text

SHOUTING = JsonForm(
    text=str.upper,
    integer=lambda value: f"{value} items",
    special=str,
    binary=bytes.hex,
    reference=lambda value: [value.object_name],
    other=lambda value: f"a {type(value).__name__}",
)
MANGO = UUID("12345678-1234-5678-1234-567812345678")

#: What JSON has itself.
plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(plain_values)
def test_what_json_has_stays_as_it_is(value: object) -> None:
    assert JsonForm().plain(value) == value


@given(plain_values)
def test_every_form_makes_what_json_can_write(value: object) -> None:
    found = SHOUTING.plain([value, math.nan, b"\xff", MANGO, ObjectId("a", "b")])

    assert json.loads(json.dumps(found, allow_nan=False)) == found


@pytest.mark.parametrize(
    ("value", "plain", "loud"),
    [
        ("rye", "rye", "RYE"),
        (7, 7, "7 items"),
        (True, True, True),
        (None, None, None),
        (1.5, 1.5, 1.5),
        (math.inf, None, "inf"),
        (b"\x01\xff", "b'\\x01\\xff'", "01ff"),
        (bytearray(b"\x01"), "b'\\x01'", "01"),
        (ObjectId("queue", "broker"), str(ObjectId("queue", "broker")), ["queue"]),
        (MANGO, str(MANGO), "A UUID"),
        ((1, "a"), [1, "a"], ["1 items", "A"]),
        (UserDict({1: b"\x02"}), {"1": "b'\\x02'"}, {"1": "02"}),
    ],
)
def test_a_form_decides_about_what_json_lacks(value: object, plain: object, loud: object) -> None:
    assert JsonForm().plain(value) == plain
    assert SHOUTING.plain(value) == loud


def test_instants_have_nine_digits_or_are_numbers() -> None:
    beyond = 2**64 - 1

    assert JsonForm().instant(0) is None
    assert JsonForm().instant(1) == "1970-01-01T00:00:00.000000001Z"
    assert JsonForm().instant(10**15 * 10**6) == 10**21
    assert SHOUTING.instant(10**21) == f"{10**21} items"
    assert JsonForm().instant(beyond) == "2554-07-21T23:34:33.709551615Z"


def test_collections_are_one_line_for_people() -> None:
    assert collection_text({"name": "Käse", "id": MANGO, "lines": ["a\nb"]}, "...") == (
        f'{{"name": "Käse", "id": "{MANGO}", "lines": ["a\\nb"]}}'
    )


def test_long_collections_are_cut() -> None:
    found = collection_text(["x" * 5000], "…")

    assert len(found) == 4001
    assert found.endswith("x…")
