"""Reading rows: layouts, lazy values, and rows that are broken."""

from __future__ import annotations

import copy
import linecache
import pickle
import struct
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.codec import amqp010
from qmf.codec.type_codes import BINARY32, LIST, MAP, TEXT16
from qmf.errors import DecodeError
from qmf.protocol.objects.columns import ROW_FORMATS
from qmf.protocol.objects.lazy_values import LazyValues
from qmf.protocol.objects.nested_values import MAX_NESTED, MAX_NESTED_SIZE
from qmf.protocol.objects.row_layout import MAX_COLUMNS, RowLayout
from qmf.protocol.objects.rows import MAX_BITMAPS, RowDecoder

TIMES = (3, 2, 1)

INTEGERS = {0x01: (8, True), 0x02: (8, False), 0x11: (16, True), 0x12: (16, False), 0x21: (32, True), 0x22: (32, False)}
INTEGERS |= {0x31: (64, True), 0x32: (64, False)}


def of_code(code: int) -> st.SearchStrategy[object]:
    """Values of a column."""
    if code in INTEGERS:
        bits, signed = INTEGERS[code]
        return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else st.integers(0, 2**bits - 1)
    others: dict[int, st.SearchStrategy[object]] = {
        0x08: st.booleans(),
        0x23: st.floats(width=32, allow_nan=False),
        0x33: st.floats(allow_nan=False),
        0x48: st.uuids(),
        TEXT16: st.text(max_size=10),
        BINARY32: st.binary(max_size=5).map(lambda raw: raw + b"\xff"),
        MAP: st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=3),
        LIST: st.lists(st.integers(0, 9), max_size=3),
    }
    return others[code]


def heads(decoder: RowDecoder, data: bytes) -> list[tuple[str, int, int, int]]:
    """Names and times of all rows."""
    return [decoder.head(data, offset) for offset in decoder.check(data)]


CODES = st.lists(st.sampled_from([*ROW_FORMATS, TEXT16, BINARY32, MAP, LIST]), max_size=20).map(bytes)


@st.composite
def blocks(draw: st.DrawFn) -> tuple[RowDecoder, list[tuple[str, dict[str, object]]]]:
    codes = draw(CODES)
    columns = tuple(f"c{i}" for i in range(len(codes)))
    rows = []
    for number in range(draw(st.integers(0, 3))):
        values = {
            name: draw(of_code(code))
            for name, code in zip(columns, codes, strict=True)
            if draw(st.booleans()) or number == 0
        }
        rows.append((draw(st.text(max_size=8)), values))
    return RowDecoder(columns, codes), rows


def variable(code: int, value: object) -> bytes:
    match value:
        case dict():
            return amqp010.encode_map(value)
        case list():
            return amqp010.encode_list(value)
        case str():
            return value.encode()
        case bytes():
            return value
    assert value is None
    return b""


def packed(layout: RowLayout, name: str, values: Mapping[str, object]) -> bytes:
    """One row, written straight after the description in docs/protocol.md."""
    bits = sum(1 << i for i, column in enumerate(layout.columns) if column in values)
    fields = b""
    bodies = []
    for column, code in zip(layout.columns, layout.codes, strict=True):
        value = values.get(column)
        if code not in ROW_FORMATS:
            bodies.append(variable(code, value))
        elif isinstance(value, UUID):
            fields += value.bytes
        else:
            zero = bytes(16) if code == 0x48 else 0
            fields += struct.pack(">" + ROW_FORMATS[code], zero if value is None else value)
    raw = name.encode()
    body = bits.to_bytes((len(layout.columns) + 7) // 8, "little") + struct.pack(">qqq", *TIMES) + fields
    body += b"".join(struct.pack(">I", len(item)) for item in (raw, *bodies)) + raw + b"".join(bodies)
    return struct.pack(">I", len(body)) + body


@pytest.mark.slow
@given(block=blocks())
def test_rows_come_back(block: tuple[RowDecoder, list[tuple[str, dict[str, object]]]]) -> None:
    decoder, rows = block
    data = b"".join(packed(decoder.layout, name, values) for name, values in rows)
    assert heads(decoder, data) == [(name, *TIMES) for name, _ in rows]
    for offset, (_, values) in zip(decoder.check(data), rows, strict=True):
        lazy = LazyValues(decoder, data, offset)
        assert lazy.unpack() == values
        assert list(lazy.unpack()) == list(lazy.names) == list(lazy) == list(values)
        assert {name: lazy[name] for name in lazy} == values
        assert lazy == values
        assert len(lazy) == len(values)
        assert lazy.detach() == values
        assert [name for name in decoder.layout.columns if name in lazy] == list(values)
        assert repr(lazy) == repr(values)


@pytest.mark.slow
@given(block=blocks(), changes=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4))
def test_broken_rows_are_refused_or_read_in_full(
    block: tuple[RowDecoder, list[tuple[str, dict[str, object]]]], changes: list[tuple[int, int]]
) -> None:
    decoder, rows = block
    data = bytearray(b"".join(packed(decoder.layout, name, values) for name, values in rows))
    for position, byte in changes:
        if data:
            data[position % len(data)] = byte
    try:
        found = decoder.check(bytes(data))
    except DecodeError:
        return
    for offset in found * 2:
        decoder.head(bytes(data), offset)
        values = LazyValues(decoder, bytes(data), offset)
        assert repr({name: values[name] for name in values}) == repr(values.unpack())


