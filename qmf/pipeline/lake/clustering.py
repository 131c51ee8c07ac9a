"""The layout of large days of objects: rows sorted by agent, object and time; the log has the limits of each file.

A recorder's files, and files combined from them, have all objects each; a reader of one object has to open all of a
day. In a clustered day an object is in one file, or in a few that follow each other. Days are clustered when they are
over, since recorders add to the present one. Rows that come later stay in files of their own until they are many.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import PurePosixPath
from typing import Any

from qmf.pipeline.duckdb_queries import connect, duckdb_errors
from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.columns import DATE
from qmf.pipeline.lake.delta_errors import import_deltalake
from qmf.pipeline.lake.lake_table import MOVED, LakeTable
from qmf.pipeline.lake.location import check_space
from qmf.pipeline.lake.row_files import write_rows
from qmf.pipeline.lake.table_files import GROUP_ROWS, TableFile, WrittenFile
from qmf.pipeline.lake.table_log import CLUSTERED_STATISTICS

#: Days with more rows are clustered: in smaller ones, readers would have to open a file and a row group anyway.
CLUSTER_ROWS = GROUP_ROWS

#: The beginning of the names of files with sorted rows.
_CLUSTERED = "clustered"

#: A day is sorted again when so many files are not, or so large a part of its rows.
_MOST_FILES, _MOST_PARTS = 10, 10

_ROWS = "qmf_unsorted"


def days_to_cluster(files: Iterable[TableFile], before: str, rows: int = CLUSTER_ROWS) -> dict[str, list[TableFile]]:
    """The files of the days before one that should be clustered, by day; those with fewer rows are left."""
    days: dict[str, list[TableFile]] = {}
    for file in files:
        if file.date is not None and file.date < before:
            days.setdefault(file.date, []).append(file)
    large = {day: own for day, own in sorted(days.items()) if sum(file.rows for file in own) > rows}
    return {day: own for day, own in large.items() if _is_unsorted(own)}


def clustered_days(files: Iterable[TableFile]) -> list[str]:
    """The days that have files with sorted rows, in order."""
    return sorted({str(file.date) for file in files if _has_sorted_rows(file)})


def _has_sorted_rows(file: TableFile) -> bool:
    return PurePosixPath(file.path).name.startswith(f"{_CLUSTERED}-")


def _is_unsorted(files: Sequence[TableFile]) -> bool:
    others = [file for file in files if not _has_sorted_rows(file)]
    rows = sum(file.rows for file in files)
    return len(others) >= _MOST_FILES or sum(file.rows for file in others) * _MOST_PARTS >= rows


def cluster(table: LakeTable, files: Sequence[TableFile], target_bytes: int) -> int:
    """Sort the rows of some files of a day, and replace these by new ones of about `target_bytes`, in one commit.

    Others may write and read the table meanwhile; `LakeError` where one replaced one of the files. Returns the number
    of new files.
    """
    table.declare(CLUSTERED_STATISTICS)
    check_space(table.url, sum(file.size for file in files))
    with (
        tempfile.TemporaryDirectory(prefix="qmf-sort-") as folder,
        closing(connect(temp_directory=folder)) as connection,
    ):
        connection.register(_ROWS, table.dataset(files))
        with duckdb_errors(table.url):
            rows = connection.sql(f"from {_ROWS} order by _agent, _object, _ts_ns, _run, _seq")
            written = write_rows(
                table,
                rows.to_arrow_reader(GROUP_ROWS // 4),
                table.schema(),
                by=(DATE,),
                statistics=CLUSTERED_STATISTICS,
                name=_CLUSTERED,
                target_bytes=target_bytes,
            )
    _move(table, files, written.files)
    return len(written.files)


def _move(table: LakeTable, files: Sequence[TableFile], written: Sequence[WrittenFile]) -> None:
    """Replace files by others that hold the same rows, which is no news to those who follow the table."""
    from deltalake.transaction import AddAction, RemoveAction

    delta = import_deltalake()
    now = time.time_ns() // 1_000_000
    actions: list[Any] = [
        AddAction(file.path, file.size, dict(file.partition), now, False, file.statistics) for file in written
    ]
    actions += [RemoveAction(file.path, False, now, file.size, {DATE: file.date}) for file in files]

    def commit() -> None:
        known = {file.path for file in table.snapshot().files}
        missing = next((file.path for file in files if file.path not in known), None)
        if missing is not None:
            raise LakeError(f"{table.url}: {missing} was replaced meanwhile; try again")
        # Not after another commit: the library would not notice that it took out one of the files.
        properties = delta.CommitProperties(custom_metadata={MOVED: "true"}, max_commit_retries=0)
        schema = delta.Schema.from_arrow(table.schema())
        table.delta().create_write_transaction(actions, "append", schema, [DATE], commit_properties=properties)

    table.retry(commit)
