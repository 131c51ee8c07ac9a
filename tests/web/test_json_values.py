"""QMF values as JSON keeps them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.console.aio import ObjectId
from qmf.errors import ConstraintError
from qmf.schema import TYPES
from qmf.web.json_values import MAX_SAFE, from_json, time_text, to_json


@given(st.integers(-(2**63), 2**64 - 1))
def test_no_integer_is_rounded(number: int) -> None:
    written = json.dumps(to_json(number))
    # What a program with doubles reads.
    read = json.loads(written, parse_int=lambda text: int(float(text)))
    assert from_json(read, TYPES["int64"], "x") == number


def test_integers_are_numbers_as_long_as_json_keeps_them() -> None:
    assert to_json(MAX_SAFE) == MAX_SAFE
    assert to_json(MAX_SAFE + 1) == "9007199254740992"
    assert to_json(-MAX_SAFE - 1) == "-9007199254740992"
    assert to_json(True) is True


@given(st.integers(1, 4 * 10**18))
def test_times_keep_their_nanoseconds(nanoseconds: int) -> None:
    text = time_text(nanoseconds)
    assert text is not None
    assert from_json(text, TYPES["absTime"], "x") == nanoseconds
    assert datetime.fromisoformat(text[:19] + "Z") == datetime.fromtimestamp(nanoseconds // 10**9, UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:01Z", 1),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:00:00-01:00", 0),
        ("1970-01-01t00:00:01.5z", 1.5),
    ],
)
def test_times_as_people_write_them(text: str, seconds: float) -> None:
    assert from_json(text, TYPES["absTime"], "x") == seconds * 10**9


def test_no_time() -> None:
    assert to_json(0, TYPES["absTime"]) is None
    assert time_text(2**63 - 1) == "2262-04-11T23:47:16.854775807Z"
    assert time_text(2**70) == str(2**70)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("absTime", "yesterday"),
        ("absTime", "2026-13-01T00:00:00Z"),
        ("double", "much"),
        ("uuid", "x"),
        ("objId", "queue"),
        ("objId", {"name": ""}),
    ],
)
def test_what_is_no_value_of_a_type_is_named(kind: str, value: object) -> None:
    with pytest.raises(ConstraintError, match="argument x"):
        from_json(value, TYPES[kind], "argument x")


def test_other_values() -> None:
    uuid = UUID(int=7)
    assert to_json({"a": [1.5, b"\x00", None, uuid]}) == {"a": [1.5, "AA==", None, str(uuid)]}
    assert to_json(float("nan")) == "NaN"
    assert to_json(float("-inf")) == "-Infinity"
    assert from_json("Infinity", TYPES["double"], "x") == float("inf")
    assert to_json("bad \udcff") == "bad \ufffd"
    assert from_json(str(uuid), TYPES["uuid"], "x") == uuid


def test_references_say_where_the_object_is() -> None:
    found = to_json(ObjectId("name", "agent"))
    assert found == {"name": "name", "agent": "agent", "href": "/api/v1/agents/agent/objects/name"}
    assert from_json(found, TYPES["objId"], "x") == ObjectId("name", "agent")
    assert to_json(ObjectId("name")) == {"name": "name", "agent": None}
