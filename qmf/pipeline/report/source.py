"""The rows of a lake that a report reads, and what other jobs have made of them: the only module here that knows files.

A report takes what the tables of an audit and of roll-ups have, and computes the rest of the lake's rows. These jobs
say up to which version of each of the lake's tables they have read it. What came later is unread.

Queries on files run where the runner does them; what they find, the tables of a report, is on one connection to DuckDB
here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

import attrs

from qmf.pipeline.audit.schemas import PARTS, Columns, arrow_schema
from qmf.pipeline.audit.state import AuditState, columns_together, select_part, together
from qmf.pipeline.audit.tables import AuditOptions, StoredParts
from qmf.pipeline.duckdb_queries import connect, duckdb_errors
from qmf.pipeline.errors import LakeError
from qmf.pipeline.history.classes import AnySchema, schema_of
from qmf.pipeline.history.files import LakeFiles
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.days import day
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.location import job_path
from qmf.pipeline.lake.row_source import RowSource
from qmf.pipeline.lake.table_files import TableFile
from qmf.pipeline.rollup.members import window_seconds
from qmf.pipeline.rollup.source import ClassSource
from qmf.pipeline.rollup.tables import RollupOptions, read_version, rollup_table
from qmf.pipeline.runners.process import ProcessRows
from qmf.pipeline.runners.runner import Rows, Runner, duckdb_batches

Row = tuple[Any, ...]

#: The rows of a source in a query.
ROWS = "$rows$"

_LIMITS = "limits"

#: The folders of a job's tables, inside that of the job.
_MODES = ("batch", "stream")


def unread_files(table: LakeTable, read: int | None) -> tuple[TableFile, ...] | None:
    """The files of a table of the lake that a job has not read after a version; None for that: all files.

    None where they are not known: the log doesn't go back so far, or new rows were combined with others.
    """
    version = table.version()
    if version is None:
        return ()
    files = table.snapshot().files
    if read is None or version == read:
        return files if read is None else ()
    try:
        added = table.added_files(read, version)
    except LakeError:
        return None
    return added if {file.path for file in added} <= {file.path for file in files} else None


@attrs.frozen
class AuditedRows:
    """The rows of a lake that an audit has read: all but those of unread files, by the URL of their table."""

    options: AuditOptions
    unread: Mapping[str, frozenset[str]]

    @classmethod
    def find(cls, lake: DeltaLake, folder: str | None) -> AuditedRows | None:
        """The audit that has read most of a lake, in a folder or in that inside the lake; None where there is none."""
        roots = [folder.rstrip("/")] if folder else [f"{lake.url}/{job_path(job)}" for job in ("audit", "history")]
        found: list[tuple[int, AuditedRows]] = []
        for place in [root for root in roots for root in (root, *(f"{root}/{mode}" for mode in _MODES))]:
            options = AuditOptions(lake=lake.url, out=place, storage=lake.options)
            own = cls._of(lake, options)
            if own is not None:
                found.append(own)
        return min(found, key=lambda item: item[0])[1] if found else None

    @classmethod
    def _of(cls, lake: DeltaLake, options: AuditOptions) -> tuple[int, AuditedRows] | None:
        """The rows that one audit has read, and the number of those that it has not."""
        stored = StoredParts(options)
        if stored.table.version() is None:
            return None
        unread: dict[str, frozenset[str]] = {}
        rows = 0
        for path in options.paths(lake):
            files = unread_files(lake.table(path), stored.read(path))
            if files is None:
                return None
            unread[lake.table(path).url] = frozenset(file.path for file in files)
            rows += sum(file.rows for file in files)
        return rows, cls(options, unread)

    def has_read(self, table: LakeTable, file: TableFile) -> bool:
        """True for a file of the lake whose rows are in the tables of the audit."""
        return file.path not in self.unread[table.url]


@attrs.frozen
class StoredRollups:
    """The roll-ups of batches, of windows of one size, and their files by day."""

    lake: DeltaLake
    table: LakeTable
    size: str
    continued: bool
    files: Mapping[str, Sequence[TableFile]]

    @classmethod
    def find(cls, lake: DeltaLake, folder: str | None, size: str, *, continued: bool) -> StoredRollups | None:
        """The roll-ups with the largest windows of which those of a size can be made; without a folder the lake's."""
        out = folder.rstrip("/") if folder else f"{lake.url}/{job_path('rollup')}"
        table = rollup_table(RollupOptions(lake=lake.url, out=out, storage=lake.options), "batch")
        if table.version() is None:
            return None
        by_size: dict[str, dict[str, list[TableFile]]] = {}
        for file in table.snapshot().files:
            own = file.path.partition("/")[0].removeprefix("size=")
            by_size.setdefault(own, {}).setdefault(str(file.date), []).append(file)
        wanted = window_seconds(size)
        fitting = [own for own in by_size if wanted % window_seconds(own) == 0]
        if not fitting:
            return None
        chosen = max(fitting, key=window_seconds)
        return cls(lake, table, chosen, continued, by_size[chosen])

    def days_of(self, source: ClassSource) -> frozenset[str]:
        """The days of a class whose samples are all rolled up."""
        days = set(source.days)
        for path in self.lake.tables_of(source.versions):
            read = read_version(self.table, self.size, path, continued=self.continued)
            unread = None if read is None else unread_files(self.lake.table(path), read)
            if unread is None:
                return frozenset()
            days -= {str(file.date) for file in unread}
        return frozenset(days & set(self.files))


@attrs.frozen
class LakeClass:
    version: ClassVersion
    schema: AnySchema


@attrs.frozen
class FileQueries:
    """Queries on the rows of files, from `ROWS`, by the name of what they find."""

    source: RowSource
    sql: Mapping[str, str]


