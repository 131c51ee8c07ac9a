"""Encoders that know their columns make the bytes that the general encoder makes."""

from __future__ import annotations

import traceback

import pytest
from codec.columns import NAMES, code, on_the_wire, values
from hypothesis import given, settings
from hypothesis import strategies as st

from qmf.codec import EncodeError, UInt32, amqp010
from qmf.codec.layout_encode import ANY, TEXT, Column, entry_encoder, key, list_body, map_value, value_bytes
from qmf.codec.limits import MAX_DEPTH


@settings(deadline=None, max_examples=50)
@given(st.data(), st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), max_size=12))
def test_the_bytes_are_those_of_the_general_encoder(data: st.DataObject, kinds: list[tuple[str, bool]]) -> None:
    columns = [Column(f"c{number}", code(name), optional) for number, (name, optional) in enumerate(kinds)]
    encode = entry_encoder(columns, 0, "test")
    for _ in range(2):
        row = [None if optional and data.draw(st.booleans()) else data.draw(values(name)) for name, optional in kinds]
        expected = amqp010.encode_map(
            {
                column.name: on_the_wire(name, value)
                for column, (name, _), value in zip(columns, kinds, row, strict=True)
                if value is not None
            }
        )
        entries, count = encode(*row)
        assert map_value(entries, count) == b"\xa8" + expected


@pytest.mark.parametrize(
    ("kind", "value"),
    [("uint8", 256), ("int16", -(2**15) - 1), ("uint64", -1), ("uint64", 2**64), ("float", 1e39), ("uint32", "x")],
)
def test_what_does_not_fit_its_column_is_refused(kind: str, value: object) -> None:
    encode = entry_encoder([Column("a", code("uint8")), Column("b", code(kind))], 0, "test")
    with pytest.raises(EncodeError, match="out of the range of its column"):
        encode(1, value)


@pytest.mark.parametrize("value", ["a" * 255, "a" * 256, "\u20ac" * 90, "a" * 70_000, "a\udcff", b"\xff", UInt32(7)])
def test_text_of_all_lengths_and_kinds(value: object) -> None:
    entries, _ = entry_encoder([Column("a", TEXT)], 0, "test")(value)
    assert entries == key("a") + value_bytes(value)
    assert amqp010.encode_map({"a": value})[8:] == entries


def test_depth_counts_what_is_around() -> None:
    value: object = "x"
    for _ in range(MAX_DEPTH - 1):
        value = [value]
    inner = entry_encoder([Column("a", ANY)], 0, "test")
    assert inner(value)[0] == amqp010.encode_map({"a": value})[8:]
    with pytest.raises(EncodeError, match="values inside each other"):
        entry_encoder([Column("a", ANY)], 1, "test")(value)


@pytest.mark.parametrize("name", ["x" * 256, "a\udcff"])
def test_keys_that_are_none_are_refused(name: str) -> None:
    with pytest.raises(EncodeError, match="map key"):
        entry_encoder([Column(name, TEXT)], 0, "test")


@given(st.lists(values("map") | values("sstr") | values("list"), max_size=5))
def test_lists_of_encoded_values(items: list[object]) -> None:
    assert list_body([value_bytes(item) for item in items]) == amqp010.encode_list(items)


def test_tracebacks_show_the_made_up_source() -> None:
    with pytest.raises(EncodeError) as caught:
        entry_encoder([Column("a", ANY)], 0, "gauge")(object())
    lines = "".join(traceback.format_exception(caught.value))
    assert "<encode of gauge>" in lines
    assert "p0 = K0 + other(v0)" in lines
