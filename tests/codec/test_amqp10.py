"""AMQP 1.0 values: a table of encodings in both directions, and invented values there and back."""

from __future__ import annotations

import enum
import math
from collections import OrderedDict, UserList
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from types import MappingProxyType
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import wire

from qmf.codec import (
    Char,
    Described,
    EncodeError,
    Float32,
    Int8,
    Int16,
    Int32,
    Int64,
    Symbol,
    Timestamp,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    amqp10,
)
from qmf.codec.limits import MAX_DEPTH
from qmf.errors import DecodeError

UUID_1 = UUID("00112233-4455-6677-8899-aabbccddeeff")


class Colour(enum.IntEnum):
    RED = 7


# value given, encoding, value decoded
TABLE: list[tuple[object, str, object]] = [
    (None, "40", None),
    (True, "41", True),
    (False, "42", False),
    (0, "5500", 0),
    (-128, "5580", -128),
    (127, "557f", 127),
    (128, "810000000000000080", 128),
    (-(2**63), "818000000000000000", -(2**63)),
    (2**63, "808000000000000000", 2**63),
    (2**64 - 1, "80ffffffffffffffff", 2**64 - 1),
    (Colour.RED, "5507", 7),
    (UInt8(255), "50ff", 255),
    (UInt16(65535), "60ffff", 65535),
    (UInt32(0), "43", 0),
    (UInt32(255), "52ff", 255),
    (UInt32(256), "7000000100", 256),
    (UInt64(0), "44", 0),
    (UInt64(255), "53ff", 255),
    (UInt64(256), "800000000000000100", 256),
    (Int8(-1), "51ff", -1),
    (Int16(-2), "61fffe", -2),
    (Int32(-1), "54ff", -1),
    (Int32(-129), "71ffffff7f", -129),
    (Int64(5), "5505", 5),
    (Int64(-(2**40)), "81ffffff0000000000", -(2**40)),
    (Timestamp(1), "830000000000000001", Timestamp(1)),
    (datetime(1970, 1, 1, 0, 0, 1, 1999, tzinfo=UTC), "8300000000000003e9", Timestamp(1001)),
    (datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), "830000000000000000", Timestamp(0)),
    (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), "83ffffffffffffffff", Timestamp(-1)),
    (Decimal(1), "9430400000000000000000000000000001", Decimal(1)),
    (1.5, "823ff8000000000000", 1.5),
    (math.inf, "827ff0000000000000", math.inf),
    (Float32(1.5), "723fc00000", 1.5),
    (Char("é"), "73000000e9", "é"),
    (UUID_1, "98" + UUID_1.hex, UUID_1),
    (b"", "a000", b""),
    (b"ab", "a0026162", b"ab"),
    (bytearray(b"ab"), "a0026162", b"ab"),
    (memoryview(b"ab"), "a0026162", b"ab"),
    (b"a" * 256, "b000000100" + "61" * 256, b"a" * 256),
    ("é", "a102c3a9", "é"),
    ("a\udcff", "a00261ff", b"a\xff"),
    ("a" * 255 + "\udcff", "b000000100" + "61" * 255 + "ff", b"a" * 255 + b"\xff"),
    ("a" * 255, "a1ff" + "61" * 255, "a" * 255),
    ("a" * 256, "b100000100" + "61" * 256, "a" * 256),
    (Symbol("ab"), "a3026162", "ab"),
    (Symbol("a" * 256), "b300000100" + "61" * 256, "a" * 256),
    ([], "45", []),
    ((1,), "c003015501", [1]),
    (UserList([1]), "c003015501", [1]),
    ([None] * 254, "c0fffe" + "40" * 254, [None] * 254),
    ([None] * 255, "d000000103000000ff" + "40" * 255, [None] * 255),
    ({}, "c10100", {}),
    ({"a": 1}, "c10602a101615501", {"a": 1}),
    (MappingProxyType({"a": 1}), "c10602a101615501", {"a": 1}),
    (OrderedDict(a=1), "c10602a101615501", {"a": 1}),
    ({1: [True]}, "c107025501c0020141", {1: [True]}),
    (Described(UInt64(0x77), "x"), "005377a10178", Described(0x77, "x")),
]


