"""Runners: what a job is given by each of them is the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.row_files import write_rows
from qmf.pipeline.lake.table_files import TableFile
from qmf.pipeline.runners.process import ProcessRunner
from qmf.pipeline.runners.runner import Runner, stored_rows

SCHEMA = pa.schema([("key", pa.string()), ("at", pa.int64())])
SUMS = pa.schema([("key", pa.string()), ("ats", pa.string())])

ROWS = [[("a", 3), ("b", 1)], [], [("a", 1), ("c", 7), ("b", 0)]]


SPARK = [pytest.param(name, marks=pytest.mark.slow) for name in ("spark", "connect")]


@pytest.fixture(params=["process", *SPARK])
def runner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Runner:
    if request.param == "process":
        return ProcessRunner(task_rows=2)
    from qmf.pipeline.runners import spark as spark_inputs
    from qmf.pipeline.runners.spark import SparkRunner

    if request.param == "connect":
        monkeypatch.setattr(spark_inputs, "is_remote", lambda: True)  # what a server of Spark Connect can do
    return SparkRunner(request.getfixturevalue("spark"), task_rows=2)


def made(_connection: Any, task: list[tuple[str, int]]) -> Iterator[Any]:
    """A map: the rows that a task has."""
    yield pa.RecordBatch.from_pylist([{"key": key, "at": at} for key, at in task], schema=SCHEMA)


def listed(_connection: Any, batches: Iterator[Any]) -> Iterator[Any]:
    """A reduce: all times of each key, in the order in which they come."""
    found: dict[str, list[str]] = {}
    for batch in batches:
        for row in batch.to_pylist():
            found.setdefault(row["key"], []).append(str(row["at"]))
    rows = [{"key": key, "ats": " ".join(ats)} for key, ats in found.items()]
    yield pa.RecordBatch.from_pylist(rows, schema=SUMS)


def doubled(task: int) -> int:
    return 2 * task


def test_rows_are_mapped_chosen_brought_together_and_sorted(runner: Runner, tmp_path: Path) -> None:
    rows = runner.map(ROWS, made, SCHEMA)
    more = rows.union(runner.from_arrow(pa.table({"key": ["d"], "at": [2]}, SCHEMA)))
    with more.persist() as kept:
        sums = kept.reduce(["key"], listed, SUMS, order=["at"]).table().to_pylist()
        assert sorted((row["key"], row["ats"]) for row in sums) == [("a", "1 3"), ("b", "0 1"), ("c", "7"), ("d", "2")]
        chosen = kept.where("key", ["c", "d"]).select(["at"]).table()
        assert (sorted(chosen["at"].to_pylist()), chosen.schema.names) == ([2, 7], ["at"])
        table = LakeTable(str(tmp_path / "table"))
        written = kept.write(table, by=["key"], order=["at"], counted=["key"])
        assert (written.rows, written.counts) == (6, {("a",): 2, ("b",): 2, ("c",): 1, ("d",): 1})
        table.commit_files(written.files, SCHEMA, partition_by=["key"])
    query = 'select "at" from qmf_stored where "at" > 1'
    found = stored_rows(runner, table, pa.schema([("at", pa.int64())]), query).table()
    assert sorted(found["at"].to_pylist()) == [2, 3, 7]
    assert table.delta().to_pyarrow_table(filters=[("at", ">", 2)]).num_rows == 2


def counted(_connection: Any, batches: Iterator[Any]) -> Iterator[Any]:
    """A reduce: the times of a share, in the order in which they come."""
    ats = [str(at) for batch in batches for at in batch["at"].to_pylist()]
    yield pa.RecordBatch.from_pylist([{"key": "", "ats": " ".join(ats)}], schema=SUMS)


@pytest.mark.slow
def test_numbers_are_shares(request: pytest.FixtureRequest) -> None:
    from qmf.pipeline.runners.spark import SparkRunner

    runner = SparkRunner(request.getfixturevalue("spark"))
    tasks = [[("b", number), ("a", number)] for number in range(4)]
    shares = runner.map(tasks, made, SCHEMA).reduce(["at"], counted, SUMS, order=["key"], numbered=True)
    assert sorted(shares.table()["ats"].to_pylist()) == ["0 0", "1 1", "2 2", "3 3"]


def partition(_task: int) -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


def placed(_connection: Any, task: int) -> Iterator[Any]:
    """A map: the partition of the task."""
    yield pa.RecordBatch.from_pylist([{"key": "one", "at": partition(task)}], schema=SCHEMA)


@pytest.mark.slow
def test_spark_gives_each_partition_one_task_before_a_shuffle(request: pytest.FixtureRequest) -> None:
    from qmf.pipeline.runners.spark import SparkRunner

    rows = SparkRunner(request.getfixturevalue("spark")).map(list(range(8)), placed, SCHEMA)
    (found,) = rows.reduce(["key"], listed, SUMS, order=["at"]).table().to_pylist()
    assert found["ats"] == "0 1 2 3 4 5 6 7"


@pytest.mark.slow
def test_spark_has_a_task_for_each_and_no_shuffle_for_one(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    from qmf.pipeline.runners.spark import SparkRows, SparkRunner

    spark = request.getfixturevalue("spark")
    runner = SparkRunner(spark)
    assert len(set(runner.each(list(range(7)), partition))) == 7

    def plan(tasks: list[list[tuple[str, int]]]) -> str:
        rows = runner.map(tasks, made, SCHEMA).reduce(["key"], listed, SUMS, order=["at"])
        assert isinstance(rows, SparkRows)
        rows.explain()
        return capsys.readouterr().out

    assert "Exchange" not in plan(ROWS[:1])
    assert "Exchange" in plan(ROWS)


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "tasks"), [((200_000, 200_000), 1), ((600_000, 600_000), 2), ((900_000,) * 7, 3)])
def test_spark_divides_files_among_its_processors(
    request: pytest.FixtureRequest, rows: tuple[int, ...], tasks: int
) -> None:
    from qmf.pipeline.runners.spark import SparkRunner

    files = [TableFile(f"part-{number}", "", None, own, 0) for number, own in enumerate(rows)]
    assert len(SparkRunner(request.getfixturevalue("spark")).portions({"table": files})) == tasks


@pytest.mark.parametrize("tasks", [ROWS[:1], ROWS], ids=["one task", "three tasks"])
def test_rows_that_are_kept_are_joined_with_others_and_chosen_twice(
    runner: Runner, tasks: list[list[tuple[str, int]]]
) -> None:
    rows = runner.map(tasks, made, SCHEMA)
    with rows.persist() as kept:
        sums = kept.reduce(["key"], listed, SUMS, order=["at"])
        both = kept.where("key", ["a"]).union(kept.where("key", ["a", "b"])).table().to_pylist()
        expected = [(key, at) for task in tasks for key, at in task if key in "ab"]
        expected += [(key, at) for key, at in expected if key == "a"]
        assert sorted((row["key"], row["at"]) for row in both) == sorted(expected)
        with sums.persist() as kept_sums:
            more = kept_sums.union(sums.where("key", ["b"])).table()
            numbers = sorted(row["ats"] for row in more.to_pylist() if row["key"] == "b")
            assert numbers == [" ".join(sorted(str(at) for key, at in expected if key == "b"))] * 2
        with runner.map(ROWS[2:], made, SCHEMA).persist() as others:
            assert kept.union(others).union(rows).table().num_rows == 2 * sum(map(len, tasks)) + len(ROWS[2])


def test_values_of_tasks_come_in_their_order(runner: Runner) -> None:
    assert runner.each(list(range(5)), doubled) == [0, 2, 4, 6, 8]
    assert runner.each([], doubled) == []


def test_files_become_tasks_by_their_size(runner: Runner, tmp_path: Path) -> None:
    table = LakeTable(str(tmp_path / "table"))
    for number in range(3):
        rows = pa.table({"key": ["a", "b"], "at": [number, number]}, SCHEMA)
        table.commit_files(write_rows(table, rows.to_batches(), SCHEMA).files, SCHEMA)
    files = table.snapshot().files
    portions = runner.portions({"table": files, "none": []})
    assert [len(own["table"]) for own in portions] == [1, 1, 1]
    assert len(ProcessRunner().portions({"table": files})) == 1


def test_an_error_of_a_task_is_raised_as_it_is(tmp_path: Path) -> None:
    def failing(_connection: Any, _task: int) -> Iterator[Any]:
        yield from made(None, [("a", 1)])
        raise LakeError("the file is gone")

    table = LakeTable(str(tmp_path / "table"))
    with pytest.raises(LakeError, match=r"^the file is gone$"):
        ProcessRunner().map([1], failing, SCHEMA).write(table)
    assert not list(tmp_path.rglob("*.parquet"))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("qmf-rows")]


@given(tasks=st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-9, 9)), max_size=5), max_size=5))
def test_a_reduce_gets_each_row_once(tasks: list[list[tuple[str, int]]]) -> None:
    rows = ProcessRunner().map(tasks, made, SCHEMA).reduce(["key"], listed, SUMS, order=["at"]).table()
    expected: dict[str, list[int]] = {}
    for key, at in (row for task in tasks for row in task):
        expected.setdefault(key, []).append(at)
    found = {row["key"]: [int(at) for at in row["ats"].split()] for row in rows.to_pylist()}
    assert found == {key: sorted(ats) for key, ats in expected.items()}