@pytest.mark.slow
@given(block=blocks(), cut=st.integers(1, 200))
def test_rows_that_are_cut(block: tuple[RowDecoder, list[tuple[str, dict[str, object]]]], cut: int) -> None:
    decoder, rows = block
    data = b"".join(packed(decoder.layout, name, values) for name, values in rows)
    ends = decoder.check(data)
    if 0 < cut < len(data) and len(data) - cut not in ends:
        with pytest.raises(DecodeError):
            decoder.check(data[:-cut])


@given(data=st.binary(max_size=300))
def test_random_bytes(data: bytes) -> None:
    decoder = RowDecoder(("a", "b", "c"), bytes((0x32, TEXT16, MAP)))
    try:
        found = decoder.check(data)
    except DecodeError:
        return
    assert (found == []) is (data == b"")


DECODER = RowDecoder(("number", "text", "map", "id"), bytes((0x32, TEXT16, MAP, 0x48)))


def test_a_row_in_the_open() -> None:
    data = packed(DECODER.layout, "n", {"number": 5, "text": "ö"})
    assert heads(DECODER, data) == [("n", 3, 2, 1)]
    values = LazyValues(DECODER, data, 0)
    assert dict(values) == {"number": 5, "text": "ö"}
    assert values.get("map") is None
    assert "map" not in values
    assert "nothing" not in values
    with pytest.raises(KeyError):
        values["nothing"]


def test_text_that_is_no_utf8_keeps_its_bytes() -> None:
    data = packed(DECODER.layout, "nn", {"text": "tt"}).replace(b"nn", b"n\xff").replace(b"tt", b"t\xfe")
    ((name, *_),) = heads(DECODER, data)
    assert name == "n\udcff"
    values = LazyValues(DECODER, data, 0)
    assert values["text"] == "t\udcfe"
    assert values.unpack() == {"text": "t\udcfe"}


def test_equal_values_have_equal_bytes_whatever_else_the_rows_say() -> None:
    one, other = packed(DECODER.layout, "one", {"text": "x"}), packed(DECODER.layout, "another", {"text": "x"})
    third = packed(DECODER.layout, "one", {"text": "y"})
    assert (
        LazyValues(DECODER, one, 0).raw() == LazyValues(DECODER, other, 0).raw() != LazyValues(DECODER, third, 0).raw()
    )


@pytest.mark.parametrize(
    ("columns", "codes", "words"),
    [
        (("a",), b"", "0 type codes for 1 columns"),
        (("a", "a"), b"\x02\x02", "same name"),
        (("a",), b"\x90", "0x90"),
    ],
)
def test_layouts_that_cannot_be(columns: tuple[str, ...], codes: bytes, words: str) -> None:
    with pytest.raises(DecodeError, match=words):
        RowLayout(columns, codes)


def test_a_set_map_needs_bytes() -> None:
    decoder = RowDecoder(("map",), bytes((MAP,)))
    data = bytearray(packed(decoder.layout, "n", {}))
    data[4] |= 1
    with pytest.raises(DecodeError, match="'map' is no map or list"):
        decoder.check(bytes(data))


def test_maps_and_lists_beside_each_other_are_all_read() -> None:
    decoder = RowDecoder(("a", "text", "b", "c", "d", "e"), bytes((MAP, TEXT16, MAP, LIST, 0x02, MAP)))
    values = {"a": {"k": 1}, "text": "x", "b": {}, "c": [1], "d": 5, "e": {"k": 2}}
    rows = [packed(decoder.layout, f"n{number}", {**values, "text": "x" * number}) for number in range(5)]
    assert [name for name, *_ in heads(decoder, b"".join(rows))] == ["n0", "n1", "n2", "n3", "n4"]
    for name in ("a", "b", "c", "e"):
        whole = packed(decoder.layout, "n", values)
        raw = variable(decoder.layout.codes[decoder.layout.columns.index(name)], values[name])
        # As long as it was: it claims another size.
        broken = whole.replace(raw, bytes((0, 0, 0, 99)) + raw[4:])
        assert broken != whole
        with pytest.raises(DecodeError):
            decoder.check(b"".join([*rows, broken]))


def test_more_maps_than_are_remembered() -> None:
    decoder = RowDecoder(("map",), bytes((MAP,)))
    rows = [packed(decoder.layout, "n", {"map": {"k": number}}) for number in range(MAX_NESTED + 5)]
    assert len(decoder.check(b"".join(rows))) == len(rows)


