"""Values written as text."""

from __future__ import annotations

import math
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.schemas import DIRECT, default_text, values

from qmf.schema import TYPES, QmfType, parse_value

UUID_TEXT = "01234567-89ab-cdef-0123-456789ABCDEF"

GOOD: list[tuple[str, str, object]] = [
    ("uint8", "7", 7),
    ("uint8", "300", 300),  # ranges are the business of check_value
    ("int32", "-7", -7),
    ("int32", "+7", 7),
    ("uint32", "0xFFFFFFFF", 4294967295),
    ("int64", "-0x10", -16),
    ("count64", "007", 7),
    ("bool", "true", True),
    ("bool", "YES", True),
    ("bool", "y", True),
    ("bool", "1", True),
    ("bool", "False", False),
    ("bool", "no", False),
    ("bool", "n", False),
    ("bool", "0", False),
    ("double", "1.5", 1.5),
    ("double", ".5e-1", 0.05),
    ("float", "3", 3.0),
    ("double", "-inf", -math.inf),
    ("sstr", " as it is ", " as it is "),
    ("lstr", "", ""),
    ("uuid", UUID_TEXT, UUID(UUID_TEXT)),
    ("map", ' {"a": {"b": [1, 2.5, null, true]}} ', {"a": {"b": [1, 2.5, None, True]}}),
    ("list", "[]", []),
]

BAD = [
    *[("uint8", text, "not a whole number") for text in ("", " 7", "7 ", "1_0", "0x", "1.0", "٣", "x", "9" * 5000)],
    *[("bool", text, "neither true nor false") for text in ("", "2", "on", "tru")],
    *[("double", text, "not a number") for text in ("", "x", "1_0", "infinity", "0x1", "٣")],
    ("double", "1e999", "too large for a number"),
    *[
        ("uuid", text, "not a uuid")
        for text in ("", "1", UUID_TEXT + "0", "{" + UUID_TEXT + "}", UUID_TEXT.replace("-", ""))
    ],
    *[("map", text, "not JSON") for text in ("", "{", "{'a': 1}", "[" * 100_000)],
    *[("list", text, "not JSON") for text in ("[NaN]", "[-Infinity]", "[1e999]")],
    *[("map", text, "not a JSON object") for text in ("[]", "1", "null")],
    ("list", "{}", "not a JSON array"),
    ("objId", "x", "an object id cannot be written as text"),
]


@pytest.mark.parametrize(("type_name", "text", "value"), GOOD)
def test_texts_that_mean_something(type_name: str, text: str, value: object) -> None:
    result = parse_value(TYPES[type_name], text)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(("type_name", "text", "reason"), BAD)
def test_texts_that_do_not(type_name: str, text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{reason}$"):
        parse_value(TYPES[type_name], text)


def test_nan_can_be_written() -> None:
    result = parse_value(TYPES["double"], "nan")
    assert isinstance(result, float)
    assert math.isnan(result)


@given(data=st.data(), type=st.sampled_from([item for item in DIRECT if item.name != "objId"]))
def test_what_is_written_reads_back(data: st.DataObject, type: QmfType) -> None:
    value = data.draw(values(type))
    text = default_text(value)
    assert text is not None
    assert parse_value(type, text) == value
