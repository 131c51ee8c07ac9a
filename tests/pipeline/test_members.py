"""Columns of classes, and cells of values."""

from __future__ import annotations

import json
from uuid import UUID

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import arrow_schema, arrow_table, columns_of
from qmf.pipeline.lake.columns import (
    ClassVersion,
    ColumnType,
    LakeColumn,
    MemberKind,
    MemberPart,
)
from qmf.pipeline.lake.layout import LakePartition, date_of, day
from qmf.pipeline.recording.buffers import RowConverter
from qmf.pipeline.recording.conversion import InvalidValueError, converter, to_json
from qmf.protocol import ObjectId
from qmf.schema import TYPES, Argument, ClassSchema, EventSchema, Property, Statistic

EVERYTHING = ClassSchema(
    package="org.example.all",
    name="Everything",
    hash=UUID(int=1),
    properties=tuple(Property(name=f"p{name}", type=type) for name, type in TYPES.items() if type.name == type.base),
    statistics=tuple(Statistic(name=f"s{name}", type=type) for name, type in TYPES.items()),
)


def the(table: ClassVersion, name: str) -> LakeColumn:
    (column,) = [item for item in table.columns if item.name == name]
    return column


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("puint8", ColumnType.INT16),
        ("puint16", ColumnType.INT32),
        ("puint32", ColumnType.INT64),
        ("puint64", ColumnType.DECIMAL),
        ("pint64", ColumnType.INT64),
        ("pabsTime", ColumnType.TIME),
        ("pabsTime_ns", ColumnType.INT64),
        ("pdeltaTime", ColumnType.DECIMAL),
        ("pobjId", ColumnType.TEXT),
        ("pobjId_agent", ColumnType.TEXT),
        ("puuid", ColumnType.TEXT),
        ("pmap", ColumnType.TEXT),
        ("scount64", ColumnType.DECIMAL),
        ("shilo32High", ColumnType.INT64),
        ("smmaTimeCount", ColumnType.DECIMAL),
        ("smma32Avg", ColumnType.INT64),
    ],
)
def test_each_type_has_its_cell(name: str, cell: ColumnType) -> None:
    assert the(ClassVersion.from_schema(EVERYTHING), name).column_type is cell


def test_a_table_survives_json() -> None:
    table = ClassVersion.from_schema(EVERYTHING)
    assert ClassVersion.from_json(table.package, table.name, table.hash, table.event, table.to_json()) == table


def test_names_that_the_schema_uses_itself_give_way() -> None:
    schema = ClassSchema(
        package="p",
        name="c",
        properties=(
            Property(name="at", type=TYPES["absTime"]),
            Property(name="at_ns", type=TYPES["uint8"]),
            Property(name="at_ns_", type=TYPES["uint8"]),
        ),
    )
    names = [item.name for item in ClassVersion.from_schema(schema).columns]
    assert names == ["at", "at_ns__", "at_ns", "at_ns_"]


def test_events_have_arguments() -> None:
    table = ClassVersion.from_schema(
        EventSchema(package="p", name="e", arguments=(Argument(name="a", type=TYPES["uint8"]),))
    )
    assert (table.event, table.columns[0].kind, table.columns[0].part) == (
        True,
        MemberKind.ARGUMENT,
        MemberPart.VALUE,
    )


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
def test_what_does_not_fit_is_told(name: str, value: object) -> None:
    with pytest.raises(InvalidValueError):
        converter(the(ClassVersion.from_schema(EVERYTHING), name))(value)


def test_misfits_are_counted_and_become_null() -> None:
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
def test_whatever_is_sent_becomes_a_row_that_arrow_takes(values: dict[str, object]) -> None:
    table = ClassVersion.from_schema(EVERYTHING)
    own = (None,) * (len(columns_of(RowKind.OBJECTS, None)))
    columns = columns_of(RowKind.OBJECTS, table)
    made = arrow_table(columns, [(*own, *RowConverter(table).cells(values, statistics=True))])
    assert made.num_rows == 1
    assert made.schema.equals(arrow_schema(columns))


@given(anything)
def test_anything_can_be_written_as_json(value: object) -> None:
    json.loads(to_json(value))


@pytest.mark.parametrize(
    ("time_ns", "date"),
    [
        (0, "1970-01-01"),
        (-1, "1969-12-31"),
        (86_400 * 10**9, "1970-01-02"),
        (1 << 63, "2262-04-11"),
        (10**30, "1970-01-01"),
    ],
)
def test_days_are_utc(time_ns: int, date: str) -> None:
    assert day(time_ns) == date


def test_folders_name_their_day_and_escape_the_rest() -> None:
    place = LakePartition(RowKind.OBJECTS, "a/b=c", "x y", "", "2030-01-31")
    assert place.folder == "objects/qmf_package=a%2Fb%3Dc/qmf_class=x%20y/qmf_hash=none/qmf_date=2030-01-31"
    assert date_of(place.folder) == "2030-01-31"
    assert attrs.evolve(place, kind=RowKind.GAPS).folder == "gaps/qmf_date=2030-01-31"