@pytest.mark.parametrize(
    ("given_value", "encoded", "decoded"), TABLE, ids=lambda item: repr(item)[:30].partition(" at ")[0]
)
def test_the_table_holds_in_both_directions(given_value: object, encoded: str, decoded: object) -> None:
    assert amqp10.encode(given_value).hex() == encoded
    value, end = amqp10.decode(bytes.fromhex(encoded))
    assert (value, type(value), end) == (decoded, type(decoded), len(encoded) // 2)


@pytest.mark.parametrize(
    ("encoded", "decoded"),
    [
        ("5600", False),
        ("5601", True),
        ("7000000005", 5),
        ("8100000000000000ff", 255),
        ("b00000000161", b"a"),
        ("b10000000161", "a"),
        ("b30000000161", "a"),
        ("d00000000400000000", []),
        ("d10000000400000000", {}),
        ("7432800001", Decimal(1)),
        ("8431c0000000000001", Decimal(1)),
        ("943040" + "00" * 13 + "01", Decimal(1)),
        ("e00301557f", [127]),
        ("e005035001020a", [1, 2, 10]),
        ("f0000000070000000250ff01", [255, 1]),
        ("e00800a103000000", None),
        ("e0060200a3016140", [Described("a", None)] * 2),
        ("e00702a3016102626a", ["a", "bj"]),
        ("e0050156010100", None),
        ("e0020040", []),
        ("e0020540", [None] * 5),
        ("e0021045", [[]] * 16),
        ("e00802e0035001020350", None),
        ("e00a02e0030150010301" + "5002", [[1], [2]]),
        ("c0040201" + "02", None),
    ],
)
def test_forms_that_we_do_not_send_are_read(encoded: str, decoded: object) -> None:
    data = bytes.fromhex(encoded)
    if decoded is None:
        with pytest.raises(DecodeError):
            amqp10.decode(data)
    else:
        assert amqp10.decode(data) == (decoded, len(data))


def test_decoding_starts_anywhere_and_says_where_it_ended() -> None:
    assert amqp10.decode(b"\x41\x55\x05\x42", 1) == (5, 3)


def test_empty_lists_of_an_array_are_not_the_same_list() -> None:
    value, _ = amqp10.decode(bytes.fromhex("e0020245"))
    assert isinstance(value, list)
    assert value == [[], []]
    assert value[0] is not value[1]


@pytest.mark.parametrize(
    ("value", "plain", "text"),
    [
        (b"ab", b"ab", "ab"),
        (b"a" * 300, b"a" * 300, "a" * 300),
        (b"\xff", b"\xff", b"\xff"),
        (b"\xff" * 300, b"\xff" * 300, b"\xff" * 300),
        ({b"k": [b"v"]}, {b"k": [b"v"]}, {"k": ["v"]}),
    ],
)
def test_binary_becomes_text_when_asked_and_possible(value: object, plain: object, text: object) -> None:
    encoded = amqp10.encode(value)
    assert amqp10.decode(encoded)[0] == plain
    assert amqp10.decode(encoded, text=True)[0] == text


@pytest.mark.parametrize(
    ("encoded", "words"),
    [
        ("", "inside the value"),
        ("a1", "inside the value"),
        ("a10261", "inside the value"),
        ("b1000000ff61", "inside the value"),
        ("81000000", "inside the value"),
        ("98", "inside the value"),
        ("3f", "unknown type code 0x3f at offset 0"),
        ("a101ff", "string at offset 2 is not UTF-8"),
        ("b100000001ff", "string at offset 5 is not UTF-8"),
        ("a301ff", "symbol at offset 2 is not ASCII"),
        ("5602", "not 0 or 1"),
        ("7300110000", "not a Unicode character"),
        ("730000d800", "not a Unicode character"),
        ("c00501", "past the end"),
        ("c000", "inside the value"),
        ("c00000", "no room for its count"),
        ("d0000000030000000041", "no room for its count"),
        ("c002ff41", "255 list items in 1 bytes"),
        ("d000000005ffffffff41", "4294967295 list items"),
        ("c102ff41", "255 map items in 1 bytes"),
        ("c103014141", "key without a value"),
        ("c1030245" + "41", "a map or list as key"),
        ("c10502c0020141" + "41", "end"),
        ("c0020041", "should end at offset 4 end at 3"),
        ("c0020150" + "01", "should end"),
        ("f00000000500" + "ffffff" + "40", "elements of no bytes"),
        ("f000000005ffffffff40", "claims 4294967295 elements of no bytes"),
        ("f000000005ffffffff45", "claims 4294967295 elements of no bytes"),
        ("f000000005ffffffff50", "4294967295 array elements in 0 bytes"),
        ("e00100", "no element type"),
        ("e00801" + "00a3016100a30162" + "40", "described twice"),
        ("00" * 40 + "4040", "inside each other"),
    ],
)
def test_broken_values_say_what_and_where(encoded: str, words: str) -> None:
    with pytest.raises(DecodeError, match=words):
        amqp10.decode(bytes.fromhex(encoded))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (2**64, "out of the range of long and ulong"),
        (-(2**63) - 1, "out of the range"),
        (10**5000, "an integer of 16610 bits"),
        (UInt8(256), "256 is out of the range of ubyte"),
        (UInt8(-1), "-1 is out of the range of ubyte"),
        (UInt16(65536), "ushort"),
        (UInt32(2**32), "uint"),
        (UInt32(-1), "uint"),
        (UInt64(-1), "ulong"),
        (UInt64(2**64), "ulong"),
        (Int8(128), "byte"),
        (Int16(-32769), "short"),
        (Int32(2**31), "int"),
        (Int64(2**63), "long"),
        (Timestamp(2**63), "timestamp"),
        (datetime(2026, 1, 1), "a time needs a time zone: 2026-01-01T00:00:00 has none"),
        (Decimal(10**34 + 1), "up to 34 digits"),
        (Float32(1e300), "float"),
        (Char("ab"), "one character"),
        (Char("\ud800"), "Unicode"),
        ("\ud800", "lone surrogate"),
        ("a" * 300 + "\ud800", "lone surrogate"),
        (Symbol("é"), "ASCII"),
        (object(), "cannot encode a object"),
        ({1, 2}, "cannot encode a set"),
        ([object()], "cannot encode"),
        ({"a": object()}, "cannot encode"),
    ],
    ids=lambda item: repr(type(item)),
)
def test_values_that_do_not_fit_are_refused(value: object, words: str) -> None:
    with pytest.raises(EncodeError, match=words):
        amqp10.encode(value)