def test_a_nested_map_must_fill_its_length() -> None:
    decoder = RowDecoder(("map",), bytes((MAP,)))
    body = amqp010.encode_map({}) + b"\x00"
    fixed = struct.pack(">1sqqqII", b"\x01", *TIMES, 1, len(body))
    data = struct.pack(">I", len(fixed) + 1 + len(body)) + fixed + b"n" + body
    with pytest.raises(DecodeError, match="'map' is no map or list that can be read"):
        decoder.check(data)


def test_nested_values_that_are_equal_keep_their_types_and_are_not_shared() -> None:
    decoder = RowDecoder(("map", "list"), bytes((MAP, LIST)))
    for _ in range(3):
        for one in (1, True, 1.0, "1", None):
            row = packed(decoder.layout, "n", {"map": {"k": one}, "list": [one]})
            found: dict[str, Any] = decoder.unpack(row, 0)
            assert repr(found) == repr({"map": {"k": one}, "list": [one]})
            found["map"]["more"] = 1
            found["list"].append(1)
            found["one more"] = 1


def test_what_a_layout_remembers_is_bounded() -> None:
    decoder = RowDecoder(("map", "list", *(f"c{i}" for i in range(8))), bytes((MAP, LIST, *[0x02] * 8)))
    for number in range(MAX_NESTED + 10):
        values: dict[str, object] = {"map": {"k": number}, "list": [number]}
        values |= {f"c{i}": number % 256 for i in range(8) if number >> i & 1}
        assert decoder.unpack(packed(decoder.layout, "n", values), 0) == values
    long: dict[str, object] = {"map": {"k": "x" * MAX_NESTED_SIZE}, "list": ["x" * MAX_NESTED_SIZE]}
    assert decoder.unpack(packed(decoder.layout, "n", long), 0) == long
    for nested in decoder.nested.values():
        assert 0 < len(nested.known) <= MAX_NESTED
        assert all(len(raw) <= MAX_NESTED_SIZE for raw in nested.known)
    assert 0 < len(decoder.bitmaps) <= MAX_BITMAPS


def test_bits_behind_the_last_column_mean_nothing() -> None:
    data = bytearray(packed(DECODER.layout, "n", {"number": 5}))
    data[4] |= 0xF0
    assert [DECODER.unpack(bytes(data), 0) for _ in range(3)] == [{"number": 5}] * 3


def test_text_that_is_no_utf8_beside_a_map() -> None:
    data = packed(DECODER.layout, "n", {"text": "tt", "map": {}}).replace(b"tt", b"t\xfe")
    assert [DECODER.unpack(data, 0) for _ in range(3)] == [{"text": "t\udcfe", "map": {}}] * 3


def test_a_broken_map_is_found_in_every_block() -> None:
    decoder = RowDecoder(("map",), bytes((MAP,)))
    good = packed(decoder.layout, "n", {"map": {"k": 1}})
    broken = good.replace(b"\x01k\x31", b"\x01k\xb0")
    for _ in range(2):
        assert decoder.check(good) == [0]
        with pytest.raises(DecodeError):
            decoder.check(good + broken)


def alternating(count: int) -> RowDecoder:
    return RowDecoder(tuple(f"c{i}" for i in range(count)), bytes((TEXT16, MAP)) * (count // 2))


def test_the_source_of_a_check_grows_with_the_columns() -> None:
    sizes = []
    for count in (100, MAX_COLUMNS):
        decoder = alternating(count)
        sizes.append(len("".join(linecache.getlines("<check of rows>"))))
        columns, codes = decoder.layout.columns, decoder.layout.codes
        values = {name: {} if code == MAP else "x" for name, code in zip(columns, codes, strict=True)}
        data = packed(decoder.layout, "n", values)
        assert decoder.check(data + data) == [0, len(data)]
        assert decoder.unpack(data, 0) == values
    assert 0 < sizes[1] < 6 * sizes[0]


@pytest.mark.parametrize("count", [MAX_COLUMNS + 2, 4000])
def test_more_columns_than_rows_may_have(count: int) -> None:
    with pytest.raises(DecodeError, match=f"rows of {count} columns; the limit is {MAX_COLUMNS}"):
        alternating(count)


def test_copies_of_values_are_dictionaries() -> None:
    values = LazyValues(DECODER, packed(DECODER.layout, "n", {"number": 5, "map": {"k": 1}}), 0)
    for found in (copy.copy(values), copy.deepcopy(values), pickle.loads(pickle.dumps(values))):
        assert type(found) is dict
        assert found == values == {"number": 5, "map": {"k": 1}}


def test_values_with_a_nan_equal_themselves() -> None:
    decoder = RowDecoder(("ratio",), b"\x33")
    values = LazyValues(decoder, packed(decoder.layout, "n", {"ratio": float("nan")}), 0)
    same = values
    assert values == same
    assert values != dict(values)
    with pytest.raises(TypeError):
        hash(values)
