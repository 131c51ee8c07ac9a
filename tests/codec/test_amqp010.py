"""AMQP 0-10 maps and lists, and the fields around them."""

from __future__ import annotations

from collections import OrderedDict, UserList
from collections.abc import Callable
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
    amqp010,
)
from qmf.codec.amqp010 import Reader, Writer
from qmf.codec.limits import MAX_DEPTH
from qmf.errors import DecodeError

UUID_1 = UUID("00112233-4455-6677-8899-aabbccddeeff")

# value given, its code and bytes, value decoded
TABLE: list[tuple[object, str, object]] = [
    (None, "f0", None),
    (True, "0801", True),
    (False, "0800", False),
    (5, "310000000000000005", 5),
    (2**63, "328000000000000000", 2**63),
    (UInt8(255), "02ff", 255),
    (UInt16(256), "120100", 256),
    (UInt32(1), "2200000001", 1),
    (UInt64(1), "320000000000000001", 1),
    (Int8(-1), "01ff", -1),
    (Int16(-1), "11ffff", -1),
    (Int32(-1), "21ffffffff", -1),
    (Int64(-1), "31ffffffffffffffff", -1),
    (Timestamp(7), "310000000000000007", 7),
    (1.5, "333ff8000000000000", 1.5),
    (Float32(1.5), "233fc00000", 1.5),
    (Char("é"), "27000000e9", "é"),
    (UUID_1, "48" + UUID_1.hex, UUID_1),
    ("é", "950002c3a9", "é"),
    ("a\udcff", "90000261ff", b"a\xff"),
    (Symbol("ab"), "9500026162", "ab"),
    (b"ab", "9000026162", b"ab"),
    (bytearray(b"ab"), "9000026162", b"ab"),
    (b"a" * 65536, "a000010000" + "61" * 65536, b"a" * 65536),
    ("a" * 65535, "95ffff" + "61" * 65535, "a" * 65535),
    ("a" * 65536, "a000010000" + "61" * 65536, b"a" * 65536),
    ([], "a90000000400000000", []),
    ((None,), "a90000000500000001f0", [None]),
    (UserList([None]), "a90000000500000001f0", [None]),
    ({}, "a80000000400000000", {}),
    ({"k": None}, "a8000000070000000101" + "6bf0", {"k": None}),
    (OrderedDict(k=None), "a8000000070000000101" + "6bf0", {"k": None}),
]


def in_list(item: str) -> bytes:
    """The list of one item whose code and bytes are given."""
    raw = bytes.fromhex(item)
    return (len(raw) + 4).to_bytes(4, "big") + b"\0\0\0\1" + raw


def in_map(item: str) -> bytes:
    """The map of one entry called ``k``."""
    raw = b"\x01k" + bytes.fromhex(item)
    return (len(raw) + 4).to_bytes(4, "big") + b"\0\0\0\1" + raw


@pytest.mark.parametrize(("value", "item", "decoded"), TABLE, ids=lambda item: repr(item)[:30])
def test_the_table_holds_in_both_directions(value: object, item: str, decoded: object) -> None:
    assert amqp010.encode_list([value]) == in_list(item)
    assert amqp010.encode_map({"k": value}) == in_map(item)
    assert repr(amqp010.decode_list(in_list(item))) == repr([decoded])
    assert repr(amqp010.decode_map(in_map(item))) == repr({"k": decoded})


@pytest.mark.parametrize(
    ("item", "decoded"),
    [
        ("0441", "A"),
        ("0007", b"\7"),
        ("380000000000000005", 5),
        ("800161", b"a"),
        ("8401e9", "é"),
        ("8502c3a9", "é"),
        ("860200e9", "é"),
        ("940001e9", "é"),
        ("96000200e9", "é"),
        ("ab0000000161", b"a"),
        ("c00102030405", b"\1\2\3\4\5"),
        ("d0" + "01" * 9, b"\1" * 9),
        ("50" + "02" * 32, b"\2" * 32),
        ("70" + "02" * 128, b"\2" * 128),
        ("f1", True),
        ("aa00000007" + "02" + "00000002" + "0102", [1, 2]),
        ("aa00000005" + "f0" + "00000010", [None] * 16),
    ],
)
def test_types_that_we_do_not_send_are_read(item: str, decoded: object) -> None:
    assert amqp010.decode_list(in_list(item)) == [decoded]
    assert amqp010.decode_map(in_map(item)) == {"k": decoded}


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ("900001ff", b"\xff"),
        ("9000016b", "k"),
        ("80016b", "k"),
        ("a0000000016b", "k"),
        ("c06b6b6b6b6b", b"kkkkk"),
        ("a9" + in_list("9000016b").hex(), ["k"]),
        ("a8" + in_map("9000016b").hex(), {"k": "k"}),
    ],
)
def test_binary_becomes_text_when_asked_and_possible(item: str, text: object) -> None:
    assert amqp010.decode_list(in_list(item), text=True) == [text]
    assert amqp010.decode_map(in_map(item), text=True) == {"k": text}


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("b0", "unknown type code 0xb0"),
        ("9500", "inside the"),
        ("95000361", "inside the"),
        ("310000", "inside the"),
        ("48", "inside the"),
        ("950001ff", "is not utf-8"),
        ("8601ff", "is not utf-16-be"),
        ("2700110000", "not Unicode"),
        ("a9000000ff00000000", "past the end"),
        ("a9000000030000000000", "no room for its count"),
        ("a900000005fffffffff0", "4294967295 list items in 1 bytes"),
        ("a800000005fffffffff0", "4294967295 map entries in 1 bytes"),
        ("a90000000500000000f0", "should end"),
        ("a80000000700000001" + "01ff" + "f0", "map key at offset .* is not UTF-8"),
        ("aa00000005" + "f0" + "ffffffff", "elements of no bytes"),
        ("aa00000005" + "02" + "ffffffff", "4294967295 array elements"),
        ("aaffffffff" + "02" + "00000000", "past the end"),
        ("aa00000006" + "02" + "00000000" + "00", "should end"),
    ],
)
def test_broken_values_say_what_and_where(item: str, words: str) -> None:
    with pytest.raises(DecodeError, match=words):
        amqp010.decode_list(in_list(item))
    with pytest.raises(DecodeError, match=words):
        amqp010.decode_map(in_map(item))


