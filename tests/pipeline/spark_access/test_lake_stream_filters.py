"""Filters of Spark as conditions for rows: what is left out cannot meet them, as Spark understands them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pipeline.lakes import SECOND

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

import pyarrow as pa
from pyarrow import dataset, parquet
from pyspark.sql import datasource as spark

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import some_columns
from qmf.pipeline.lake.feed import FeedFile
from qmf.pipeline.lake.file_rows import WantedRows, file_rows
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.table_files import TableFile
from qmf.pipeline.spark_access.lake_stream import condition_of, may_have

TYPES = {
    "number": pa.int64(),
    "exact": pa.decimal128(20, 0),
    "real": pa.float64(),
    "text": pa.string(),
    "flag": pa.bool_(),
    "time": pa.timestamp("us", "UTC"),
}
EPOCH = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "number": st.integers(-3, 3),
    "exact": st.integers(0, 4).map(Decimal),
    "real": st.sampled_from([-1.5, 0.0, 2.0, math.nan, math.inf]),
    "text": st.text("ab%_", max_size=3),
    "flag": st.booleans(),
    "time": st.integers(0, 3).map(lambda days: EPOCH + datetime.timedelta(days=days)),
}

COMPARED = [spark.EqualTo, spark.LessThan, spark.LessThanOrEqual, spark.GreaterThan, spark.GreaterThanOrEqual]
TEXTS = [spark.StringStartsWith, spark.StringEndsWith, spark.StringContains]


@st.composite
def filters(draw: st.DrawFn) -> Any:
    column = draw(st.sampled_from(sorted(TYPES)))
    test = draw(st.sampled_from([*COMPARED, spark.In, spark.IsNull, spark.IsNotNull]))
    if column == "text" and draw(st.booleans()):
        test = draw(st.sampled_from(TEXTS))
    values = VALUES[column]
    made: Any
    if test is spark.In:
        made = test((column,), tuple(draw(st.lists(values, min_size=1, max_size=3))))
    else:
        made = test((column,)) if test in (spark.IsNull, spark.IsNotNull) else test((column,), draw(values))
    return spark.Not(made) if draw(st.booleans()) else made


ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}), min_size=1, max_size=12
)


def meets(row: dict[str, Any], item: Any) -> bool | None:
    """What Spark says; None where it is not known."""
    if isinstance(item, spark.Not):
        inner = meets(row, item.child)
        return None if inner is None else not inner
    value = row[item.attribute[0]]
    if isinstance(item, spark.IsNull | spark.IsNotNull):
        return (value is None) == isinstance(item, spark.IsNull)
    if value is None:
        return None

    def key(item: Any) -> Any:
        return (1, 0.0) if isinstance(item, float) and math.isnan(item) else (0, item)

    own, other = item.value, key(value)
    tests: dict[type, Callable[[], bool]] = {
        spark.In: lambda: any(key(item) == other for item in own),
        spark.EqualTo: lambda: other == key(own),
        spark.LessThan: lambda: other < key(own),
        spark.LessThanOrEqual: lambda: other <= key(own),
        spark.GreaterThan: lambda: other > key(own),
        spark.GreaterThanOrEqual: lambda: other >= key(own),
        spark.StringStartsWith: lambda: value.startswith(own),
        spark.StringEndsWith: lambda: value.endswith(own),
        spark.StringContains: lambda: own in value,
    }
    return tests[type(item)]()


def numbered(rows: list[dict[str, Any]]) -> Any:
    """Rows as an Arrow table, with their numbers."""
    table = pa.Table.from_pylist(rows, pa.schema(list(TYPES.items())))
    return table.append_column("at", pa.array(range(len(rows)), pa.int64()))


@given(ROWS, st.lists(filters(), min_size=1, max_size=3))
def test_the_rows_are_those_that_meet_all_filters(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], given: list[Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "groups.parquet"
    parquet.write_table(numbered(rows), path, row_group_size=3)
    fitting = [item for item in given if condition_of([item], TYPES) is not None]
    found = dataset.dataset(path).to_table(filter=condition_of(given, TYPES))
    assert found["at"].to_pylist() == [
        at for at, row in enumerate(rows) if all(meets(row, item) is True for item in fitting)
    ]
    # Only values that are no numbers are compared by Spark alone.
    assert all("nan" in str(item) for item in given if item not in fitting)


def test_other_filters_are_those_of_spark() -> None:
    others: list[Any] = [
        spark.EqualNullSafe(("number",), 1),
        spark.EqualTo(("no",), 1),
        spark.EqualTo(("number",), "one"),
    ]
    others += [spark.StringContains(("number",), "1"), spark.Not(spark.EqualTo(("number",), None))]
    assert condition_of(others, TYPES) is None


TIME = datetime.datetime.fromtimestamp(1, datetime.UTC)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (spark.GreaterThanOrEqual(("_ts",), EPOCH), False),
        (spark.LessThan(("_ts",), EPOCH), True),
        (spark.LessThan(("_ts",), TIME), False),
        (spark.LessThanOrEqual(("_ts",), TIME), True),
        (spark.GreaterThan(("_ts_ns",), SECOND), True),
        (spark.GreaterThan(("_ts_ns",), 2 * SECOND), False),
        (spark.EqualTo(("_received_ns",), 5), False),
        (spark.In(("_received_ns",), (5, SECOND)), True),
        (spark.EqualTo(("_run",), "r"), True),
        (spark.EqualTo(("_run",), "other"), False),
        (spark.Not(spark.EqualTo(("_run",), "other")), True),
        (spark.EqualTo(("_agent",), "a"), True),
        (spark.EqualTo(("_object",), "a"), False),
        (spark.IsNull(("_object",)), True),
    ],
)
def test_files_are_left_out_by_the_limits_in_the_log(item: Any, expected: bool) -> None:
    limits = (SECOND, 2 * SECOND, SECOND, 2 * SECOND, "", "", None, None, "b", "c")
    assert may_have(TableFile("p", "p", "1970-01-01", 1, 1, "r", *limits), [item]) is expected
    assert may_have(TableFile("q", "q", None, 1, 1), [item])


def test_row_groups_without_such_rows_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "groups.parquet"
    parquet.write_table(
        pa.table({"number": list(range(100)), "real": [at / 10 for at in range(100)]}), path, row_group_size=10
    )
    (fragment,) = dataset.dataset(path).get_fragments()

    def groups(item: Any) -> list[int]:
        found = fragment.split_by_row_group(condition_of([item], TYPES))
        return [group.id for one in found for group in one.row_groups]

    assert groups(spark.EqualTo(("number",), 35)) == [3]
    assert groups(spark.GreaterThan(("number",), 89)) == [9]
    assert groups(spark.In(("number",), (5, 200))) == [0]
    assert groups(spark.LessThan(("real",), 0.0)) == []


def test_a_file_with_several_row_groups_is_read_by_filters(tmp_path: Path) -> None:
    rows = pa.table({"_seq": list(range(100)), "_agent": [f"a{at // 30}" for at in range(100)]})
    parquet.write_table(rows, tmp_path / "part.parquet", row_group_size=10)
    item = FeedFile("agents", TableFile("part.parquet", f"{tmp_path}/part.parquet", None, 100, 1))
    columns = some_columns(RowKind.AGENTS, "_seq", "_agent", "_epoch")
    types = {"_seq": pa.int64(), "_agent": pa.string(), "_epoch": pa.int64()}

    def read(*filters: Any) -> list[int]:
        wanted = WantedRows(columns=columns, condition=condition_of(filters, types))
        batches = file_rows(LakeTable(str(tmp_path)), item, wanted)
        return [row["_seq"] for batch in batches for row in batch.to_pylist() if row["_epoch"] is None]

    assert read() == list(range(100))
    assert read(spark.EqualTo(("_agent",), "a1"), spark.GreaterThan(("_seq",), 55)) == [56, 57, 58, 59]
    assert read(spark.IsNull(("_epoch",)), spark.LessThan(("_seq",), 2)) == [0, 1]
    assert read(spark.EqualTo(("_epoch",), 1)) == read(spark.LessThan(("_seq",), 0)) == []
