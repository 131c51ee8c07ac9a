"""One Delta table: batches committed once, versions, files that came between two versions."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.columns import DATE
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.row_files import write_rows


def rows(*numbers: int, day: str = "2030-01-31", run: str = "r", **more: pa.Array) -> pa.Table:
    columns = {
        "_run": pa.array([run] * len(numbers)),
        "_ts_ns": pa.array(numbers, pa.int64()),
        DATE: pa.array([day] * len(numbers)),
    }
    return pa.table({**columns, **more})


def read(table: LakeTable) -> list[dict[str, object]]:
    found = table.dataset(table.snapshot().files).to_table()
    return sorted(found.to_pylist(), key=lambda row: row["_ts_ns"])


@pytest.fixture
def table(tmp_path: Path) -> LakeTable:
    return LakeTable(str(tmp_path / "table"))


def test_a_batch_is_committed_once(table: LakeTable, tmp_path: Path) -> None:
    assert table.version() is None
    assert table.last_batch("a") is None
    assert table.append(rows(1, 2), writer="a", batch=1)
    assert not table.append(rows(1, 2), writer="a", batch=1)
    assert table.append(rows(3), writer="b", batch=1)
    again = LakeTable(str(tmp_path / "table"))
    assert not again.append(rows(1, 2), writer="a", batch=1)
    assert again.append(rows(4), writer="a", batch=2)
    assert table.last_batch("a") == 2
    assert [row["_ts_ns"] for row in read(table)] == [1, 2, 3, 4]


def test_new_columns_join_the_table(table: LakeTable) -> None:
    table.append(rows(1), writer="a", batch=1)
    table.append(rows(2, x=pa.array([7], pa.int16())), writer="a", batch=2)
    assert table.schema().field("x").type == pa.int16()
    assert [row["x"] for row in read(table)] == [None, 7]


def test_another_type_is_refused_in_one_line_and_changes_nothing(table: LakeTable) -> None:
    table.append(rows(1, x=pa.array([7], pa.int16())), writer="a", batch=1)
    with pytest.raises(LakeError) as caught:
        table.append(rows(2, x=pa.array(["text"])), writer="a", batch=2)
    assert table.url in str(caught.value)
    assert "\n" not in str(caught.value)
    assert table.version() == 0


def test_files_know_their_day_their_run_and_their_times(table: LakeTable) -> None:
    table.append(rows(5, 9), writer="a", batch=1)
    table.append(rows(1, day="2030-01-30", run="s"), writer="a", batch=2)
    first, second = table.snapshot().files
    assert (first.date, first.run, first.rows, first.first_ns, first.last_ns) == ("2030-01-30", "s", 1, 1, 1)
    assert (second.date, second.run, second.rows, second.first_ns, second.last_ns) == ("2030-01-31", "r", 2, 5, 9)
    assert Path(second.url).stat().st_size == second.size


def test_what_came_between_two_versions(table: LakeTable) -> None:
    table.append(rows(1), writer="a", batch=1)
    table.append(rows(2), writer="a", batch=2)
    table.append(rows(3), writer="a", batch=3)
    assert [file.first_ns for file in table.added_files(0, 2)] == [2, 3]
    assert [file.first_ns for file in table.added_files(None, 1)] == [1, 2]
    assert table.added_files(2, 2) == ()


def test_moved_rows_are_not_new(table: LakeTable) -> None:
    for batch in range(4):
        table.append(rows(batch), writer="a", batch=batch)
    table.delta().optimize.compact()
    table.append(rows(9), writer="a", batch=9)
    last = table.version()
    assert last == 5
    assert [file.first_ns for file in table.added_files(3, last)] == [9]
    assert [file.first_ns for file in table.added_files(1, last)] == [2, 3, 9]
    assert len(table.snapshot().files) == 2


def test_rows_are_replaced_by_a_condition(table: LakeTable) -> None:
    table.append(rows(1), writer="a", batch=1)
    table.append(rows(2, day="2030-01-30"), writer="a", batch=2)
    assert table.replace(rows(3), where=f"{DATE} = '2030-01-31'", writer="a", batch=3)
    assert not table.replace(rows(4), where=f"{DATE} = '2030-01-31'", writer="a", batch=3)
    assert [row["_ts_ns"] for row in read(table)] == [2, 3]


def test_a_table_is_made_by_a_replacement(table: LakeTable) -> None:
    table.replace(rows(3), where=f"{DATE} = '2030-01-31'", writer="a", batch=1)
    assert [row["_ts_ns"] for row in read(table)] == [3]


def test_versions_by_number_and_by_time(table: LakeTable) -> None:
    table.append(rows(1), writer="a", batch=1)
    table.append(rows(2), writer="a", batch=2)
    assert table.snapshot(0).rows == 1
    assert table.snapshot(datetime.datetime.now(datetime.UTC)).rows == 2
    with pytest.raises(LakeError, match="table"):
        table.snapshot(7)


def test_an_empty_batch_makes_no_commit(table: LakeTable) -> None:
    table.append(rows(1), writer="a", batch=1)
    table.append(rows(), writer="a", batch=2)
    assert table.version() == 0


def test_a_missing_table_has_a_clear_error(table: LakeTable) -> None:
    with pytest.raises(LakeError, match=r"no such table"):
        table.snapshot()


def test_a_damaged_log_names_the_table(table: LakeTable) -> None:
    table.append(rows(1), writer="a", batch=1)
    Path(table.url, "_delta_log", "00000000000000000000.json").write_text('{"add": {"pa')
    with pytest.raises(LakeError) as caught:
        LakeTable(table.url).snapshot()
    assert table.url in str(caught.value)
    assert "\n" not in str(caught.value)


def write(table: LakeTable, columns: pa.Table, **options: Any) -> bool:
    """Write the rows of a day as files, and commit these."""
    written = write_rows(table, columns.to_batches(), columns.schema, by=(DATE,))
    assert [Path(table.url, file.path).stat().st_size for file in written.files] == [
        file.size for file in written.files
    ]
    return table.commit_files(written.files, columns.schema, partition_by=(DATE,), **options)


def test_files_that_were_written_elsewhere_are_committed_once(table: LakeTable) -> None:
    assert write(table, rows(1), writer="a", batch=0)
    assert not write(table, rows(1), writer="a", batch=0)
    assert write(table, rows(2, x=pa.array([7])), writer="a", batch=1)
    assert [(row["_ts_ns"], row["x"]) for row in read(table)] == [(1, None), (2, 7)]
    with pytest.raises(LakeError, match="x is int64 in the table"):
        write(table, rows(3, x=pa.array(["text"])), writer="a", batch=2)
    assert write(table, rows(4, day="2030-02-01"), replace=True, where={DATE: ["2030-02-01"]})
    assert write(table, rows(5), replace=True, where={DATE: ["2030-01-31"]})
    assert [row["_ts_ns"] for row in read(table)] == [4, 5]
    assert write(table, rows(6), replace=True)
    assert [row["_ts_ns"] for row in read(table)] == [6]
