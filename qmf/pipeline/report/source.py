"""The rows of a lake that a report reads: the only module here that knows files.

Queries on files run where the runner does them; what they find, the tables of a report, is on one connection to DuckDB
here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import attrs

from qmf.pipeline.audit.schemas import PARTS, Columns, arrow_schema
from qmf.pipeline.audit.state import AuditState, columns_together, select_part, together
from qmf.pipeline.audit.stored_parts import StoredParts
from qmf.pipeline.duckdb_queries import connect, duckdb_errors
from qmf.pipeline.errors import LakeError
from qmf.pipeline.history.files import LakeFiles
from qmf.pipeline.history.schemas import AnySchema, schema_of
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.days import day
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.row_source import RowSource
from qmf.pipeline.report.job_tables import AuditedRows
from qmf.pipeline.runners.process import ProcessRows
from qmf.pipeline.runners.runner import Rows, Runner, duckdb_batches

Row = tuple[Any, ...]

#: The rows of a source in a query.
ROWS = "$rows$"

_LIMITS = "limits"


@attrs.frozen
class LakeClass:
    """A class version of the lake with its schema."""

    version: ClassVersion
    schema: AnySchema


@attrs.frozen
class FileQueries:
    """Queries on the rows of files.

    Attributes:
        source: the rows.
        sql: queries from `ROWS`, by the name of what they find.
    """

    source: RowSource
    sql: Mapping[str, str]


@attrs.frozen
class _Finder:
    """The map of a report: what queries find, told apart by `PART`.

    Attributes:
        columns: of what is found, by name.
    """

    columns: Mapping[str, Columns]

    def find(self, connection: Any, queries: Sequence[FileQueries]) -> Iterator[Any]:
        """The function of `Runner.map`."""
        for query in queries:
            rows = query.source.sql(connection)
            for name, sql in query.sql.items():
                yield from duckdb_batches(connection, together({name: f"({sql.replace(ROWS, rows)})"}, self.columns))


class ReportSource:
    """The rows of a lake as of its opening. Belongs to one thread.

    Methods raise `LakeError` for files that cannot be read.
    """

    def __init__(
        self,
        runner: Runner,
        lake: str,
        storage: Mapping[str, str] | None = None,
        audited: Callable[[DeltaLake], AuditedRows | None] = lambda _lake: None,
    ) -> None:
        """Open a lake.

        Args:
            runner: where files are read.
            lake: a folder, or a URL.
            storage: options of the object store.
            audited: finds the audit whose parts are used.

        Raises:
            LakeError: there is no lake, or nothing in it.
            MissingExtraError: DuckDB or deltalake is not installed.
        """
        self.runner = runner
        self.url = lake
        self.storage = dict(storage or {})
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

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """All rows of a query."""
        with self.errors():
            found: list[Row] = self.connection.execute(sql, list(parameters)).fetchall()
        return found

    def run(self, sql: str, parameters: Sequence[object] = ()) -> None:
        """Run a statement without a result."""
        with self.errors():
            self.connection.execute(sql, list(parameters))

    def rows(self, kind: RowKind, first_ns: int, last_ns: int, version: ClassVersion | None = None) -> RowSource | None:
        """The rows of the days of a time range; None where there are none.

        Args:
            kind: of the rows.
            first_ns, last_ns: the range; rows of the same days outside it are included.
            version: of a class, for kinds that have classes.
        """
        return self._select(kind, first_ns, last_ns, version) or None

    def tables_of_queries(self, queries: Sequence[FileQueries], columns: Mapping[str, Columns]) -> dict[str, str]:
        """What queries on files find, as names of tables on the connection: one job of the runner.

        Args:
            queries: each finds the same from some of its files as from all, but for what is merged afterwards.
            columns: with their types in SQL, by the name of what is found.
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
            return self.tables_of_parts(self.runner.map(tasks, _Finder(columns).find, schema), columns)

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
        """Add parts of the audit to a state, where there is an audit.

        Args:
            state: on the connection.
            conditions: in SQL, for the rows of each part.
        """
        if self.audited is not None:
            with self.errors():
                rows = StoredParts(self.audited.options).rows(self.runner, conditions)
                for name, found in self.tables_of_parts(rows, {name: PARTS[name] for name in conditions}).items():
                    state.insert(name, f"from {found}")

    def _select(self, kind: RowKind, first_ns: int, last_ns: int, version: ClassVersion | None) -> RowSource:
        found = self._files.select(kind, version, day(max(first_ns, 0)), day(max(last_ns, 0)))
        # A day may be far larger than the range.
        files = tuple(
            file
            for file in found.files
            if file.last_ns is None or file.first_ns is None or (file.last_ns >= first_ns and file.first_ns <= last_ns)
        )
        return attrs.evolve(found, files=files) if kind is RowKind.OBJECTS else found

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
    """When the last row about an agent arrived.

    Raises:
        LakeError: there is no lake, or nothing in it.
    """
    with ReportSource(runner, lake, storage) as source:
        limits = source.limits()
    if limits is None:
        raise LakeError(f"{lake}: no lake, or nothing in it yet")
    return limits[1]
