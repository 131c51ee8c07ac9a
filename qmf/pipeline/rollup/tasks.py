"""Pieces of the work on a table of roll-ups, which know no runner: each makes rows with the columns of the table.

A task reads the files of its days itself, and what it needs of the days before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import attrs

from qmf.pipeline.duckdb_queries import duckdb_errors, quote_name, text
from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.columns import DATE
from qmf.pipeline.lake.days import NS_PER_DAY
from qmf.pipeline.lake.days import day as utc_day
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.table_files import TableFile
from qmf.pipeline.rollup.class_rollup import ClassRollup
from qmf.pipeline.rollup.columns import ROLLUP_COLUMNS
from qmf.pipeline.rollup.rows import LOOK_BACK_DAYS
from qmf.pipeline.rollup.source import ClassSource
from qmf.pipeline.rollup.stream_memory import NewSamples, StreamMemory
from qmf.pipeline.rollup.stream_windows import END_NS, WindowRange, WindowRollup
from qmf.pipeline.rollup.tables import OUT, RollupOptions, rollup_table
from qmf.pipeline.runners.runner import duckdb_batches


@attrs.frozen
class ClassTask:
    """The roll-up of some days of a class, in their order.

    The samples are those of the days, and of the days before in which the samples before them are looked for.
    """

    options: RollupOptions
    source: ClassSource
    days: tuple[str, ...]

    def rows(self, connection: Any) -> Iterator[Any]:
        """The rows as record batches."""
        options, zone = self.options, self.options.zone
        rollup = ClassRollup(connection, self.source, options.sizes, options.continued, zone)
        with lake_errors(options.lake):
            for rows in rollup.rows(self.days):
                yield from rows.batches()


@attrs.frozen
class SmallClassesTask:
    """The roll-up of classes that have so few values that planning a query for each would cost more than the values."""

    options: RollupOptions
    samples: tuple[NewSamples, ...]

    def rows(self, connection: Any) -> Iterator[Any]:
        """As of `ClassTask`."""
        options, zone = self.options, self.options.zone
        start = -END_NS if options.first is None else zone.start_ns(options.first)
        end = END_NS if options.last is None else zone.end_ns(options.last)
        with lake_errors(options.lake):
            memory = StreamMemory(connection, options.sizes, END_NS, continued=options.continued, zone=zone)
            memory.add(self.samples, {item.name: -END_NS for item in self.samples})
            memory.close(END_NS)
            for size in options.sizes:
                ranges = [WindowRange(item.source, size, start, end, last=False) for item in self.samples]
                memory.roll_up(size, ranges)
            yield from _take_rows(connection)


@attrs.frozen
class WindowTask:
    """The roll-up of a range of windows of a stream; the paths of the options are absolute.

    Before the first commit there is no table of earlier rows.
    """

    options: RollupOptions
    windows: WindowRange
    is_first: bool

    def rows(self, connection: Any) -> Iterator[Any]:
        """As of `ClassTask`; the table of earlier rows must be on this machine."""
        if not self.is_first:
            rollup_table(self.options, "stream").delta()  # refuses what isn't there
        with lake_errors(self.options.lake):
            if WindowRollup(connection, self.options).roll_up(self.windows):
                yield from _take_rows(connection)


@attrs.frozen
class KeptRows:
    """The rows of a file of the table, of windows of one size, to be written again, but for those replaced."""

    table: LakeTable
    file: TableFile
    size: str
    replaced: str

    def rows(self, connection: Any) -> Iterator[Any]:
        """As of `ClassTask`."""
        with duckdb_errors(self.table.url):
            connection.register("qmf_kept", self.table.dataset([self.file]))
            columns = ", ".join(quote_name(name) for name in ROLLUP_COLUMNS)
            partitions = f"{text(self.size)} as size, {text(str(self.file.date))} as {DATE}"
            stored = f"(select * replace ({partitions}) from qmf_kept)"
            yield from duckdb_batches(
                connection, f"select size, {DATE}, {columns} from {stored} where not coalesce({self.replaced}, false)"
            )


#: A piece of work.
Task = ClassTask | SmallClassesTask | WindowTask | KeptRows


#: Samples that tasks read together, about, where they are few.
_TOGETHER_ROWS = 250_000


def task_rows(connection: Any, tasks: Sequence[Task]) -> Iterator[Any]:
    """The map of a roll-up: the rows of some tasks; see `qmf.pipeline.runners.runner`."""
    for task in tasks:
        with closing(connection.cursor()) as own:
            own.execute("set timezone = 'UTC'")
            yield from task.rows(own)


def together(tasks: Iterable[Task]) -> list[tuple[Task, ...]]:
    """Tasks, with those together that read few rows: starting a task on Spark costs more than these."""
    found: list[tuple[Task, ...]] = []
    chosen: list[Task] = []
    rows = 0
    for task in tasks:
        if not isinstance(task, WindowTask | KeptRows):
            found.append((task,))
            continue
        own = task.file.rows if isinstance(task, KeptRows) else task.windows.source.samples(None, None)
        if chosen and rows + own > _TOGETHER_ROWS:
            found.append(tuple(chosen))
            chosen, rows = [], 0
        chosen.append(task)
        rows += own
    return [*found, tuple(chosen)] if chosen else found


def class_tasks(options: RollupOptions, source: ClassSource, limit: int | None) -> list[ClassTask]:
    """The pieces of the roll-up of a class of which no day `is_divided`, by numbers of samples; None for no limit."""
    tasks: list[ClassTask] = []
    days: list[str] = []
    count = 0
    for day, samples in _samples_by_day(options, source):
        if days and limit is not None and count + samples > limit:
            tasks.append(_task(options, source, days))
            days, count = [], 0
        days, count = [*days, day], count + samples
    return [*tasks, _task(options, source, days)] if days else tasks


def is_divided(options: RollupOptions, source: ClassSource, limit: int) -> bool:
    """Whether a class has more samples in a day than a task should read, so that its objects are divided."""
    return any(samples > limit for _day, samples in _samples_by_day(options, source))


def _samples_by_day(options: RollupOptions, source: ClassSource) -> Iterator[tuple[str, int]]:
    """The days of a roll-up with their numbers of samples; none for a class without numbers."""
    zone = options.zone
    for day in source.zone_days(zone, options.first, options.last) if source.members else ():
        yield day, source.of_times(zone.start_ns(day), zone.end_ns(day)).samples(None, None)


def _task(options: RollupOptions, source: ClassSource, days: Sequence[str]) -> ClassTask:
    """The task of some days, with the files of these and of those before them only."""
    start, end = options.zone.start_ns(days[0]), options.zone.end_ns(days[-1])
    oldest = utc_day(start - LOOK_BACK_DAYS * NS_PER_DAY)
    files = {date: source.days[date] for date in source.between(oldest, utc_day(end - 1))}
    return ClassTask(options, attrs.evolve(source, days=files), tuple(days))


def _take_rows(connection: Any) -> Iterator[Any]:
    """The rows of `OUT`, which is dropped; none where it is not there."""
    if connection.execute(f"select 1 from duckdb_tables() where table_name = {text(OUT)}").fetchall():
        yield from duckdb_batches(connection, f"from {OUT}")
        connection.execute(f"drop table {OUT}")


@contextmanager
def lake_errors(lake: str) -> Iterator[None]:
    """Raise the errors of queries on a lake, as of `duckdb_errors`, and those of files that are missing."""
    try:
        with duckdb_errors(lake):
            yield
    except FileNotFoundError as error:
        raise LakeError(f"{lake}: {error}") from error
