"""Encoders that know their columns make the bytes that the general encoder makes."""

from __future__ import annotations

import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol.objects.columns import NAMES, on_the_wire, values
from support.examples import examples

from qmf.codec import Char, EncodeError, Float32, Symbol, UInt8, UInt32, amqp010
from qmf.codec.limits import MAX_DEPTH
from qmf.protocol import ObjectId
from qmf.protocol.objects.columns import FIXED_CODES, Column
from qmf.protocol.objects.keyed_encoding import (
    DEPTH,
    MAX_KEYS,
    entry_encoder,
    key,
    list_body,
    nested_bytes,
    text_bytes,
    value_bytes,
)
from qmf.schema import TYPES

FEW = st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), max_size=12)
MANY = st.lists(st.tuples(st.sampled_from(list(FIXED_CODES)), st.just(False)), min_size=10, max_size=25)


@examples(30)
@given(st.data(), st.tuples(FEW, MANY | st.just([]), FEW).map(lambda parts: [*parts[0], *parts[1], *parts[2]]))
def test_the_bytes_are_those_of_the_general_encoder(data: st.DataObject, kinds: list[tuple[str, bool]]) -> None:
    columns = [Column(f"c{number}", TYPES[name], optional) for number, (name, optional) in enumerate(kinds)]
    encode = entry_encoder(columns, "test")
    for _ in range(2):
        row = [None if optional and data.draw(st.booleans()) else data.draw(values(name)) for name, optional in kinds]
        expected = amqp010.encode_map(
            {
                column.name: on_the_wire(name, value)
                for column, (name, _), value in zip(columns, kinds, row, strict=True)
                if value is not None
            }
        )
        entries, count = encode(row)
        assert (len(entries) + 4).to_bytes(4, "big") + count.to_bytes(4, "big") + entries == expected


@pytest.mark.parametrize(
    ("kind", "value"),
    [("uint8", 256), ("int16", -(2**15) - 1), ("uint64", -1), ("uint64", 2**64), ("float", 1e39), ("uint32", "x")],
)
def test_what_does_not_fit_its_column_is_refused(kind: str, value: object) -> None:
    encode = entry_encoder([Column("a", TYPES["uint8"]), Column("b", TYPES[kind])], "test")
    with pytest.raises(EncodeError, match="out of the range of its column"):
        encode([1, value])


@pytest.mark.parametrize("value", ["a" * 255, "a" * 256, "\u20ac" * 90, "a" * 70_000, "a\udcff", b"\xff", UInt32(7)])
def test_text_of_all_lengths_and_kinds(value: object) -> None:
    entries, _ = entry_encoder([Column("a", TYPES["sstr"])], "test")([value])
    assert entries == key("a") + value_bytes(value)
    assert amqp010.encode_map({"a": value})[8:] == entries
    if isinstance(value, str):
        assert text_bytes(value) == value_bytes(value)


def test_depth_counts_what_is_around() -> None:
    value: object = "x"
    for _ in range(MAX_DEPTH - 1 - DEPTH):
        value = [value]
    inner = entry_encoder([Column("a", TYPES["map"])], "test")
    assert inner([value])[0] == amqp010.encode_map({"a": value})[8:]
    with pytest.raises(EncodeError, match="values inside each other"):
        inner([[value]])


@pytest.mark.parametrize("name", ["x" * 256, "a\udcff"])
def test_keys_that_are_none_are_refused(name: str) -> None:
    with pytest.raises(EncodeError, match="map key"):
        entry_encoder([Column(name, TYPES["sstr"])], "test")


SCALARS = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.booleans(),
    st.floats(allow_nan=False),
    st.none(),
    st.uuids(),
    st.binary(max_size=5),
    st.text(max_size=5),
    st.text("ab\u20ac", min_size=80, max_size=260),
    st.integers(0, 255).map(UInt8),
    st.just(Float32(1.5)),
    st.text(max_size=5).map(Symbol),
    st.just(Char("x")),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=5), inner, max_size=4),
        st.dictionaries(st.text(max_size=2), inner, min_size=15, max_size=20),
    ),
    max_leaves=25,
)


@given(st.lists(ANYTHING, max_size=3))
def test_any_value_is_encoded_as_by_the_general_encoder(items: list[object]) -> None:
    for item in items * 2:
        assert nested_bytes(item) == value_bytes(item)


def test_object_ids_are_maps() -> None:
    plain = {"_object_name": "n", "_agent_name": "a", "_agent_epoch": UInt32(3)}
    object_id = ObjectId("n", "a", 3)
    assert nested_bytes(object_id) == value_bytes(plain)
    assert nested_bytes({"k": object_id}) == value_bytes({"k": plain})
    assert nested_bytes([object_id, {"k": [object_id]}]) == value_bytes([plain, {"k": [plain]}])


def test_equal_values_of_other_types_are_not_mixed_up() -> None:
    for one in (1, True, 1.0, UInt8(1), "1", b"1") * 2:
        assert nested_bytes({"k": one}) == value_bytes({"k": one})


@pytest.mark.parametrize(
    "value",
    [{1: 2}, {"k" * 256: 1}, {"a\udcff": 1}, {"k": 2**64}, {"k": -(2**63) - 1}, {"k": object()}, {"k": "a\ud800"}],
)
def test_maps_that_cannot_be_encoded(value: object) -> None:
    for _ in range(2):
        with pytest.raises(EncodeError):
            nested_bytes(value)
        with pytest.raises(EncodeError):
            value_bytes(value)
    assert nested_bytes({"k": 1}) == value_bytes({"k": 1})


def test_more_keys_than_are_remembered() -> None:
    for _ in range(2):
        for number in range(MAX_KEYS + 30):
            assert nested_bytes({str(number): number}) == value_bytes({str(number): number})


def test_depth_of_small_maps() -> None:
    deep: object = 1
    for level in range(MAX_DEPTH + 3):
        for value in ({"a": deep}, {"a": deep, "b": 1}):
            try:
                expected = value_bytes(value, DEPTH)
            except EncodeError:
                assert level > MAX_DEPTH - 5
                with pytest.raises(EncodeError, match="values inside each other"):
                    nested_bytes(value)
            else:
                assert nested_bytes(value) == expected
        deep = {"x": deep}


@given(st.lists(values("map") | values("sstr") | values("list"), max_size=5))
def test_lists_of_encoded_values(items: list[object]) -> None:
    assert list_body([value_bytes(item) for item in items]) == amqp010.encode_list(items)


def test_tracebacks_show_the_made_up_source() -> None:
    with pytest.raises(EncodeError) as caught:
        entry_encoder([Column("a", TYPES["map"])], "gauge")([object()])
    lines = "".join(traceback.format_exception(caught.value))
    assert "<encode of gauge>" in lines
    assert "p0 = nested(v0)" in lines
