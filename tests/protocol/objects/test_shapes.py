"""A map that matches a shape is one that the general decoder reads, with the same values."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from qmf.codec import Float32, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, amqp010
from qmf.codec.type_codes import MAP
from qmf.errors import DecodeError
from qmf.protocol.objects.lazy_values import LazyValues
from qmf.protocol.objects.nested_values import MAX_NESTED, MAX_NESTED_SIZE, NestedValues, nested_values
from qmf.protocol.objects.shapes import MAX_VARIABLE, Shape, learn

DEPTH = 3

NUMBERS = st.one_of(
    st.booleans(),
    st.none(),
    st.uuids(),
    st.integers(0, 2**8 - 1).map(UInt8),
    st.integers(0, 2**16 - 1).map(UInt16),
    st.integers(0, 2**32 - 1).map(UInt32),
    st.integers(0, 2**64 - 1).map(UInt64),
    st.integers(-(2**7), 2**7 - 1).map(Int8),
    st.integers(-(2**15), 2**15 - 1).map(Int16),
    st.integers(-(2**31), 2**31 - 1).map(Int32),
    st.integers(-(2**63), 2**63 - 1).map(Int64),
    st.floats(allow_nan=False),
    st.floats(width=32, allow_nan=False).map(Float32),
)
TEXTS = st.one_of(st.text(max_size=20), st.binary(max_size=20))
NESTED = st.recursive(
    st.one_of(NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=5,
)
MAPS = st.dictionaries(st.text(max_size=10), st.one_of(NUMBERS, TEXTS, NESTED), max_size=12)


def learned(data: bytes, nested: dict[int, NestedValues] | None = None) -> Shape:
    shape = learn(data, 4, nested or nested_values(DEPTH))
    assert shape is not None
    return shape


def read(shape: Shape, data: bytes) -> LazyValues | None:
    """The lazy values of a whole map, or None where it has another shape."""
    if data[:4] != (len(data) - 4).to_bytes(4, "big"):
        return None
    found = shape.match(data, 4, len(data))
    return None if found is None else LazyValues(shape, data, (4, len(data), found))


def unpacked(shape: Shape, value: dict[str, object]) -> dict[str, object]:
    found = read(shape, amqp010.encode_map(value))
    assert found is not None
    return found.unpack()


def changed(value: object) -> object:
    """Another value of the same encoding."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, UUID):
        return UUID(int=value.int ^ 1)
    if isinstance(value, int):
        return type(value)(value // 2)
    if isinstance(value, float):
        return type(value)(1.5)
    if isinstance(value, str):
        return value + "ö"
    return value + b"\xff" if isinstance(value, bytes) else value


@pytest.mark.slow
@given(value=MAPS)
def test_a_map_has_the_shape_that_was_learned_from_it(value: dict[str, object]) -> None:
    data = amqp010.encode_map(value)
    general = amqp010.decode_map(data, text=True)
    found = read(learned(data), data)
    assert found is not None
    assert found.unpack() == general
    assert list(found.unpack()) == list(found) == list(found.names) == list(general)
    assert found == general
    assert {name: found[name] for name in found} == general
    assert len(found) == len(general)
    assert found.detach() == general
    assert found.detach().raw() == found.raw()


@pytest.mark.slow
@given(value=MAPS)
def test_other_values_have_the_same_shape(value: dict[str, object]) -> None:
    shape = learned(amqp010.encode_map(value))
    data = amqp010.encode_map({name: changed(item) for name, item in value.items()})
    found = read(shape, data)
    assert found is not None
    assert found.unpack() == amqp010.decode_map(data, text=True)


@pytest.mark.slow
@examples(190)
@given(value=MAPS, changes=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
@pytest.mark.parametrize("used", [False, True])
def test_what_matches_is_what_the_general_decoder_reads(
    used: bool, value: dict[str, object], changes: list[tuple[int, int]]
) -> None:
    data = bytearray(amqp010.encode_map(value))
    shape = learned(bytes(data))
    if used:
        read(shape, bytes(data))  # it now remembers nested values
    for position, byte in changes:
        data[position % len(data)] = byte
    found = read(shape, bytes(data))
    if found is not None:
        general = amqp010.decode_map(bytes(data), text=True)
        assert repr(found.unpack()) == repr(general)  # NaN equals nothing, but prints the same


@pytest.mark.slow
@given(value=MAPS, others=st.lists(st.text(max_size=300) | st.text("a", min_size=200, max_size=400), max_size=4))
def test_what_was_read_before_is_never_taken_for_what_is_there(value: dict[str, object], others: list[str]) -> None:
    value = {**value, "text": "first", "map": {"k": "first"}, "list": ["first"]}
    shape = learned(amqp010.encode_map(value))
    assert read(shape, amqp010.encode_map(value)) is not None
    for text in [*others, "first"]:
        for name in ("text", "map", "list"):
            inside: dict[str, object] = {"text": text, "map": {"k": text}, "list": [text]}
            data = amqp010.encode_map({**value, name: inside[name]})
            found = read(shape, data) or read(learned(data), data)
            general = amqp010.decode_map(data, text=True)
            assert found is not None
            for values in (found, found.detach()):
                assert repr(values.unpack()) == repr(general)
                assert repr({item: values[item] for item in values}) == repr(general)


@pytest.mark.slow
@given(value=MAPS, size=st.integers(0, 500))
def test_a_map_that_is_cut_matches_nothing(value: dict[str, object], size: int) -> None:
    data = amqp010.encode_map(value)
    if size < len(data):
        assert learned(data).match(data[:size], 4, size) is None


def test_a_shape_gives_the_same_each_time() -> None:
    value = {"a": UInt32(1), "text": "x", "map": {"k": [1, 2]}, "binary": b"\xff", "b": True}
    data = amqp010.encode_map(value)
    shape = learned(data)
    starts = [shape.match(data, 4, len(data)) for _ in range(3)]
    assert len({tuple(item) for item in starts if item is not None}) == 1
    assert None not in starts
    assert shape.match(data.replace(b"text", b"Text"), 4, len(data)) is None


def test_names_that_a_shape_lacks() -> None:
    data = amqp010.encode_map({"a": 1})
    found = read(learned(data), data)
    assert found is not None
    assert "a" in found
    assert "b" not in found
    assert found.get("b", 7) == 7
    with pytest.raises(KeyError):
        found["b"]
    assert repr(found) == "{'a': 1}"


def entry(name: bytes, code: int, body: bytes) -> bytes:
    return bytes((len(name),)) + name + bytes((code,)) + body


def a_map(*entries: bytes) -> bytes:
    items = b"".join(entries)
    return struct.pack(">II", len(items) + 4, len(entries)) + items


@pytest.mark.parametrize(
    ("code", "body"),
    [
        (0x80, b"\x02ab"),
        (0x85, b"\x03a\xc3\xa4"),
        (0xA0, b"\x00\x00\x00\x02\xff\xfe"),
        (0x38, bytes(8)),
        (0xF1, b""),
        (0xA9, b"\x00\x00\x00\x04\x00\x00\x00\x00"),
    ],
)
def test_encodings_that_we_do_not_send(code: int, body: bytes) -> None:
    data = a_map(entry(b"first", 0x02, b"\x07"), entry(b"it", code, body), entry(b"last", 0x08, b"\x02"))
    found = read(learned(data), data)
    assert found is not None
    assert found == amqp010.decode_map(data, text=True)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(a_map(entry(b"a", 0x02, b"\x01"), entry(b"a", 0x02, b"\x02")), id="a key twice"),
        pytest.param(a_map(entry(b"a", 0x27, b"\x00\x00\x00\x41")), id="a character"),
        pytest.param(a_map(entry(b"a", 0x84, b"\x01\xe4")), id="latin-1"),
        pytest.param(a_map(*(entry(f"{i:0200}".encode(), 0x02, b"\x01") for i in range(200))), id="very long keys"),
    ],
)
def test_rare_maps_get_no_shape(data: bytes) -> None:
    general = amqp010.decode_map(data)
    assert general
    assert learn(data, 4, nested_values(DEPTH)) is None


