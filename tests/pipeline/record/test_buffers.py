"""Rows that wait for a commit."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pipeline.heartbeats import beats
from pipeline.shop import EVERYTHING

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import arrow_schema, arrow_table, columns_of
from qmf.pipeline.lake.columns import ClassVersion, LakeColumn
from qmf.pipeline.record.buffers import InvalidValueError, RowBuffers, RowConverter, converter, to_json
from qmf.protocol import ObjectId


def the(version: ClassVersion, name: str) -> LakeColumn:
    (column,) = [item for item in version.columns if item.name == name]
    return column


@pytest.mark.parametrize(
    ("name", "value", "cell"),
    [
        ("puint64", (1 << 64) - 1, (1 << 64) - 1),
        ("pabsTime", -1, -1),
        ("pabsTime", 1_999, 1),
        ("pabsTime_ns", 1_999, 1_999),
        ("pobjId", ObjectId("a:b:c", "agent", 7), "a:b:c"),
        ("pobjId_agent", ObjectId("a:b:c", "agent", 7), "agent"),
        ("puuid", UUID(int=5), str(UUID(int=5))),
        ("plstr", "a\udcffb", "a?b"),
        ("pmap", {"a": [1, None, 2.5]}, '{"a":[1,null,2.5]}'),
        ("pfloat", 3, 3.0),
    ],
)
def test_values_become_cells(name: str, value: object, cell: object) -> None:
    assert converter(the(ClassVersion.from_schema(EVERYTHING), name))(value) == cell


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("puint8", 1 << 15),
        ("puint64", True),
        ("puint64", 10**20),
        ("pint64", 1 << 63),
        ("pabsTime", "now"),
        ("pbool", 1),
        ("plstr", 5),
        ("pobjId", "a:b:c"),
        ("pobjId_agent", None),
        ("pdouble", "1"),
    ],
)
def test_values_that_do_not_fit_are_errors(name: str, value: object) -> None:
    with pytest.raises(InvalidValueError):
        converter(the(ClassVersion.from_schema(EVERYTHING), name))(value)


def test_invalid_values_are_counted_and_become_null() -> None:
    converters = RowConverter(ClassVersion.from_schema(EVERYTHING))
    names = [item.name for item in converters.version.columns]
    cells = converters.cells({"puint8": "x", "pint8": 3, "scount8": 9}, statistics=False)
    assert converters.invalid_values == 1
    assert {name: cell for name, cell in zip(names, cells, strict=True) if cell is not None} == {"pint8": 3}


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.uuids(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([item.wire for item in ClassVersion.from_schema(EVERYTHING).columns]), anything))
def test_any_values_become_a_row_that_arrow_accepts(values: dict[str, object]) -> None:
    table = ClassVersion.from_schema(EVERYTHING)
    own = (None,) * (len(columns_of(RowKind.OBJECTS, None)))
    columns = columns_of(RowKind.OBJECTS, table)
    made = arrow_table(columns, [(*own, *RowConverter(table).cells(values, statistics=True))])
    assert made.num_rows == 1
    assert made.schema.equals(arrow_schema(columns))


@given(anything)
def test_anything_can_be_written_as_json(value: object) -> None:
    text = to_json(value)
    assert to_json(json.loads(text)) == text


def test_rows_of_a_kind_are_taken_together_with_their_days() -> None:
    buffers = beats((1, 0), (2, 1), (3, 0))
    assert buffers.cells == 36
    (taken,) = buffers.take()
    assert [row[1] for row in taken.rows] == [1, 2, 3]
    assert list(taken.dates) == ["1970-01-01", "1970-01-02", "1970-01-01"]
    assert (buffers.take(), buffers.cells, buffers.age()) == ([], 0, 0)


def test_the_age_is_that_of_the_oldest_row() -> None:
    now = 5.0
    buffers = RowBuffers(lambda: now)
    buffers.add(RowKind.HEARTBEATS, None, 0, (1,))
    now = 7.0
    buffers.add(RowKind.AGENTS, None, 0, (1,))
    assert buffers.age() == 2.0
