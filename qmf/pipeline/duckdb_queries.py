"""Queries on Parquet files in this process, by DuckDB: connections, errors, and texts of SQL."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from qmf.pipeline.errors import LakeError, import_extra


def import_duckdb() -> Any:
    """The module `duckdb`; `MissingExtraError` if it is not installed."""
    return import_extra("duckdb", "history")


def connect(*, threads: int | None = None, **settings: str) -> Any:
    """A connection without a database, which downloads nothing and prints nothing.

    A database in memory takes 25 ms of the processor to open and to close, more than most queries take. So connections
    of a process share one, and differ in what is theirs: temporary tables, registered tables and the time zone. With
    settings of the database it is the connection's own, which its cursors share.
    """
    connection = _database(threads, **settings) if settings else _shared_database(os.getpid(), threads).cursor()
    connection.execute("set enable_progress_bar = false")
    return connection


@functools.cache
def _shared_database(process: int, threads: int | None) -> Any:  # noqa: ARG001
    """The database of all connections of a process. Its threads are not in processes that are made by a fork."""
    return _database(threads)


def _database(threads: int | None, **settings: str) -> Any:
    # What is needed is built in.
    quiet = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        # What doesn't fit in memory; the default is a folder in the working directory.
        "temp_directory": f"{tempfile.gettempdir()}/qmf-duckdb-{os.getpid()}",
    }
    if threads is not None:
        quiet["threads"] = str(threads)
    made = import_duckdb().connect(":memory:", config=quiet)
    for name, value in settings.items():
        made.execute(f"set global {name} = {text(value)}")
    return made


@contextmanager
def duckdb_errors(lake: str) -> Iterator[None]:
    """Raise errors of queries on a lake as `LakeError`; or KeyboardInterrupt, since DuckDB takes Ctrl-C."""
    duckdb = import_duckdb()
    try:
        yield
    except duckdb.Error as error:
        if isinstance(error, duckdb.IOException) and any(
            text in str(error) for text in ("No files found", "No such file")
        ):
            raise LakeError(f"{lake}: a file was deleted before it was read; try again") from error
        raise LakeError(f"{lake}: {str(error).partition(chr(10))[0]}") from error
    except RuntimeError as error:
        if "interrupt" not in str(error).lower():
            raise
        raise KeyboardInterrupt from None


def quote_name(name: str) -> str:
    """A column's name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text as SQL."""
    return "'" + value.replace("'", "''") + "'"


def parquet_files(paths: Sequence[str], options: str = "") -> str:
    """The rows of Parquet files, as SQL; options as `read_parquet` has them, with a comma before each."""
    return f"read_parquet([{', '.join(text(path) for path in paths)}], hive_partitioning = false{options})"