def test_text_must_be_utf8_and_binary_need_not() -> None:
    text = a_map(entry(b"a", 0x95, b"\x00\x02ab"))
    binary = a_map(entry(b"a", 0x90, b"\x00\x02ab"))
    assert read(learned(text), text.replace(b"ab", b"\xff\xff")) is None
    found = read(learned(binary), binary.replace(b"ab", b"\xff\xff"))
    assert found is not None
    assert found["a"] == b"\xff\xff"


def test_a_nested_map_is_checked_and_remembered() -> None:
    good = amqp010.encode_map({"m": {"k": 1}})
    nested = nested_values(DEPTH)
    shape = learned(good, nested)
    broken = good.replace(b"\x01k\x31", b"\x01k\xb0")
    with pytest.raises(DecodeError):
        amqp010.decode_map(broken)
    assert shape.match(good, 4, len(good)) is not None
    assert len(nested[MAP].known) == 1
    assert shape.match(broken, 4, len(broken)) is None
    assert len(nested[MAP].known) == 1


def test_a_list_is_not_taken_for_a_map_of_the_same_bytes() -> None:
    raw = struct.pack(">II", 7, 1) + b"\x00\x02\x07"  # a map with one empty key, or a list with an error in it
    as_map, as_list = a_map(entry(b"m", 0xA8, raw)), a_map(entry(b"m", 0xA9, raw))
    nested = nested_values(DEPTH)
    assert learned(as_map, nested).match(as_map, 4, len(as_map)) is not None
    shape = Shape(("m",), b"\xa9", nested)
    assert shape.match(as_list, 4, len(as_list)) is None
    with pytest.raises(DecodeError):
        amqp010.decode_map(as_list)