def nested(depth: int, kind: str) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value] if kind == "list" else {"a": value} if kind == "map" else Described("a", value)
    return value


@pytest.mark.parametrize("kind", ["list", "map", "described"])
def test_both_directions_have_the_same_depth(kind: str) -> None:
    deepest = nested(MAX_DEPTH, kind)
    encoded = amqp10.encode(deepest)
    assert amqp10.decode(encoded) == (deepest, len(encoded))
    with pytest.raises(EncodeError, match=f"more than {MAX_DEPTH}"):
        amqp10.encode(nested(MAX_DEPTH + 1, kind))
    wrapped = b"\xd0" + (len(encoded) + 4).to_bytes(4, "big") + b"\0\0\0\1" + encoded
    with pytest.raises(DecodeError, match=f"more than {MAX_DEPTH}"):
        amqp10.decode(wrapped)


def test_a_value_inside_itself_is_refused() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(EncodeError, match="inside each other"):
        amqp10.encode(value)


@pytest.mark.slow
@given(wire.values())
def test_what_is_encoded_comes_back(value: object) -> None:
    encoded = amqp10.encode(value)
    decoded, end = amqp10.decode(encoded)
    assert end == len(encoded)
    assert decoded == value
    assert repr(decoded) == repr(value)  # 1, 1.0 and True are equal, but not the same


@pytest.mark.slow
@given(st.dictionaries(st.integers(-(2**63), 2**64 - 1) | st.uuids() | wire.TEXTS, wire.SCALARS, max_size=32))
def test_keys_may_be_of_any_type(value: dict[object, object]) -> None:
    assert amqp10.decode(amqp10.encode(value))[0] == value
