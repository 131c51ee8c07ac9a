"""The columns of classes and events."""

from __future__ import annotations

import pytest
from pipeline.shop import EVERYTHING

from qmf.pipeline.lake.columns import ClassVersion, ColumnType, LakeColumn, MemberKind, MemberPart
from qmf.schema import TYPES, Argument, ClassSchema, EventSchema, Property


def the(version: ClassVersion, name: str) -> LakeColumn:
    (column,) = [item for item in version.columns if item.name == name]
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
def test_each_type_has_its_column_type(name: str, cell: ColumnType) -> None:
    assert the(ClassVersion.from_schema(EVERYTHING), name).column_type is cell


def test_a_class_version_survives_json() -> None:
    table = ClassVersion.from_schema(EVERYTHING)
    assert ClassVersion.from_json(table.package, table.name, table.hash, table.event, table.to_json()) == table


def test_added_columns_avoid_names_of_the_schema() -> None:
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
