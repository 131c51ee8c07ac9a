"""Rows that are written are the rows that are read."""

from __future__ import annotations

import struct
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol.objects.columns import NAMES, values
from support.examples import examples

from qmf.codec import EncodeError
from qmf.protocol import ObjectBlock, ObjectId
from qmf.protocol.objects import Column, RowEncoder, SourcePart
from qmf.protocol.objects.lazy_values import LazyValues
from qmf.protocol.objects.row_layout import MAX_COLUMNS
from qmf.protocol.objects.rows import RowDecoder
from qmf.schema import TYPES, ClassKey

TIMES = st.integers(0, 2**63 - 1)
KEY = ClassKey("org.example", "thing")
AGENT = ObjectId("", "a:b:c", 3)


def columns(names: list[str], optional: frozenset[int] = frozenset()) -> list[Column]:
    return [Column(f"c{i}", TYPES[name], optional=i in optional) for i, name in enumerate(names)]


def encoder_of(names: list[str], leading: int, optional: frozenset[int] = frozenset()) -> RowEncoder:
    return RowEncoder(KEY, AGENT, columns(names, optional), leading)


def whole(encoder: RowEncoder, count: int) -> object:
    """The function that makes a row of an object with these attributes."""
    steps = ["update, create, delete = obj.times"]
    reading = SourcePart(steps, [f"obj.values[{i}]" for i in range(count)], {})
    return encoder.row_function(reading, "obj, lead")


@attrs.frozen
class Thing:
    times: tuple[int, int, int]
    values: list[object]


@examples(30)
@given(
    st.data(),
    st.lists(st.sampled_from(NAMES), max_size=20),
    st.lists(st.tuples(st.text(max_size=10), TIMES, TIMES, TIMES), max_size=4),
)
def test_rows_are_read_as_they_were_written(
    data: st.DataObject, names: list[str], objects: list[tuple[str, int, int, int]]
) -> None:
    leading = data.draw(st.integers(0, len(names)))
    optional = frozenset(i for i in range(leading, len(names)) if data.draw(st.booleans()))
    encoder = encoder_of(names, leading, optional)
    write_whole: Any = whole(encoder, len(names) - leading)
    rows, expected = [], []
    for name, update, create, delete in objects:
        row = [
            None if (i < leading or i in optional) and data.draw(st.booleans()) else data.draw(values(kind))
            for i, kind in enumerate(names)
        ]
        lead = encoder.lead(name, row[:leading])
        rows.append(encoder.row(update, create, delete, lead, row[leading:]))
        assert write_whole(Thing((update, create, delete), row[leading:]), lead) == rows[-1]
        expected.append({f"c{i}": value for i, value in enumerate(row) if value is not None})
    block = encoder.block(rows)
    assert (block.class_key, block.agent_name, block.agent_epoch) == (KEY, "a:b:c", 3)
    decoder = RowDecoder(block.columns, block.codes)
    found = decoder.check(block.rows)
    assert [decoder.head(block.rows, offset) for offset in found] == objects
    assert [dict(LazyValues(decoder, block.rows, offset)) for offset in found] == expected


def test_references_are_maps() -> None:
    encoder = encoder_of(["objId", "objId"], 1)
    lead = encoder.lead("n", [ObjectId("x")])
    block: ObjectBlock = encoder.block([encoder.row(1, 2, 0, lead, [ObjectId("y", "a")])])
    decoder = RowDecoder(block.columns, block.codes)
    assert decoder.unpack(block.rows, 0) == {
        "c0": {"_object_name": "x"},
        "c1": {"_object_name": "y", "_agent_name": "a"},
    }
    with pytest.raises(EncodeError, match="instead of a map"):
        encoder.lead("n", [5])
    with pytest.raises(EncodeError, match="instead of a list"):
        encoder_of(["list"], 1).lead("n", [5])


def test_more_columns_than_rows_may_have_are_refused() -> None:
    encoder_of(["uint8"] * MAX_COLUMNS, 0)
    with pytest.raises(EncodeError, match="rows of 501 columns; the limit is 500"):
        encoder_of(["uint8"] * (MAX_COLUMNS + 1), 0)


def test_the_bytes_of_a_row() -> None:
    encoder = encoder_of(["bool", "sstr", "uint16", "uint32"], 2, frozenset((3,)))
    row = encoder.row(1, 2, 0, encoder.lead("n", [True, None]), [7, None])
    # Length, bitmap, times, fixed columns, lengths of name and text, name.
    assert row[4:] == struct.pack(">BqqqBHIII1s", 0b0101, 1, 2, 0, 1, 7, 0, 1, 0, b"n")
    assert row[:4] == struct.pack(">I", len(row) - 4)


@pytest.mark.parametrize("leading", [0, 2])
@pytest.mark.parametrize(("number", "text"), [(256, "a"), (-1, "a"), (1, "a\udcff")])
def test_what_does_not_fit_is_refused(leading: int, number: int, text: str) -> None:
    encoder = encoder_of(["uint8", "sstr"], leading)
    row = [number, text]
    with pytest.raises(EncodeError):
        encoder.row(0, 0, 0, encoder.lead("n", row[:leading]), row[leading:])


def test_a_name_and_a_time_that_do_not_fit_are_refused() -> None:
    encoder = encoder_of(["uint8"], 0)
    with pytest.raises(EncodeError, match="lone surrogate"):
        encoder.lead("\ud800", [])
    with pytest.raises(EncodeError, match="out of the range"):
        encoder.row(-(2**63) - 1, 0, 0, encoder.lead("n", []), [1])
