"""Queries on Parquet files in this process, by DuckDB, which is imported when the first query runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from qmf.pipeline.errors import LakeError, MissingExtraError
from qmf.pipeline.history.files import LakeFiles

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

    def query(self, sql: str, paths: Sequence[str], parameters: Sequence[object] = ()) -> list[Row]:
        """All rows of a query; none without files.

        Args:
            sql: where ``{files}`` stands for the rows of the files.
            paths: the files, all with the same columns.
            parameters: the values of the question marks.

        Raises:
            LakeError: a file cannot be read.
            KeyboardInterrupt: Ctrl-C while it ran.
        """
        if not paths:
            return []
        try:
            return self._run(sql, paths, parameters)
        except FileNotFoundError:
            # Compacted after they were selected: they lie in the trash for some days.
            return self._run(sql, tuple(self._files.moved(paths)), parameters)

    def each(self, sql: str, paths: Sequence[str], parameters: Sequence[object] = ()) -> Iterator[Row]:
        """The rows of a query one by one, few in memory at a time; arguments and errors are those of `query`."""
        if not paths:
            return
        duckdb = import_duckdb()
        cursor = self._cursor()
        try:
            cursor.execute(_complete(sql, paths), list(parameters))
            while rows := cursor.fetchmany(_STEP):
                yield from rows
        except duckdb.Error as error:
            raise LakeError(f"{self._files.root}: {_one_line(error)}") from error
        except RuntimeError as error:
            if "interrupt" not in str(error).lower():
                raise
            raise KeyboardInterrupt from None
        finally:
            cursor.close()

    def _cursor(self) -> Any:
        """A connection of its own for one query, so that threads don't disturb each other."""
        with self._lock:
            if self._connection is None:
                duckdb = import_duckdb()
                # What is needed is built in: nothing is downloaded.
                quiet = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
                self._connection = duckdb.connect(":memory:", config=quiet)
                self._connection.execute("set enable_progress_bar = false")
                # A lake that is not compacted has thousands of files: each is opened once for its description.
                self._connection.execute("set parquet_metadata_cache = true")
            return self._connection.cursor()

    def _run(self, sql: str, paths: Sequence[str], parameters: Sequence[object]) -> list[Row]:
        duckdb = import_duckdb()
        cursor = self._cursor()
        try:
            found: list[Row] = cursor.execute(_complete(sql, paths), list(parameters)).fetchall()
        except duckdb.IOException as error:
            if "No files found" in str(error) or "No such file" in str(error):
                raise FileNotFoundError(str(error)) from error
            raise LakeError(f"{self._files.root}: {_one_line(error)}") from error
        except RuntimeError as error:
            if "interrupt" not in str(error).lower():
                raise
            raise KeyboardInterrupt from None  # DuckDB has taken the signal
        except duckdb.Error as error:
            raise LakeError(f"{self._files.root}: {_one_line(error)}") from error
        finally:
            cursor.close()
        return found


def import_duckdb() -> Any:
    """The module `duckdb`.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise MissingExtraError("duckdb", "history") from error
    return duckdb


def quoted(name: str) -> str:
    """A column's name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def marks(values: Sequence[object]) -> str:
    """As many question marks, in brackets."""
    return f"({', '.join('?' * len(values))})"


def _complete(sql: str, paths: Sequence[str]) -> str:
    names = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    return sql.replace("{files}", f"read_parquet([{names}], hive_partitioning = false)")


def _one_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
