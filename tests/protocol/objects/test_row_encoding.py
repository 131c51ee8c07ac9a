"""Rows that are written are the rows that are read."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protocol.objects.columns import NAMES, values

from qmf.codec import EncodeError, amqp010
from qmf.protocol.objects.keyed_encoding import FIXED_CODES
from qmf.protocol.objects.row_encoding import RowEncoder
from qmf.protocol.objects.rows import LIST, MAP, MAX_COLUMNS, TEXT, RowLayout, RowValues

CODES = {**FIXED_CODES, "sstr": TEXT, "lstr": TEXT, "map": MAP, "list": LIST}
TIMES = st.integers(0, 2**63 - 1)


def raw(name: str, value: object) -> object:
    """A value as writers of rows take it."""
    if isinstance(value, dict):
        return amqp010.encode_map(value)
    return amqp010.encode_list(value) if isinstance(value, list) else value


def layout(names: list[str]) -> RowLayout:
    return RowLayout(tuple(f"c{number}" for number in range(len(names))), bytes(CODES[name] for name in names))


@settings(deadline=None, max_examples=50)
@given(
    st.data(),
    st.lists(st.sampled_from(NAMES), max_size=20),
    st.lists(st.tuples(st.text(max_size=10), TIMES, TIMES, TIMES), max_size=4),
)
def test_rows_are_read_as_they_were_written(
    data: st.DataObject, names: list[str], objects: list[tuple[str, int, int, int]]
) -> None:
    leading = data.draw(st.integers(0, len(names)))
    optional = {i for i in range(leading, len(names)) if data.draw(st.booleans())}
    encoder = RowEncoder(layout(names), leading, optional, "test")
    rows, expected = [], []
    for name, update, create, delete in objects:
        row = [
            None if (i < leading or i in optional) and data.draw(st.booleans()) else data.draw(values(kind))
            for i, kind in enumerate(names)
        ]
        given_values = [None if value is None else raw(kind, value) for kind, value in zip(names, row, strict=True)]
        lead = encoder.lead(name, given_values[:leading])
        rows.append(encoder.row(update, create, delete, lead, *given_values[leading:]))
        expected.append({f"c{i}": value for i, value in enumerate(row) if value is not None})
    block = b"".join(rows)
    found = encoder.layout.scan(block)
    assert [tuple(row)[1:] for row in found] == objects
    assert [dict(RowValues(encoder.layout, block, row.offset)) for row in found] == expected


def test_more_columns_than_rows_may_have_are_refused() -> None:
    RowEncoder(layout(["uint8"] * MAX_COLUMNS), 0, (), "test")
    with pytest.raises(EncodeError, match="rows of 501 columns; the limit is 500"):
        RowEncoder(layout(["uint8"] * (MAX_COLUMNS + 1)), 0, (), "test")


def test_the_bytes_of_a_row() -> None:
    encoder = RowEncoder(layout(["bool", "sstr", "uint16", "uint32"]), 2, {3}, "test")
    row = encoder.row(1, 2, 0, encoder.lead("n", [True, None]), 7, None)
    # Length, bitmap, times, fixed columns, lengths of name and text, name.
    assert row[4:] == struct.pack(">BqqqBHIII1s", 0b0101, 1, 2, 0, 1, 7, 0, 1, 0, b"n")
    assert row[:4] == struct.pack(">I", len(row) - 4)


@pytest.mark.parametrize("leading", [0, 2])
@pytest.mark.parametrize(("number", "text"), [(256, "a"), (-1, "a"), (1, "a\udcff")])
def test_what_does_not_fit_is_refused(leading: int, number: int, text: str) -> None:
    encoder = RowEncoder(layout(["uint8", "sstr"]), leading, (), "test")
    row = [number, text]
    with pytest.raises(EncodeError):
        encoder.row(0, 0, 0, encoder.lead("n", row[:leading]), *row[leading:])


def test_a_name_and_a_time_that_do_not_fit_are_refused() -> None:
    encoder = RowEncoder(layout(["uint8"]), 0, (), "test")
    with pytest.raises(EncodeError, match="lone surrogate"):
        encoder.lead("\ud800", [])
    with pytest.raises(EncodeError, match="out of the range"):
        encoder.row(-(2**63) - 1, 0, 0, encoder.lead("n", []), 1)
