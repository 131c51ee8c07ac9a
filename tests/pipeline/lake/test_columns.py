"""The columns of classes and events."""

from __future__ import annotations

import attrs
import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pipeline.shop import EVERYTHING

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import arrow_schema, columns_of
from qmf.pipeline.lake.columns import (
    DATE,
    HASH,
    ClassVersion,
    ColumnType,
    LakeColumn,
    MemberKind,
    MemberPart,
    align_columns,
)
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.schema import TYPES, Argument, ClassSchema, EventSchema, Property, Statistic


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


NAMES = st.one_of(
    st.sampled_from(["count", "Count", "COUNT", "a b", "a_b", "a.b", "_seq", "_date", "x_seq", "", "t_ns", "r_agent"]),
    st.text(st.characters(codec=None), max_size=6),
)
TYPE_NAMES = st.sampled_from(["uint32", "sstr", "absTime", "objId"])
SCHEMAS = st.builds(
    lambda properties, statistics: ClassSchema(
        package="p",
        name="c",
        properties=tuple(Property(name=name, type=TYPES[type]) for name, type in properties),
        statistics=tuple(Statistic(name=name, type=TYPES[type]) for name, type in statistics),
    ),
    st.lists(st.tuples(NAMES, TYPE_NAMES), max_size=6),
    st.lists(st.tuples(NAMES, st.sampled_from(["count32", "hilo16", "mma32"])), max_size=3),
)


def check(version: ClassVersion) -> list[str]:
    own = [column.name for column in version.columns]
    names = [*(name for name, _type in columns_of(RowKind.OBJECTS, None)), DATE, HASH, *own]
    assert len({name.lower() for name in names}) == len(names)
    assert not any(set(name) & set(" ,;{}()\n\t=") or not name or name.startswith("_") for name in own)
    for name in own:
        name.encode()
    return own


@given(SCHEMAS)
def test_names_are_safe_and_different_in_any_case(schema: ClassSchema) -> None:
    version = ClassVersion.from_schema(schema)
    check(version)
    assert ClassVersion.from_json("p", "c", version.hash, False, version.to_json()) == version


@given(st.lists(SCHEMAS, min_size=2, max_size=4))
def test_versions_of_a_class_agree_about_the_case_of_names(schemas: list[ClassSchema]) -> None:
    known: list[ClassVersion] = []
    spelled: dict[str, str] = {}
    for number, schema in enumerate(schemas):
        version = align_columns(attrs.evolve(ClassVersion.from_schema(schema), hash=str(number)), known)
        known.append(version)
        for name in check(version):
            assert spelled.setdefault(name.lower(), name) == name


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SCHEMAS)
def test_tables_have_the_columns(tmp_path_factory: pytest.TempPathFactory, schema: ClassSchema) -> None:
    version = ClassVersion.from_schema(schema)
    columns = columns_of(RowKind.OBJECTS, version)
    rows = pa.Table.from_pylist([{"_run": "r", "_seq": 1}], arrow_schema(columns))
    table = LakeTable(str(tmp_path_factory.mktemp("lake") / "table"))
    table.append(rows, writer="w", batch=1, partition_by=())
    found = table.dataset(table.snapshot().files).to_table()
    assert found.column_names == [name for name, _type in columns]
    with duckdb.connect() as connection:
        connection.register("found", found)
        assert connection.execute("SELECT count(*) FROM found").fetchone() == (1,)


def test_usual_names_stay() -> None:
    schema = ClassSchema(
        package="p",
        name="c",
        properties=(Property(name="opened", type=TYPES["absTime"]), Property(name="nextRef", type=TYPES["objId"])),
        statistics=(Statistic(name="service", type=TYPES["mma32"]),),
    )
    assert check(ClassVersion.from_schema(schema)) == [
        "opened",
        "opened_ns",
        "nextRef",
        "nextRef_agent",
        "serviceCount",
        "serviceMin",
        "serviceMax",
        "serviceAvg",
    ]


def test_a_name_of_another_case_in_a_later_version() -> None:
    def version(name: str, hash: str) -> ClassVersion:
        schema = ClassSchema(package="p", name="c", properties=(Property(name=name, type=TYPES["uint8"]),))
        return attrs.evolve(ClassVersion.from_schema(schema), hash=hash)

    (column,) = align_columns(version("COUNT", "2"), [version("count", "1")]).columns
    assert (column.name, column.wire) == ("count", "COUNT")
