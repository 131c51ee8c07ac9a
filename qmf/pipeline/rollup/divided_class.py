"""The roll-up of a class that has more samples in a day than a task should read.

A map makes windows of the samples of a part of the time. They are brought together by object; a reduce joins each with
the one before, and makes the rows. Where parts of the time have no files of their own, as of days that are sorted by
object, or windows are so long that parts have many samples, samples are brought together by object, each file read
once, and the reduce makes the windows as well. It knows no runner.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import attrs

from qmf.pipeline.duckdb_queries import quote_name
from qmf.pipeline.lake.arrow import arrow_schema, import_pyarrow
from qmf.pipeline.lake.days import NS_PER_DAY
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.table_files import TableFile
from qmf.pipeline.rollup.rows import LOOK_BACK_DAYS, rows
from qmf.pipeline.rollup.shared_windows import (
    joined_windows,
    shared_keys,
    shared_windows,
    sparse_members,
    window_columns,
)
from qmf.pipeline.rollup.source import ClassSource, sample_columns
from qmf.pipeline.rollup.statements import ClassSamples
from qmf.pipeline.rollup.tables import RollupOptions, rollup_schema, sql_schema, table_rows
from qmf.pipeline.rollup.tasks import lake_errors
from qmf.pipeline.rollup.windows import WINDOWS, made_windows, make_sizes
from qmf.pipeline.rollup.zones import WindowGrid
from qmf.pipeline.runners.runner import Rows, Runner, conformed_batches, duckdb_batches

_SAMPLES, _SHARED, _KEYS, _BASE = "qmf_share", "qmf_shared", "qmf_shared_keys", "qmf_rows"

#: By what samples and windows are brought together.
_OBJECT = ("_agent", "_object")


@attrs.frozen
class DividedClass:
    """The roll-up of a class.

    Attributes:
        options: of the roll-up.
        source: the class; its files are those of the tasks.
        start, end: of the days, in ns.
    """

    options: RollupOptions
    source: ClassSource
    start: int
    end: int

    def windows(self, connection: Any, samples: str) -> Iterator[Any]:
        """Windows of samples, which are SQL, with the columns of `window_columns`."""
        options, members = self.options, self.source.members
        grid = WindowGrid(options.base_seconds)
        with made_windows(connection, samples, members, grid, continued=options.continued) as made:
            if made is not None:
                yield from duckdb_batches(connection, shared_windows(made, WINDOWS))

    def rows(self, connection: Any, windows: Iterator[Any]) -> Iterator[Any]:
        """The rows of all windows of some objects, and of those before the days."""
        options, source = self.options, self.source
        spans = options.zone.spans(self.start, self.end)
        _load(connection, _SHARED, sql_schema(window_columns(source.members)), windows)
        (lacks,) = connection.execute(sparse_members(source.members, _SHARED)).fetchall()
        sparse = [number for number, lack in enumerate(lacks) if lack]
        grid = WindowGrid(options.base_seconds, spans)
        samples = ClassSamples("", source.members, grid, options.continued, _KEYS, sparse=sparse)
        connection.execute(f"create temp table {_KEYS} as {shared_keys(_SHARED)}")
        connection.execute(f"create temp table {WINDOWS} as {joined_windows(samples, _SHARED)}")
        found = rows(samples, source.package, source.name, WINDOWS, None)
        start = f"make_timestamptz({self.start // 1000})"
        connection.execute(f"create temp table {_BASE} as from ({found}) where window_start >= {start}")
        for size, table in make_sizes(connection, _BASE, options.sizes, options.zone, spans):
            yield from duckdb_batches(connection, table_rows(table, size, options.zone))


@attrs.frozen
class SampleFiles:
    """Samples in files, of which all are wanted, or with `ends` the last one of each object and member."""

    source: ClassSource
    ends: bool = False

    def sql(self, connection: Any) -> str:
        """The samples, as SQL for a connection to DuckDB."""
        source = self.source
        columns = ", ".join(quote_name(name) for name, _type in sample_columns(source.versions, source.members))
        samples = f"(select {columns} from {source.sql(connection)} where _statistics)"
        if not self.ends:
            return samples
        connection.execute(f"create or replace temp table {_SAMPLES} as from {samples}")
        last = "qualify row_number() over (partition by _agent, _object order by _ts_ns desc, _run desc, _seq desc) = 1"
        each = [
            f"(from {_SAMPLES} where {quote_name(member.value)} is not null {last})"
            for member in source.members
            if member.linked
        ]
        return f"(select distinct * from ({' union all '.join(each)}))"


def divided_rows(runner: Runner, options: RollupOptions, source: ClassSource, limit: int) -> Rows:
    """The rows of a class that has members, and samples on the days of the roll-up; a task has `limit` samples."""
    zone = options.zone
    days = source.zone_days(zone, options.first, options.last)
    start, end = zone.start_ns(days[0]), zone.end_ns(days[-1])
    own = DividedClass(options, attrs.evolve(source, days={}), start, end)
    parts = source.time_parts(start, end, limit, options.base_seconds * 10**9)
    tasks = [SampleFiles(part) for part in parts or _portions(source.of_times(start, end), limit)]
    if any(member.linked for member in source.members):
        earlier = source.of_times(start - LOOK_BACK_DAYS * NS_PER_DAY, start)
        tasks += [SampleFiles(part, ends=True) for part in _portions(earlier, limit)]
    if parts:
        windows = runner.map(tasks, partial(file_windows, own), sql_schema(window_columns(source.members)))
        return windows.reduce(_OBJECT, partial(_window_rows, own), rollup_schema())
    samples = runner.map(tasks, file_samples, arrow_schema(sample_columns(source.versions, source.members)))
    return samples.reduce(_OBJECT, partial(_sample_rows, own), rollup_schema())


def file_samples(connection: Any, task: SampleFiles) -> Iterator[Any]:
    """The map where samples are brought together: those of some files."""
    yield from duckdb_batches(connection, f"from {task.sql(connection)}")


def file_windows(own: DividedClass, connection: Any, task: SampleFiles) -> Iterator[Any]:
    """The map where windows are brought together: those of the samples of some files."""
    with lake_errors(own.options.lake):
        yield from own.windows(connection, task.sql(connection))


def _window_rows(own: DividedClass, connection: Any, windows: Iterator[Any]) -> Iterator[Any]:
    """The reduce of windows."""
    with lake_errors(own.options.lake):
        yield from own.rows(connection, windows)


def _sample_rows(own: DividedClass, connection: Any, samples: Iterator[Any]) -> Iterator[Any]:
    """The reduce of samples."""
    with lake_errors(own.options.lake):
        _load(connection, _SAMPLES, arrow_schema(sample_columns(own.source.versions, own.source.members)), samples)
        windows = list(own.windows(connection, _SAMPLES))  # a query cannot run while another one reads what it makes
        yield from own.rows(connection, iter(windows))


def _load(connection: Any, table: str, schema: Any, batches: Iterator[Any]) -> None:
    """Make a table of record batches."""
    reader = import_pyarrow().RecordBatchReader.from_batches(schema, conformed_batches(batches, schema))
    connection.register("qmf_batches", reader)
    connection.execute(f"create temp table {table} as from qmf_batches")
    connection.unregister("qmf_batches")


def _portions(source: ClassSource, limit: int) -> Iterator[ClassSource]:
    """Parts of the files of a source, of about so many samples."""
    chosen: list[tuple[LakeTable, TableFile]] = []
    count = 0
    for date in sorted(source.days):
        for table, file in source.days[date]:
            chosen.append((table, file))
            count += file.rows
            if count >= limit:
                yield source.with_files(chosen, source.left_out)
                chosen, count = [], 0
    if chosen:
        yield source.with_files(chosen, source.left_out)