def _find(columns: Mapping[str, Columns], connection: Any, queries: Sequence[FileQueries]) -> Iterator[Any]:
    """The map of a report: what queries find, told apart by `PART`, with the columns of each."""
    for query in queries:
        rows = query.source.sql(connection)
        for name, sql in query.sql.items():
            yield from duckdb_batches(connection, together({name: f"({sql.replace(ROWS, rows)})"}, columns))


class ReportSource:
    """The rows of a lake as of its opening. Belongs to one thread. `LakeError` for files that cannot be read."""

    def __init__(
        self,
        runner: Runner,
        lake: str,
        storage: Mapping[str, str] | None = None,
        audited: Callable[[DeltaLake], AuditedRows | None] = lambda _lake: None,
    ) -> None:
        """Open a lake; `audited` finds the audit whose parts are used. `LakeError` if there is no lake."""
        self.runner = runner
        self.url = lake
        self._numbers = itertools.count(1)
        self._files = LakeFiles(lake, storage)
        self._files.refresh()
        self.lake = self._files.lake
        self.audited = audited(self.lake)
        self.connection = connect()
        self.connection.execute("set timezone = 'UTC'")
        self.classes = tuple(LakeClass(item.version, schema_of(item.version, item.xml)) for item in self._files.classes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise errors of queries, and of files that are gone, as `LakeError`."""
        try:
            with duckdb_errors(self.url):
                yield
        except FileNotFoundError as error:
            raise LakeError(f"{self.url}: {error}") from error

    def query(self, sql: str) -> list[Row]:
        with self.errors():
            found: list[Row] = self.connection.execute(sql).fetchall()
        return found

    def run(self, sql: str) -> None:
        with self.errors():
            self.connection.execute(sql)

    def rows(self, kind: RowKind, first_ns: int, last_ns: int, version: ClassVersion | None = None) -> RowSource | None:
        """The rows of the days of a time range, for kinds with classes those of a class; None where there are none."""
        found = self._files.select(kind, version, day(max(first_ns, 0)), day(max(last_ns, 0)))
        if kind is RowKind.OBJECTS:
            # A day may be far larger than the range.
            files = tuple(
                file
                for file in found.files
                if file.last_ns is None
                or file.first_ns is None
                or (file.last_ns >= first_ns and file.first_ns <= last_ns)
            )
            found = attrs.evolve(found, files=files)
        return found or None

    def tables_of_queries(self, queries: Sequence[FileQueries], columns: Mapping[str, Columns]) -> dict[str, str]:
        """What queries on files find, as names of tables on the connection: one job of the runner.

        Each query finds the same from some of its files as from all, but for what is merged afterwards.
        """
        files = {str(number): query.source.files for number, query in enumerate(queries)}
        tasks = [
            tuple(
                attrs.evolve(queries[int(number)], source=attrs.evolve(queries[int(number)].source, files=tuple(own)))
                for number, own in portion.items()
                if own
            )
            for portion in self.runner.portions(files)
        ]
        schema = arrow_schema(columns_together(columns))
        with self.errors():
            if not tasks:
                return self.tables_of_parts(ProcessRows(schema, lambda: iter(())), columns)
            return self.tables_of_parts(self.runner.map(tasks, partial(_find, columns), schema), columns)

    def tables_of_parts(self, rows: Rows, columns: Mapping[str, Columns]) -> dict[str, str]:
        """Rows that `PART` tells apart, as names of tables on the connection, by the name of the part."""
        given = self.table_of_rows(rows)
        return {name: f"({select_part(given, name, own)})" for name, own in columns.items()}

    def table_of_rows(self, rows: Rows) -> str:
        """Rows of a runner, as the name of a table on the connection."""
        name = f"report_made_{next(self._numbers)}"
        self.connection.register("report_given", rows.table())
        self.connection.execute(f"create temp table {name} as from report_given")
        self.connection.unregister("report_given")
        return name

    def unread_rows(self, rows: RowSource) -> RowSource:
        """The rows of files that the audit has not read; all where there is none."""
        if self.audited is None:
            return rows
        own = self.audited
        return attrs.evolve(rows, files=tuple(file for file in rows.files if not own.has_read(rows.table, file)))

    def add_audited(self, state: AuditState, conditions: Mapping[str, str]) -> None:
        """Add parts of the audit, where there is one, to a state: the rows of each that meet a condition in SQL."""
        if self.audited is not None:
            with self.errors():
                rows = StoredParts(self.audited.options).rows(self.runner, conditions)
                for name, found in self.tables_of_parts(rows, {name: PARTS[name] for name in conditions}).items():
                    state.insert(name, f"from {found}")

    def limits(self) -> tuple[int, int] | None:
        """When the first and the last row about an agent arrived; None for a lake without any."""
        queries = []
        for kind in (RowKind.AGENTS, RowKind.HEARTBEATS):
            days = self._files.days(kind)
            for edge in sorted({days[0], days[-1]} if days else ()):
                source = self._files.select(kind, first=edge, last=edge)
                sql = f"select min(_received_ns) as first, max(_received_ns) as last from {ROWS}"
                queries.append(FileQueries(source, {_LIMITS: sql}))
        found = self.tables_of_queries(queries, {_LIMITS: {"first": "bigint", "last": "bigint"}})
        ((first, last),) = self.query(f"select min(first), max(last) from {found[_LIMITS]}")
        return None if first is None else (first, last)


def end_of_recording(runner: Runner, lake: str, storage: Mapping[str, str] | None = None) -> int:
    """When the last row about an agent arrived; `LakeError` for a lake without any."""
    with ReportSource(runner, lake, storage) as source:
        limits = source.limits()
    if limits is None:
        raise LakeError(f"{lake}: no lake, or nothing in it yet")
    return limits[1]