def test_what_is_remembered_is_bounded() -> None:
    nested = nested_values(DEPTH)
    shape = learned(amqp010.encode_map({"m": {}}), nested)
    known = nested[MAP].known
    for number in range(MAX_NESTED + 10):
        value: dict[str, object] = {"m": {"number": number}}
        assert unpacked(shape, value) == value
        assert 0 < len(known) <= MAX_NESTED
    long: dict[str, object] = {"m": {"text": "x" * 2 * MAX_NESTED_SIZE}}
    assert unpacked(learned(amqp010.encode_map(long), nested), long) == long
    assert all(len(raw) <= MAX_NESTED_SIZE for raw in known)


def test_a_nested_map_too_deep_for_the_general_decoder_matches_nothing() -> None:
    data = amqp010.encode_map({"m": {"text": "x" * 300}})
    deep: dict[str, object] = {}
    for _ in range(29):
        deep = {"d": deep}
    nested = amqp010.encode_map({"m": deep})
    assert learned(data, nested_values(2)).match(nested, 4, len(nested)) is not None
    assert learned(data, nested_values(3)).match(nested, 4, len(nested)) is None


ONES: list[object] = [1, True, 1.0, UInt8(1), Int64(1), Float32(1.0), "1", b"1", None]


def test_nested_values_that_are_equal_keep_their_types() -> None:
    maps: list[dict[str, object]] = [{"map": {"k": one}, "list": [one]} for one in ONES]
    shape = learned(amqp010.encode_map(maps[0]))
    for _ in range(2):
        for value in maps:
            general = amqp010.decode_map(amqp010.encode_map(value), text=True)
            assert repr(unpacked(shape, value)) == repr(general)


def test_who_changes_what_was_read_changes_nothing_else() -> None:
    one: dict[str, object] = {"map": {"k": 1}, "list": [1], "deep": {"a": {"b": [1]}}}
    other: dict[str, object] = {"map": {"k": 2}, "list": [2], "deep": {"a": {"b": [2]}}}
    shape = learned(amqp010.encode_map(one))
    for value in (one, other, one, other):
        found: dict[str, Any] = unpacked(shape, value)
        assert found == value
        for item in (found["map"], found["deep"], found["deep"]["a"]):
            item["more"] = 1
        for items in (found["list"], found["deep"]["a"]["b"]):
            items.append(1)
        found["one more"] = 1


@pytest.mark.parametrize("name", ["text", "binary", "map", "list"])
def test_long_values_have_a_shape_of_their_own(name: str) -> None:
    def value(size: int) -> dict[str, object]:
        text = "x" * size
        values: dict[str, object] = {"text": "t", "binary": b"\xff", "map": {"k": "m"}, "list": ["l"], "b": True}
        items: dict[str, object] = {"text": text, "binary": b"\xff" * size, "map": {"k": text}, "list": [text]}
        return {**values, name: items[name]}

    shorts, longs = (learned(amqp010.encode_map(value(size))) for size in (70, 300))
    assert not shorts.is_like(longs)
    assert read(shorts, amqp010.encode_map(value(300))) is None
    for size in (1, 70, 255, 256, 300, 65_535):
        assert unpacked(longs, value(size)) == value(size)
    for size in (1, 70):
        assert unpacked(shorts, value(size)) == value(size)


def test_a_value_is_found_without_the_places_of_the_match() -> None:
    data = amqp010.encode_map({"a": "text", "m": {"k": 1}, "z": UInt8(7)})
    shape = learned(data)
    values = LazyValues(shape, data[4:], None)
    assert values["z"] == 7
    assert values.unpack() == {"a": "text", "m": {"k": 1}, "z": 7}


def test_maps_with_very_many_texts_get_no_shape() -> None:
    for count, known in ((MAX_VARIABLE, True), (MAX_VARIABLE + 1, False)):
        data = amqp010.encode_map({f"t{number}": "x" for number in range(count)})
        assert (learn(data, 4, nested_values(DEPTH)) is not None) is known
    numbers = amqp010.encode_map({f"n{number}": UInt8(1) for number in range(2 * MAX_VARIABLE)})
    assert learn(numbers, 4, nested_values(DEPTH)) is not None
