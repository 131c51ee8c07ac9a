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
    """A Parquet file of a table's version, by its path inside the table: unique, since files are never changed.

    Dates are days of UTC, where the table has days; limits of `_ts_ns`, `_received_ns`, hashes, agents and objects are
    None where the log doesn't have them. The run is that of all rows, or None.
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

    @property
    def limits(self) -> list[tuple[str, Any, Any]]:
        """The columns of `LIMITS`, each with its smallest and its largest value; None where not known."""
        ends = attrs.astuple(self, recurse=False)[-2 * len(LIMITS) :]
        return list(zip(LIMITS, ends[::2], ends[1::2], strict=True))

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
        return sum(file.rows for file in self.files)


@attrs.frozen
class WrittenFile:
    """A file that is not committed yet; its statistics are JSON in the words of the Delta protocol."""

    path: str
    partition: Mapping[str, str]
    rows: int
    size: int
    statistics: str


def file_system(url: str, options: Mapping[str, str]) -> Any:
    """A folder of this machine, or behind a URL, as a file system of pyarrow."""
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
