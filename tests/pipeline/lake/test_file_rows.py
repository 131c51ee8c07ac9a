"""Conditions for rows: what is left out cannot meet them, as Spark understands them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from qmf.pipeline.lake.file_rows import (
    AT_LEAST,
    AT_MOST,
    CONTAINS,
    ENDS,
    EQUAL,
    GREATER,
    IN,
    IS_NULL,
    LESS,
    STARTS,
    RowCondition,
    conjunction,
    may_have,
    row_groups,
)
from qmf.pipeline.lake.table_files import TableFile

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

COMPARED = [
    EQUAL,
    LESS,
    AT_MOST,
    GREATER,
    AT_LEAST,
]


@st.composite
def conditions(draw: st.DrawFn) -> RowCondition:
    column = draw(st.sampled_from(sorted(TYPES)))
    test = draw(st.sampled_from([*COMPARED, IN, IS_NULL]))
    if column == "text" and draw(st.booleans()):
        test = draw(st.sampled_from([STARTS, ENDS, CONTAINS]))
    values = VALUES[column]
    value: Any = None
    if test == IN:
        value = tuple(draw(st.lists(values, min_size=1, max_size=3)))
    elif test != IS_NULL:
        value = draw(values)
    return RowCondition(column, test, value, draw(st.booleans()))


ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}), min_size=1, max_size=12
)


def meets(value: Any, condition: RowCondition) -> bool:
    """What Spark says."""
    if condition.test == IS_NULL:
        return (value is None) != condition.negated
    if value is None:
        return False

    def key(item: Any) -> Any:
        return (1, 0.0) if isinstance(item, float) and math.isnan(item) else (0, item)

    own, other = condition.value, key(value)
    tests: dict[str, Callable[[], bool]] = {
        IN: lambda: any(key(item) == other for item in own),
        EQUAL: lambda: other == key(own),
        LESS: lambda: other < key(own),
        AT_MOST: lambda: other <= key(own),
        GREATER: lambda: other > key(own),
        AT_LEAST: lambda: other >= key(own),
        STARTS: lambda: value.startswith(own),
        ENDS: lambda: value.endswith(own),
        CONTAINS: lambda: own in value,
    }
    return bool(tests[condition.test]()) != condition.negated


def numbered(rows: list[dict[str, Any]]) -> Any:
    """Rows as an Arrow table, with their numbers."""
    table = pa.Table.from_pylist(rows, pa.schema(list(TYPES.items())))
    return table.append_column("at", pa.array(range(len(rows)), pa.int64()))


@given(ROWS, st.lists(conditions(), min_size=1, max_size=3))
def test_the_rows_are_those_that_meet_all_conditions(rows: list[dict[str, Any]], given: list[RowCondition]) -> None:
    fitting = [item for item in given if item.fits(TYPES[item.column])]
    table = numbered(rows)
    expression = conjunction(fitting, TYPES)
    found = table if expression is None else table.filter(expression)
    expected = [at for at, row in enumerate(rows) if all(meets(row[item.column], item) for item in fitting)]
    assert found["at"].to_pylist() == expected
    # Only values that are no numbers, and none, are compared by Spark alone.
    assert all(item.value is None or "nan" in str(item.value) for item in given if item not in fitting)


@given(ROWS, conditions())
def test_row_groups_that_may_have_such_rows_are_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], condition: RowCondition
) -> None:
    path = tmp_path_factory.getbasetemp() / "groups.parquet"
    parquet.write_table(numbered(rows), path, row_group_size=3)
    if not condition.fits(TYPES[condition.column]):
        return
    with parquet.ParquetFile(path) as file:
        groups = row_groups(file, [condition])
        everything = range(file.metadata.num_row_groups)
        read = file.read_row_groups(everything if groups is None else groups)["at"].to_pylist()
    assert {at for at, row in enumerate(rows) if meets(row[condition.column], condition)} <= set(read)


def test_row_groups_without_such_rows_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "groups.parquet"
    parquet.write_table(pa.table({"number": list(range(100))}), path, row_group_size=10)
    with parquet.ParquetFile(path) as file:
        assert row_groups(file, [RowCondition("number", EQUAL, 35)]) == [3]
        assert row_groups(file, [RowCondition("number", GREATER, 89)]) == [9]
        assert row_groups(file, [RowCondition("number", IN, (5, 200))]) == [0]
        assert row_groups(file, [RowCondition("number", LESS, 0)]) == []
        assert row_groups(file, []) is None


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (RowCondition("_ts", AT_LEAST, EPOCH), False),
        (RowCondition("_ts", LESS, EPOCH), True),
        (RowCondition("_ts_ns", GREATER, 10**9), True),
        (RowCondition("_ts_ns", GREATER, 2 * 10**9), False),
        (RowCondition("_received_ns", EQUAL, 5), False),
        (RowCondition("_run", EQUAL, "r"), True),
        (RowCondition("_run", EQUAL, "other"), False),
        (RowCondition("_run", EQUAL, "other", negated=True), True),
        (RowCondition("_agent", EQUAL, "a"), True),
    ],
)
def test_files_are_left_out_by_the_limits_in_the_log(condition: RowCondition, expected: bool) -> None:
    file = TableFile("p", "p", "1970-01-01", 1, 1, "r", 10**9, 2 * 10**9, 10**9, 2 * 10**9)
    assert may_have(file, [condition]) is expected
    assert may_have(TableFile("p", "p", None, 1, 1), [condition])
