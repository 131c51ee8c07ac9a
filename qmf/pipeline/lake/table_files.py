"""The Parquet files of a Delta table: those of a version, and those that are being written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from qmf.pipeline.errors import import_extra
from qmf.pipeline.lake.columns import HASH
from qmf.pipeline.lake.delta_errors import delta_errors
from qmf.pipeline.lake.location import is_local

#: Rows of a row group at most: small ones cost readers more than their rows, large ones are memory while writing.
GROUP_ROWS = 250_000

#: The columns with limits of values in logs, in the order of the fields of `TableFile`.
LIMITS = ("_ts_ns", "_received_ns", HASH, "_agent", "_object")


@attrs.frozen
class TableFile:
    """A Parquet file of a table's version.

    Attributes:
        path: inside the table; unique, since files are never changed.
        url: where it is: a path of this machine, or a URL.
        date: day of its rows, in UTC; None where the table has no days.
        rows, size: number of rows, and size in bytes.
        run: of the recorder that wrote all of its rows; None where there are several, or none.
        first_ns, last_ns: the earliest and the latest `_ts_ns` of its rows; None where not known.
        first_received_ns, last_received_ns: the earliest and the latest `_received_ns`; None where not known.
        first_hash, last_hash: the hashes of the class versions of its rows, the smallest and the largest; None in
            tables of other kinds.
        first_agent, last_agent, first_object, last_object: the limits of the names of agents and objects; None where
            not known, as of tables that are not clustered.
    """

    path: str
    url: str
    date: str | None
    rows: int
    size: int
    run: str | None = None
    first_ns: int | None = None
    last_ns: int | None = None
    first_received_ns: int | None = None
    last_received_ns: int | None = None
    first_hash: str | None = None
    last_hash: str | None = None
    first_agent: str | None = None
    last_agent: str | None = None
    first_object: str | None = None
    last_object: str | None = None

    def may_have_object(self, agent: str, name: str) -> bool:
        """False if no row can be of this object of this agent."""
        limits = ((self.first_agent, agent, self.last_agent), (self.first_object, name, self.last_object))
        return all(low is None or high is None or low <= value <= high for low, value, high in limits)


FilesByTable = Mapping[str, Sequence[TableFile]]
"""Files of tables, by the path of the table in the lake."""


def in_portions(files: FilesByTable, rows: int) -> Iterator[FilesByTable]:
    """Files in portions of so many rows, about."""
    chosen: dict[str, list[TableFile]] = {}
    count = 0
    for path, own in files.items():
        for file in own:
            chosen.setdefault(path, []).append(file)
            count += file.rows
            if count >= rows:
                yield chosen
                chosen, count = {}, 0
    if chosen:
        yield chosen


@attrs.frozen
class TableSnapshot:
    """The files of a table at one version, the oldest day first."""

    version: int
    files: tuple[TableFile, ...]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(file.rows for file in self.files)


@attrs.frozen
class WrittenFile:
    """A file that was written into a table's folder and is not committed yet.

    Attributes:
        path: inside the table.
        partition: values of the columns by which the table is partitioned.
        rows, size: number of rows, and size in bytes.
        statistics: of its columns, as JSON in the words of the Delta protocol.
    """

    path: str
    partition: Mapping[str, str]
    rows: int
    size: int
    statistics: str


def file_system(url: str, options: Mapping[str, str]) -> Any:
    """A folder of this machine, or behind a URL, as a file system of pyarrow.

    Raises:
        LakeError: the object store is not known, or its settings are wrong.
    """
    fs = import_extra("pyarrow.fs")
    if is_local(url):
        return fs.SubTreeFileSystem(url, fs.LocalFileSystem())
    from deltalake.fs import DeltaStorageHandler

    with delta_errors(url):
        return fs.PyFileSystem(DeltaStorageHandler(url, dict(options)))


def list_folder(url: str, options: Mapping[str, str], folder: str) -> list[Any]:
    """What is in a folder of `file_system`, as pyarrow has it; nothing where it is missing."""
    selector = import_extra("pyarrow.fs").FileSelector(folder, allow_not_found=True)
    with delta_errors(f"{url}/{folder}"):
        found: list[Any] = file_system(url, options).get_file_info(selector)
    return found
