"""Pieces of work for executors: the roll-up of a day of a class, or of a part of its objects.

A task reads the files of its day itself, and what it needs of the days before, so no samples go through Spark. Its rows
go back to Spark, or into a file of the table; then only the file's name and statistics go back, and the driver commits
them.
"""

from __future__ import annotations

import json
import pickle
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

import attrs
from pyspark.sql import DataFrame, SparkSession

from qmf.pipeline.aggregation.day import ClassRollup
from qmf.pipeline.aggregation.rows import LOOK_BACK_DAYS
from qmf.pipeline.aggregation.source import ClassSource, day_start_ns
from qmf.pipeline.duckdb_queries import duckdb_errors
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.lake_table import DATE, LakeTable
from qmf.pipeline.rollup.frames import ROLLUP, arrow_batches, executor_connection

#: Samples of a task; a day of a class that has more is divided by its objects.
TASK_SAMPLES = 5_000_000

#: What a task says about a file that it wrote.
WRITTEN = (
    f"`package` string, `class` string, `size` string, `{DATE}` string, `path` string, "
    "`bytes` bigint, `rows` bigint, `stats` string"
)


@attrs.frozen
class RollupTask:
    """A piece of work.

    Attributes:
        lake: for errors.
        source: the samples of the day, and those of the days before in which the samples before it are looked for.
        day: to roll up.
        sizes: of the windows.
        continued: counters outlive restarts of their agents.
    """

    lake: str
    source: ClassSource
    day: str
    sizes: tuple[str, ...]
    continued: bool

    def run(self) -> Iterator[tuple[Any, str, str]]:
        """Do the work: yields the connection, a size and the table with its rows."""
        with (
            closing(executor_connection()) as connection,
            duckdb_errors(self.lake),
            closing(ClassRollup(connection, self.source, self.sizes, self.continued)) as rollup,
            rollup.day(self.day) as tables,
        ):
            for size, table in tables.items():
                yield connection, size, table


def make_tasks(
    lake: str,
    sources: Iterable[ClassSource],
    sizes: Sequence[str],
    *,
    continued: bool,
    first: str | None = None,
    last: str | None = None,
) -> list[RollupTask]:
    """The pieces of the roll-up of some days, see `RollupTask`."""
    tasks = []
    for source in sources:
        for day in source.between(first, last) if source.members else ():
            oldest = day_start_ns(day) - LOOK_BACK_DAYS * 86_400 * 10**9
            days = {
                other: source.days[other] for other in source.days if other <= day and day_start_ns(other) >= oldest
            }
            parts = -(-source.samples(day, day) // TASK_SAMPLES)
            for part in range(max(parts, 1)):
                conditions = [source.where] if source.where else []
                conditions += [f"hash(_object) % {parts} = {part}"] if parts > 1 else []
                tasks.append(
                    RollupTask(
                        lake,
                        attrs.evolve(source, days=days, where=" and ".join(conditions)),
                        day,
                        tuple(sizes),
                        continued,
                    )
                )
    return tasks


def rolled_up_rows(spark: SparkSession, tasks: Sequence[RollupTask]) -> DataFrame:
    """The rows of some tasks, of one size."""

    def work(task: RollupTask) -> Iterator[Any]:
        for connection, _, table in task.run():
            yield from arrow_batches(connection, f"from {table}")

    return _frame(spark, tasks).mapInArrow(_each(work), ROLLUP)


def written_files(spark: SparkSession, tasks: Sequence[RollupTask], table: str) -> list[Any]:
    """Run tasks, each of which writes its files into the folder of a table; returns `WRITTEN` of each file."""

    def work(task: RollupTask) -> Iterator[Any]:
        for connection, size, rows in task.run():
            yield _write(connection, rows, table, task, size)

    return _frame(spark, tasks).mapInArrow(_each(work), WRITTEN).collect()


def _frame(spark: SparkSession, tasks: Sequence[RollupTask]) -> DataFrame:
    """A partition for each task."""
    return spark.createDataFrame([(pickle.dumps(task),) for task in tasks], "task binary").repartition(len(tasks) or 1)


def _each(work: Callable[[RollupTask], Iterator[Any]]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def run(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for data in batch.column(0):
                yield from work(pickle.loads(data.as_py()))

    return run


def _write(connection: Any, rows: str, table: str, task: RollupTask, size: str) -> Any:
    """Write a file, and say what is in it."""
    pa = import_pyarrow()
    found = connection.sql(f"from {rows}").to_arrow_table()
    # A name of its own for each attempt: what an attempt that failed has written is never committed.
    path = f"size={size}/{DATE}={task.day}/part-{uuid.uuid4()}.parquet"
    store = LakeTable(table).store()
    store.create_dir(path.rpartition("/")[0], recursive=True)
    with store.open_output_stream(path) as target:
        pa.parquet.write_table(found, target, compression="zstd")
    ((low, high),) = connection.execute(f"select min(first_ns), max(first_ns) from {rows}").fetchall()
    stats = {
        "numRecords": found.num_rows,
        "minValues": {"first_ns": low},
        "maxValues": {"first_ns": high},
        "nullCount": {"first_ns": 0},
    }
    values = {
        "package": task.source.package,
        "class": task.source.name,
        "size": size,
        DATE: task.day,
        "path": path,
        "bytes": store.get_file_info(path).size,
        "rows": found.num_rows,
        "stats": json.dumps(stats),
    }
    return pa.RecordBatch.from_pylist([values])


def add_actions(files: Iterable[Any]) -> list[Any]:
    """Written files as the library commits them."""
    from deltalake.transaction import AddAction

    now = int(time.time() * 1000)
    return [
        AddAction(file["path"], file["bytes"], {"size": file["size"], DATE: file[DATE]}, now, True, file["stats"])
        for file in files
    ]
