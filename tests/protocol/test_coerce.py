"""Values between programs and the wire."""

from __future__ import annotations

import math
import struct
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.codec import Float32, Int64, UInt8, UInt32, UInt64
from qmf.errors import ConstraintError, ProtocolError
from qmf.protocol import ObjectId, from_wire, to_wire
from qmf.schema.types import TYPES

ID = UUID(bytes=b"0123456789abcdef")


@given(st.floats(width=32, allow_nan=False))
def test_a_float_comes_as_the_shortest_decimal_that_identifies_it(value: float) -> None:
    found = from_wire(TYPES["float"], value)
    assert isinstance(found, float)
    assert struct.pack("f", found) == struct.pack("f", value)
    texts = [repr(float(f"{value:.{digits}g}")) for digits in range(1, 10)]
    assert len(repr(found)) == min(
        len(text) for text in texts if struct.pack("f", float(text)) == struct.pack("f", value)
    )


@pytest.mark.parametrize("written", [15.3, 18.4, 0.1, 1e-45, 3.4028235e38, -0.25, 51544392.0, 0.0, float("inf")])
def test_a_float_comes_as_it_was_written(written: float) -> None:
    (sent,) = struct.unpack("f", struct.pack("f", written))
    found = from_wire(TYPES["float"], sent)
    assert found == written


def test_a_float_that_is_compared_or_sent_again_stays_exact() -> None:
    (sent,) = struct.unpack("f", struct.pack("f", 15.3))
    assert from_wire(TYPES["float"], sent, exact=True) == sent != 15.3


def test_a_float_of_an_agent_that_sends_more_than_32_bits_stays() -> None:
    assert from_wire(TYPES["float"], 15.3) == 15.3
    assert from_wire(TYPES["float"], 1e300) == 1e300
    assert math.isnan(from_wire(TYPES["float"], math.nan))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("type_name", "value", "expected"),
    [
        ("uint8", 5, 5),
        ("uint8", 5.0, 5),
        ("uint8", 300, 300),
        ("hilo32", 5, 5),
        ("absTime", 5, 5),
        ("deltaTime", 5, 5),
        ("mmaTime", 0, 0),
        ("double", 5, 5.0),
        ("float", 1.5, 1.5),
        ("bool", True, True),
        ("bool", 1, True),
        ("bool", 0, False),
        ("sstr", "a", "a"),
        ("lstr", b"\xffa", "\udcffa"),
        ("uuid", ID, ID),
        ("uuid", str(ID), ID),
        ("uuid", b"0123456789abcdef", ID),
        ("uuid", "0123456789abcdef", ID),
        ("uuid", "\udcff" * 16, UUID(int=2**128 - 1)),
        ("map", {"a": 1}, {"a": 1}),
        ("list", [1], [1]),
        ("objId", {"_object_name": "a"}, ObjectId("a")),
        ("objId", {"_object_name": "a", "_agent_name": "n", "_agent_epoch": 3}, ObjectId("a", "n", 3)),
        ("objId", {"_object_name": ""}, None),
        ("objId", {}, None),
        ("objId", ObjectId("a"), ObjectId("a")),
        ("uint8", None, None),
        ("lstr", None, None),
    ],
)
def test_from_wire(type_name: str, value: object, expected: object) -> None:
    result = from_wire(TYPES[type_name], value)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("type_name", "value", "words"),
    [
        ("uint8", "5", "value of type uint8 is a string, not a value of type uint8"),
        ("uuid", "\udcff", "value of type uuid is a string, not a uuid"),
        ("uuid", "\ud800" * 16, "value of type uuid is a string, not a uuid"),
        ("uint8", True, "is a boolean"),
        ("count32", 1.5, "value of type uint32 is a float"),
        ("uint8", math.nan, "is a float"),
        ("uint8", math.inf, "is a float"),
        ("double", "1", "is a string"),
        ("double", True, "is a boolean"),
        ("double", 10**400, "is an integer"),
        ("bool", 2, "is an integer"),
        ("bool", "true", "is a string"),
        ("sstr", 5, "is an integer"),
        ("uuid", "abc", "is a string, not a uuid"),
        ("uuid", b"\xff", "not a uuid"),
        ("uuid", 5, "is an integer"),
        ("map", [], "is a list"),
        ("map", {1: 2}, "keys that are no strings"),
        ("list", {}, "is a map"),
        ("objId", "a", "is a string"),
        ("objId", {"_agent_name": "n"}, "_object_name is missing"),
    ],
)
def test_from_wire_refuses_other_kinds(type_name: str, value: object, words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        from_wire(TYPES[type_name], value)


@pytest.mark.parametrize(
    ("type_name", "value", "expected", "kind"),
    [
        ("uint8", 5, 5, UInt8),
        ("hilo32", 5, 5, UInt32),
        ("mmaTime", 5, 5, UInt64),
        ("absTime", -5, -5, Int64),
        ("float", 1, 1.0, Float32),
        ("double", 1, 1.0, float),
        ("lstr", "é", "é", str),
        ("bool", False, False, bool),
        ("objId", ObjectId("a"), ObjectId("a"), ObjectId),
        ("objId", None, None, type(None)),
        ("map", {"a": 1}, {"a": 1}, dict),
    ],
)
def test_to_wire(type_name: str, value: object, expected: object, kind: type) -> None:
    result = to_wire(TYPES[type_name], value, "thing.property")
    assert result == expected
    assert type(result) is kind


@pytest.mark.parametrize(
    ("type_name", "value"), [("uint8", 256), ("uint8", "5"), ("hilo8", 256), ("bool", 1), ("sstr", "a" * 256)]
)
def test_to_wire_checks(type_name: str, value: object) -> None:
    with pytest.raises(ConstraintError, match=r"thing\.property"):
        to_wire(TYPES[type_name], value, "thing.property")
