"""The rows of a lake, for readers: those of a kind, of a class version and of some days, and queries on them by DuckDB.

The only module of this package that knows how a lake keeps its rows. DuckDB is imported when the first query runs.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import attrs

from qmf.pipeline.duckdb_queries import connect, duckdb_errors
from qmf.pipeline.errors import LakeError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import columns_of
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.delta_lake import DeltaLake, RecordedClass
from qmf.pipeline.lake.location import kind_path
from qmf.pipeline.lake.row_source import RowSource
from qmf.pipeline.lake.runs import LeftOut, RecordedRuns, counted_condition
from qmf.pipeline.lake.table_files import TableFile, TableSnapshot

Row = tuple[Any, ...]

_NO_FILES = TableSnapshot(-1, ())

#: Rows that are fetched at once where a result is read step by step.
_STEP = 2000


class LakeFiles:
    """The committed rows of a lake, as of the last `refresh`. Queries may run in any thread."""

    def __init__(self, url: str, options: Mapping[str, str] | None = None) -> None:
        """Open a lake by its path or URL, with options of its object store; `LakeError` if there is none."""
        self.lake = DeltaLake(url, options)
        if not self.lake.exists():
            raise LakeError(f"{self.lake.url}: not a lake: it has no table schemas")
        self.classes: tuple[RecordedClass, ...] = ()
        """The class versions."""
        self._snapshots: dict[str, TableSnapshot] = {}
        self._runs = RecordedRuns(self.lake)
        self._lock = threading.Lock()
        self._connection: Any = None

    def close(self) -> None:
        """Free what DuckDB holds. A second call does nothing."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def refresh(self) -> bool:
        """See what was committed since; True if there is anything."""
        classes = self.lake.classes()
        changed = classes != self.classes
        self.classes = classes
        for path, known in list(self._snapshots.items()):
            if self.lake.table(path).version() != (None if known is _NO_FILES else known.version):
                del self._snapshots[path]
                changed = True
        return changed

    def select(
        self,
        kind: RowKind,
        version: ClassVersion | None = None,
        first: str = "",
        last: str = "9999-12-31",
        runs: Collection[str] | None = None,
        object: tuple[str, str] | None = None,
    ) -> RowSource:
        """Rows of a kind, or of a class version, from one day to another, the oldest day first.

        Only files that may have rows of some runs, or of the object with an agent and a name, are read.
        """
        path = kind_path(kind) if version is None else self._table_of(version)
        files = tuple(
            file
            for file in self._snapshot(path).files
            if (file.date is None or first <= file.date <= last)
            and (runs is None or file.run is None or file.run in runs)
            and (object is None or file.may_have_object(*object))
        )
        table, columns = self.lake.table(path), columns_of(kind, version)
        if version is None:
            return RowSource(table, files, columns)
        source = RowSource.of_versions(table, files, columns, [version])
        return attrs.evolve(source, condition=counted_condition(self._left_out_rows(source.files)))

    def days(self, kind: RowKind) -> list[str]:
        """The days of which there are rows of a kind without classes, in order."""
        return sorted({file.date for file in self._snapshot(kind_path(kind)).files if file.date is not None})

    def query(self, sql: str, source: RowSource, parameters: Sequence[object] = ()) -> list[Row]:
        """All rows of a query, where ``{files}`` stands for the rows of a source; none without files."""
        return list(self.each(sql, source, parameters))

    def each(self, sql: str, source: RowSource, parameters: Sequence[object] = ()) -> Iterator[Row]:
        """The rows of a query one by one, few in memory at a time; arguments and errors are those of `query`."""
        if source:
            with self._running_query(sql, source, parameters) as cursor:
                while rows := cursor.fetchmany(_STEP):
                    yield from rows

    @contextmanager
    def _running_query(self, sql: str, source: RowSource, parameters: Sequence[object]) -> Iterator[Any]:
        """The result of a query, on a connection of its own, so that threads don't disturb each other."""
        with self._lock:
            if self._connection is None:
                # A lake that is not optimised has thousands of files: each is opened once for its description.
                self._connection = connect(parquet_metadata_cache="true")
            cursor = self._connection.cursor()
        try:
            with duckdb_errors(self.lake.url):
                yield cursor.execute(sql.replace("{files}", source.sql(cursor)), list(parameters))
        finally:
            cursor.close()

    def _left_out_rows(self, files: Sequence[TableFile]) -> list[LeftOut]:
        first = min((file.first_ns or 0 for file in files), default=0)
        last = max((file.last_ns or 0 for file in files), default=0)
        return [row for row in self._runs.left_out_rows() if row.first_ns <= last and row.end_ns > first]

    def _snapshot(self, path: str) -> TableSnapshot:
        found = self._snapshots.get(path)
        if found is None:
            table = self.lake.table(path)
            found = self._snapshots[path] = _NO_FILES if table.version() is None else table.snapshot()
        return found

    def _table_of(self, version: ClassVersion) -> str:
        return next(item.table for item in self.classes if item.version == version)