@pytest.mark.parametrize("decode", [amqp010.decode_list, amqp010.decode_map])
def test_bytes_left_over_are_an_error(decode: Callable[[bytes], object]) -> None:
    with pytest.raises(DecodeError, match="1 bytes left over at offset 8"):
        decode(bytes.fromhex("000000040000000000"))
    with pytest.raises(DecodeError, match="inside the"):
        decode(b"")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (2**64, "int64 and uint64"),
        (-(2**63) - 1, "int64 and uint64"),
        (UInt8(256), "256 is out of the range of uint8"),
        (UInt64(-1), "uint64"),
        (Float32(1e300), "is out of the range of float"),
        (Char("ab"), "one character"),
        (Char("\udc80"), "lone surrogate"),
        ("\ud800", "lone surrogate"),
        ({"\udc80": 1}, "lone surrogate"),
        (Described("a", 1), "cannot encode a Described"),
        (object(), "cannot encode a object"),
        ({1: 2}, "keys of AMQP 0-10 maps are str, not int"),
        ({"k" * 256: 2}, "longer than 255 bytes"),
        ({"é" * 128: 2}, "longer than 255 bytes"),
    ],
    ids=lambda item: repr(type(item)),
)
def test_values_that_do_not_fit_are_refused(value: object, words: str) -> None:
    with pytest.raises(EncodeError, match=words):
        amqp010.encode_list([value])
    with pytest.raises(EncodeError, match=words):
        amqp010.encode_map({"k": value})


@pytest.mark.parametrize("kind", ["list", "map"])
def test_both_directions_have_the_same_depth(kind: str) -> None:
    value: object = 1
    for _ in range(MAX_DEPTH - 1):
        value = [value] if kind == "list" else {"k": value}
    encoded = amqp010.encode_list([value])
    assert amqp010.decode_list(encoded) == [value]
    with pytest.raises(EncodeError, match=f"more than {MAX_DEPTH}"):
        amqp010.encode_list([[value]])
    with pytest.raises(DecodeError, match=f"more than {MAX_DEPTH}"):
        amqp010.decode_list(in_list("a9" + encoded.hex()))


@pytest.mark.slow
@given(st.lists(wire.values(), max_size=5))
def test_lists_come_back(value: list[object]) -> None:
    assert repr(amqp010.decode_list(amqp010.encode_list(value))) == repr(value)


@pytest.mark.slow
@given(wire.maps())
def test_maps_come_back(value: dict[str, object]) -> None:
    assert repr(amqp010.decode_map(amqp010.encode_map(value))) == repr(value)


# -- fields ------------------------------------------------------------------------------------------------------------


def test_fields_come_back_in_their_order() -> None:
    writer = Writer()
    writer.uint8(1)
    writer.uint16(2)
    writer.uint32(3)
    writer.uint64(4)
    writer.raw(b"AM2")
    writer.str8("é")
    writer.str16("\udcff")  # a byte that was no UTF-8
    writer.uuid(UUID_1)
    writer.map({"k": "v"})
    writer.items([1])
    writer.raw(b"rest")
    reader = Reader(writer.getvalue())
    assert [reader.uint8(), reader.uint16(), reader.uint32(), reader.uint64()] == [1, 2, 3, 4]
    assert reader.take(3) == b"AM2"
    assert (reader.str8(), reader.str16(), reader.uuid()) == ("é", "\udcff", UUID_1)
    assert (reader.map(), reader.items()) == ({"k": "v"}, [1])
    assert reader.remaining == 4
    assert reader.rest() == b"rest"
    reader.expect_end()


@pytest.mark.parametrize(
    "take",
    [
        Reader.uint8,
        Reader.uint16,
        Reader.uint32,
        Reader.uint64,
        Reader.str8,
        Reader.str16,
        Reader.uuid,
        Reader.map,
        Reader.items,
        lambda reader: reader.take(1),
    ],
)
def test_fields_that_are_not_there_are_an_error(take: Callable[[Reader], object]) -> None:
    with pytest.raises(DecodeError, match="at offset 1"):
        take(Reader(b"\xff", 1))


def test_text_longer_than_its_bytes_is_an_error() -> None:
    with pytest.raises(DecodeError, match="5 bytes wanted at offset 1, 2 left"):
        Reader(b"\x05ab").str8()


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda writer: writer.uint8(256), "256 is out of the range of uint8"),
        (lambda writer: writer.uint32(-1), "-1 is out of the range of uint32"),
        (lambda writer: writer.str8("a" * 256), "longer than 255 bytes"),
        (lambda writer: writer.str16("a" * 65536), "longer than 65535 bytes"),
        (lambda writer: writer.str8("\ud800"), "lone surrogate"),
    ],
)
def test_fields_that_do_not_fit_are_refused(write: Callable[[Writer], None], words: str) -> None:
    with pytest.raises(EncodeError, match=words):
        write(Writer())
