"""Rows that count, told by the columns of Arrow tables: the same as by their meaning, row by row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pipeline.lakes import Shop

from qmf.pipeline.lake.counted_rows import CountedRows
from qmf.pipeline.lake.runs import LeftOut

NAMES = st.sampled_from(["a", "b", "ab", ""])
TIMES = st.integers(0, 9)

LEFT_OUT = st.lists(
    st.builds(
        lambda agent, run, first, length: LeftOut(agent, run, first, first + length, ""), NAMES, NAMES, TIMES, TIMES
    )
)
ROWS = st.lists(st.fixed_dictionaries({"_agent": NAMES | st.none(), "_run": NAMES, "_ts_ns": TIMES}))
SCHEMA = pa.schema([("_agent", pa.string()), ("_run", pa.string()), ("_ts_ns", pa.int64())])


def is_left_out(row: dict[str, Any], by: LeftOut) -> bool:
    return (row["_agent"], row["_run"]) == (by.agent, by.run) and by.first_ns <= row["_ts_ns"] < by.end_ns


@given(LEFT_OUT, ROWS)
def test_rows_count_that_nothing_leaves_out(left_out: list[LeftOut], rows: list[dict[str, Any]]) -> None:
    expected = [row for row in rows if not any(is_left_out(row, by) for by in left_out)]
    counted = CountedRows(left_out)
    table = pa.Table.from_pylist(rows, SCHEMA)
    assert counted.of(table).to_pylist() == expected
    assert [row for batch in table.to_batches() for row in counted.of(batch).to_pylist()] == expected


def test_duckdb_reads_the_rows_that_count_of_files(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake", run="run")
    shop.put(*((at, at) for at in range(10)))
    table = shop.lake.table("objects/org.example.shop/till")
    left_out = [LeftOut("a", "run", 2 * 10**9, 4 * 10**9, ""), LeftOut("a", "run", 7 * 10**9, 9 * 10**9, "")]
    data = table.dataset(table.snapshot().files).choose(CountedRows(left_out))
    with duckdb.connect() as connection:
        connection.register("data", data)
        assert connection.execute("select sales from data order by all").fetchall() == [
            (sales,) for sales in (0, 1, 4, 5, 6, 9)
        ]
        assert connection.execute("select count(*) from data where sales > 4").fetchall() == [(3,)]
    assert (data.count_rows(), data.to_table(columns=["sales"]).column_names) == (6, ["sales"])
