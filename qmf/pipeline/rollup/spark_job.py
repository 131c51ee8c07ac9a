"""The job `rollup` on Spark: executors write the files, and one commit puts them into the table."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import attrs
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.delta_errors import delta_errors, import_deltalake
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.location import absolute
from qmf.pipeline.lake.row_columns import DATE
from qmf.pipeline.rollup.job import replaced, replaced_days
from qmf.pipeline.rollup.source import ClassSource, class_sources
from qmf.pipeline.rollup.stream import RollupStream
from qmf.pipeline.rollup.stream_windows import END_NS, WindowRange
from qmf.pipeline.rollup.tables import (
    PARTITIONS,
    WRITER,
    RollupOptions,
    class_name,
    rollup_schema,
    rollup_table,
)
from qmf.pipeline.rollup.tasks import KeptRows, WindowTask, add_actions, make_tasks, written_files
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
    sources = class_sources(options.lake, options.classes, options.storage)
    table = rollup_table(options, "batch")
    table.conform(rollup_schema())
    replacement = _replacement(table, options, sources)
    tasks = make_tasks(
        options.lake,
        sources,
        options.sizes,
        continued=options.continued,
        first=options.first,
        last=options.last,
        zone=options.zone,
    )
    progress: Any = nullcontext() if is_remote() else report_progress(spark, "rollup", print_line)
    with progress:
        # Rows of other classes in the same days are written again, so that one commit is enough.
        files = written_files(spark, [*tasks, *replacement.kept], table) if tasks else []
    rows: Counter[tuple[str, str, str]] = Counter()
    for file in files:
        if file["class"]:
            rows[file["package"], file["class"], file["size"]] += file["rows"]
    if rows.total():
        commit_files(table, files, replacement)
    for source in sources:
        for size in options.sizes:
            name, samples = class_name(source.versions), source.samples(options.first, options.last)
            made = rows[source.package, source.name, size]
            print_line(f"{name} by {size}: {samples} samples became {made} rows")
    print_line(f"Rolled up in {time.monotonic() - started:.1f} s")
    return rows.total()


@attrs.frozen
class ReplacedRows:
    """What a commit replaces: the rows of some partitions.

    Attributes:
        version: of the table of which `kept` are files; None where there is no table yet.
        sizes, days: the partitions.
        kept: tasks that write the rows again that stay.
    """

    version: int | None
    sizes: Sequence[str]
    days: Sequence[str]
    kept: Sequence[KeptRows] = ()

    @classmethod
    def of(cls, table: LakeTable, where: str, sizes: Sequence[str], days: Callable[[str], bool]) -> ReplacedRows:
        """The replacement of the rows that meet a condition, which may be a part of those of their partitions.

        Args:
            table: with the rows.
            where: condition in SQL.
            sizes: of the windows.
            days: True for days that may have such rows.
        """
        version = table.version()
        if version is None:
            return cls(None, sizes, ())
        kept = [
            KeptRows(table, file, size, where)
            for file in table.snapshot().files
            for size in sizes
            if file.path.startswith(f"size={size}/") and file.date is not None and days(file.date)
        ]
        return cls(version, sizes, sorted({str(task.file.date) for task in kept}), kept)


def _replacement(table: LakeTable, options: RollupOptions, sources: Sequence[ClassSource]) -> ReplacedRows:
    """What a batch replaces."""
    days = replaced_days(options, sources)
    if not options.classes:
        return ReplacedRows(table.version(), options.sizes, days)
    return ReplacedRows.of(table, replaced(options, sources), options.sizes, days.__contains__)


def commit_files(
    table: LakeTable, files: list[Any], replacement: ReplacedRows | None, numbers: Mapping[str, int] | None = None
) -> None:
    """Commit files that executors wrote, in one commit.

    Args:
        table: whose files they are.
        files: as `written_files` returns them, those of rows that are kept among them.
        replacement: the partitions that they replace; None for none.
        numbers: to commit with them.

    Raises:
        LakeError: the table cannot be written, or another process has written to it meanwhile.
    """
    delta = import_deltalake()
    with delta_errors(table.url):
        if table.version() is None:
            table.create(rollup_schema(), PARTITIONS)
        elif replacement is not None and replacement.kept and table.version() != replacement.version:
            raise LakeError(f"{table.url}: another process wrote to it meanwhile; try again")
        target = table.delta()
        all_numbers = {**(numbers or {}), WRITER: (table.last_batch(WRITER) or 0) + 1}
        transactions = [delta.Transaction(name, number) for name, number in all_numbers.items()]
        filters = None
        if replacement is not None and replacement.days and replacement.version is not None:
            filters = [("size", "in", list(replacement.sizes)), (DATE, "in", list(replacement.days))]
        target.create_write_transaction(
            add_actions(files),
            "append" if filters is None else "overwrite",
            target.schema(),
            list(PARTITIONS),
            filters,
            commit_properties=delta.CommitProperties(app_transactions=transactions),
        )


class SparkRollupStream(RollupStream):
    """A stream whose windows are rolled up by Spark's executors; see `RollupStream`."""

    def __init__(self, options: RollupOptions, spark: SparkSession) -> None:
        """As of `RollupStream`; `spark` is what to run on."""
        super().__init__(options, in_memory=False)
        self._spark = spark
        self._files: list[Any] = []
        self._first_day = ""
        self._table.conform(rollup_schema())

    def _roll_up(self, ranges: Sequence[WindowRange]) -> list[int]:
        tasks = []
        is_first = self._table.version() is None
        options = attrs.evolve(self._options, lake=absolute(self._options.lake), out=absolute(self._options.out))
        for windows in ranges:
            days = {date: windows.source.days[date] for date in windows.days}
            few = attrs.evolve(windows, source=attrs.evolve(windows.source, days=days))
            tasks.append(WindowTask(options, few, is_first))
        first = min(windows.start for windows in ranges)
        self._first_day = "" if first == -END_NS else self._options.zone.day(first)
        self._files = written_files(self._spark, tasks, self._table)
        rows: Counter[tuple[str, str, str]] = Counter()
        for file in self._files:
            rows[file["package"], file["class"], file["size"]] += file["rows"]
        return [rows[windows.source.package, windows.source.name, windows.size] for windows in ranges]

    def _store(self, where: str | None, numbers: Mapping[str, int]) -> None:
        replacement = None
        if where is not None:
            first = self._first_day
            replacement = ReplacedRows.of(self._table, where, self._options.sizes, lambda found: found >= first)
            if replacement.kept:
                self._files += written_files(self._spark, replacement.kept, self._table)
        commit_files(self._table, self._files, replacement, numbers)
