"""Queries on the files of a lake, by DuckDB, which is imported when the first query runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from qmf.pipeline.duckdb_queries import connect, duckdb_errors
from qmf.pipeline.history.files import LakeFiles
from qmf.pipeline.lake.row_source import RowSource

Row = tuple[Any, ...]

#: Rows that are fetched at once where a result is read step by step.
_STEP = 2000


class Database:
    """Runs queries on the files of a lake. May be used by any thread."""

    def __init__(self, files: LakeFiles) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._connection: Any = None

    def close(self) -> None:
        """Free what DuckDB holds. A second call does nothing."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def query(self, sql: str, source: RowSource, parameters: Sequence[object] = ()) -> list[Row]:
        """All rows of a query; none without files.

        Args:
            sql: where ``{files}`` stands for the rows of the source.
            source: what is read.
            parameters: the values of the question marks.

        Raises:
            LakeError: a file cannot be read.
            KeyboardInterrupt: Ctrl-C while it ran.
        """
        if not source:
            return []
        cursor = self._cursor()
        try:
            with duckdb_errors(self._files.url):
                found: list[Row] = cursor.execute(_complete(sql, source, cursor), list(parameters)).fetchall()
        finally:
            cursor.close()
        return found

    def each(self, sql: str, source: RowSource, parameters: Sequence[object] = ()) -> Iterator[Row]:
        """The rows of a query one by one, few in memory at a time; arguments and errors are those of `query`."""
        if not source:
            return
        cursor = self._cursor()
        try:
            with duckdb_errors(self._files.url):
                cursor.execute(_complete(sql, source, cursor), list(parameters))
                while rows := cursor.fetchmany(_STEP):
                    yield from rows
        finally:
            cursor.close()

    def _cursor(self) -> Any:
        """A connection of its own for one query, so that threads don't disturb each other."""
        with self._lock:
            if self._connection is None:
                # A lake that is not optimised has thousands of files: each is opened once for its description.
                self._connection = connect(parquet_metadata_cache="true")
            return self._connection.cursor()


def marks(values: Sequence[object]) -> str:
    """As many question marks, in brackets."""
    return f"({', '.join('?' * len(values))})"


def _complete(sql: str, source: RowSource, connection: Any) -> str:
    return sql.replace("{files}", source.sql(connection))
