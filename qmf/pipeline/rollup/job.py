"""The job `rollup` on Spark: executors write the files, and one commit puts them into the table."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from qmf.pipeline.aggregation.columns import ROLLUP_COLUMNS
from qmf.pipeline.aggregation.job import replaced
from qmf.pipeline.aggregation.source import class_sources
from qmf.pipeline.aggregation.stream import RollupStream
from qmf.pipeline.aggregation.stream_windows import WindowRange
from qmf.pipeline.aggregation.tables import PARTITIONS, WRITER, RollupOptions, class_name, rollup_table
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.days import day
from qmf.pipeline.lake.delta_errors import delta_errors, import_deltalake
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.row_columns import DATE
from qmf.pipeline.rollup.tasks import WindowTask, add_actions, make_tasks, rolled_up_rows, written_files
from qmf.pipeline.spark.batch_progress import PrintLine, report_progress


def rollup_batch(spark: SparkSession, options: RollupOptions, print_line: PrintLine) -> int:
    """Roll up the content of a lake.

    Args:
        spark: to run on; its executors read the lake and write the table themselves.
        options: of the rollup.
        print_line: called for each class and size that is done.

    Returns:
        rows written.

    Raises:
        PipelineError: no such class, or not a size of windows.
        LakeError: a table cannot be read or written.
    """
    options.check()
    started = time.monotonic()
    sources = class_sources(options.lake, options.classes)
    table = rollup_table(options, "batch")
    tasks = make_tasks(
        options.lake, sources, options.sizes, continued=options.continued, first=options.first, last=options.last
    )
    progress: Any = nullcontext() if is_remote() else report_progress(spark, "rollup", print_line)
    with progress:
        files = written_files(spark, tasks, table.url) if tasks else []
    rows: Counter[tuple[str, str, str]] = Counter()
    for file in files:
        rows[file["package"], file["class"], file["size"]] += file["rows"]
    if files:
        _commit(table, options, files, replaced(options, sources))
    for source in sources:
        for size in options.sizes:
            name, samples = class_name(source.versions), source.samples(options.first, options.last)
            made = rows[source.package, source.name, size]
            print_line(f"{name} by {size}: {samples} samples became {made} rows")
    print_line(f"Rolled up in {time.monotonic() - started:.1f} s")
    return rows.total()


def rolled_up_lake(
    spark: SparkSession,
    lake: str,
    size: str,
    *,
    classes: tuple[str, ...] = (),
    continued: bool = False,
    times: tuple[int, int] | None = None,
) -> DataFrame:
    """The roll-up of a lake as a frame, with the columns of the table.

    Args:
        spark: to run on.
        lake: a folder, or a URL that the library's object stores know.
        size: of the windows.
        classes: names, with or without ``package:``; none for all.
        continued: counters outlive restarts of their agents.
        times: the first time in nanoseconds, and the one after the last; samples outside are left out.

    Raises:
        LakeError: no lake, or no such class.
    """
    sources = class_sources(lake, classes)
    if times is None:
        return rolled_up_rows(spark, make_tasks(lake, sources, (size,), continued=continued))
    inside = [source.within(*times) for source in sources]
    days = {"first": day(times[0]), "last": day(times[1] - 1)}
    return rolled_up_rows(spark, make_tasks(lake, inside, (size,), continued=continued, **days))


def _commit(table: LakeTable, options: RollupOptions, files: list[Any], where: str) -> None:
    """Replace the rows of a batch by those of files."""
    if options.classes:
        # Files of several classes must be written again without these rows.
        commit_files(table, files, deleted=where)
    else:
        days = sorted({file[DATE] for file in files})
        commit_files(table, files, replaced=[("size", "in", list(options.sizes)), (DATE, "in", days)])


def commit_files(
    table: LakeTable,
    files: list[Any],
    *,
    deleted: str | None = None,
    replaced: list[tuple[str, str, list[str]]] | None = None,
    numbers: Mapping[str, int] | None = None,
) -> None:
    """Commit files that executors wrote.

    Args:
        table: whose files they are.
        files: as `written_files` returns them.
        deleted: condition in SQL for rows to delete before, in a commit of its own.
        replaced: conditions for the partitions that the files replace; None for none.
        numbers: to commit with them.
    """
    delta = import_deltalake()
    with delta_errors(table.url):
        if table.version() is None:
            delta.DeltaTable.create(table.url, delta.Schema.from_arrow(_schema()), partition_by=list(PARTITIONS))
        target = table.delta()
        if deleted is not None:
            target.delete(deleted)
        all_numbers = {**(numbers or {}), WRITER: (table.last_batch(WRITER) or 0) + 1}
        transactions = [delta.Transaction(name, number) for name, number in all_numbers.items()]
        target.create_write_transaction(
            add_actions(files),
            "append" if replaced is None else "overwrite",
            target.schema(),
            list(PARTITIONS),
            replaced,
            commit_properties=delta.CommitProperties(app_transactions=transactions),
        )


class SparkRollupStream(RollupStream):
    """A stream whose windows are rolled up by Spark's executors; see `RollupStream`."""

    def __init__(self, options: RollupOptions, spark: SparkSession) -> None:
        """As of `RollupStream`; `spark` is what to run on."""
        super().__init__(options, in_memory=False)
        self._spark = spark
        self._files: list[Any] = []

    def _roll_up(self, ranges: Sequence[WindowRange]) -> list[int]:
        tasks = []
        for windows in ranges:
            days = {day: windows.source.days[day] for day in windows.days}
            few = attrs.evolve(windows, source=attrs.evolve(windows.source, days=days))
            tasks.append(WindowTask(self._options, few))
        self._files = written_files(self._spark, tasks, self._table.url)
        rows: Counter[tuple[str, str, str]] = Counter()
        for file in self._files:
            rows[file["package"], file["class"], file["size"]] += file["rows"]
        return [rows[windows.source.package, windows.source.name, windows.size] for windows in ranges]

    def _store(self, where: str | None, numbers: Mapping[str, int]) -> None:
        # A kill between the two commits leaves out windows that are not complete; the next step writes them.
        commit_files(self._table, self._files, deleted=where, numbers=numbers)


def _schema() -> Any:
    """The columns of the table."""
    pa = import_pyarrow()
    types = {
        "timestamptz": pa.timestamp("us", "UTC"),
        "varchar": pa.string(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
    }
    fields = [(name, types.get(type) or pa.decimal128(38, 0)) for name, type in ROLLUP_COLUMNS.items()]
    return pa.schema([*((name, pa.string()) for name in PARTITIONS), *fields])
