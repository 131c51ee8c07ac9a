"""Readers of the Spark data source `qmf` over the tables of a lake: a batch, and a stream.

An offset of a stream says for each table how much of it was read, see `qmf.pipeline.lake.feed`. Files don't change once
they were committed, and files that were only combined hold no new rows, so a restarted query reads exactly what it has
not committed. Where several recorders record the same agents, the rows of one count, see `qmf.pipeline.lake.runs`; a
stream waits for the heartbeats that decide.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from qmf.pipeline.lake.arrow import arrow_schema
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.feed import FeedFile, LakeFeed, Position, position_from_json, position_to_json
from qmf.pipeline.lake.file_rows import WantedRows, file_rows, has_classes
from qmf.pipeline.lake.row_conditions import may_have
from qmf.pipeline.lake.runs import LeftOut, RecordedRuns
from qmf.pipeline.lake.table_files import TableFile
from qmf.pipeline.lake.waiting import ReaderNote, complete_until
from qmf.pipeline.spark_access.pushdown import conditions_of

if TYPE_CHECKING:
    from qmf.pipeline.record.spool import Spool

#: Files of one micro-batch at most, about: what limits its memory.
DEFAULT_FILES = 1000

#: Files that one task reads at most, and their bytes: a task costs more than opening a small file.
_TASK_FILES, _TASK_BYTES = 64, 32 * 1024 * 1024

Offset = dict[str, list[int | None]]

PathFilter = Callable[[str], bool]
"""True for the paths of the tables that a query reads."""


@attrs.frozen
class LakePlace:
    """Where a lake is.

    Attributes:
        url: path or URL.
        options: of its object store.
    """

    url: str
    options: Mapping[str, str] = attrs.field(factory=dict)

    def open(self) -> DeltaLake:
        """The lake."""
        return DeltaLake(self.url, self.options)


class FilesPartition(InputPartition):
    """Files that one task reads: paths of their tables inside the lake, and of the files inside these.

    `left_out` are the rows in them that don't count, since another recorder has them too.
    """

    def __init__(self, files: list[tuple[str, str]], left_out: tuple[LeftOut, ...] = ()) -> None:
        super().__init__(files)
        self.files = files
        self.left_out = left_out


def partitions_of(files: Sequence[FeedFile], left_out: Sequence[LeftOut]) -> list[InputPartition]:
    """Files in parts, one for each task: a few files, or a few more where they are small."""
    parts: list[list[FeedFile]] = []
    size = 0
    for item in files:
        if not parts or len(parts[-1]) >= _TASK_FILES or size + item.file.size > _TASK_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(item)
        size += item.file.size
    found: list[InputPartition] = []
    for part in parts:
        own = tuple(row for row in left_out if any(_may_have(item.file, row) for item in part))
        found.append(FilesPartition([(item.path, item.file.path) for item in part], own))
    return found


def _may_have(file: TableFile, row: LeftOut) -> bool:
    """True for files that may have rows that are left out."""
    if file.first_ns is None or file.last_ns is None:
        return True
    return file.run in (None, row.run) and file.first_ns < row.end_ns and file.last_ns >= row.first_ns


def read_files(place: LakePlace, partition: InputPartition, wanted: WantedRows) -> Iterator[Any]:
    """The rows of the files of a task."""
    assert isinstance(partition, FilesPartition)
    lake = place.open()
    wanted = attrs.evolve(wanted, left_out=partition.left_out)
    for table_path, path in partition.files:
        yield from file_rows(lake.table(table_path), table_path, path, wanted)


class LakeBatchReader(DataSourceReader):
    """Reads what is in some tables of a lake."""

    def __init__(self, place: LakePlace, files: Sequence[FeedFile], wanted: WantedRows) -> None:
        """Prepare the reading of the files of some tables.

        Args:
            place: where the lake is.
            files: to read.
            wanted: rows and columns.
        """
        self._place = place
        self._files = tuple(files)
        self._wanted = wanted

    def partitions(self) -> list[InputPartition]:
        """A few files for each task; Spark asks for one part at least."""
        files = [item for item in self._files if may_have(item.file, self._wanted.conditions)]
        has_rows = any(has_classes(item.path) for item in files)
        left_out = RecordedRuns(self._place.open()).left_out_rows() if has_rows else ()
        return partitions_of(files, left_out) or [FilesPartition([])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of some files."""
        return read_files(self._place, partition, self._wanted)


class FilteringLakeReader(LakeBatchReader):
    """The same for one query, whose filters reach the files.

    For one query alone: Spark keeps what a query with filters reads, and a later query of the same frame without
    filters gets that, too (seen with Spark 4.3).
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Leave out files, row groups and rows that cannot meet filters; Spark applies all of them once more."""
        types = {field.name: field.type for field in arrow_schema(self._wanted.columns)}
        self._wanted = attrs.evolve(self._wanted, conditions=conditions_of(filters, types))
        return filters


class LakeStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows tables of a lake. Runs in a process of its own beside the driver; `read` runs in the executors."""

    def __init__(
        self,
        place: LakePlace,
        wanted: WantedRows,
        includes: PathFilter,
        *,
        limit: int = DEFAULT_FILES,
        spooled: tuple[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Make a reader; it reads nothing yet.

        Args:
            place: where the lake is.
            wanted: rows and columns.
            includes: chooses the tables; those that are added later join.
            limit: files of a micro-batch at most, about.
            spooled: URL of a bus to record into the lake meanwhile, and options of the spool.
        """
        self._place = place
        self._wanted = wanted
        self._includes = includes
        self._limit = limit
        self._spooled = spooled
        self._spool: Spool | None = None
        self._feed: LakeFeed | None = None
        self._runs: RecordedRuns | None = None
        self._lake: DeltaLake | None = None
        self._note: ReaderNote | None = None
        self._end: dict[str, int] | None = None

    # -- beside the driver

    def initialOffset(self) -> Offset:
        """Nothing was read."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit of files, unless Spark asks for all."""
        return ReadMaxFiles(self._limit)

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember the last commits as the end."""
        self._end = self._open()[0].versions(self._paths())

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """The end of the next micro-batch."""
        if self._spooled is not None and self._spool is None:
            from qmf.pipeline.record.spool import Spool  # loads the console, which no other stream needs

            self._spool = Spool(self._spooled[0], self._place.url, self._spooled[1])
        files = None if isinstance(limit, ReadAllAvailable) else self._limit
        feed, paths = self._open()[1], self._paths()
        # All that is there is read at the end, so there is nothing to wait for.
        until = None if self._end is not None else self._known_until(paths)
        position = feed.next_position(_position(start), paths, limit=files, end=self._end, until_ns=until)
        return position_to_json(position)

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """The files that came between two offsets, a few for each task."""
        found = self._open()[1].files(_position(start), _position(end))
        if not any(has_classes(item.path) for item in found):
            return partitions_of(found, ())
        assert self._runs is not None
        return partitions_of(found, self._runs.left_out_rows())

    def commit(self, end: Offset) -> None:
        """Nothing to release: files are removed by the lake's retention."""

    def stop(self) -> None:
        """Stop the spool, and let recorders hold rows back again."""
        if self._note is not None:
            self._note.close()
        if self._spool is not None:
            self._spool.close()

    def _open(self) -> tuple[DeltaLake, LakeFeed]:
        if self._lake is None or self._feed is None:
            self._lake = self._place.open()
            self._feed = LakeFeed(self._lake)
            self._runs = RecordedRuns(self._lake)
            self._note = ReaderNote(self._lake, "spark", time.time_ns)
        return self._lake, self._feed

    def _known_until(self, paths: Sequence[str]) -> int | None:
        """The time of arrival up to which all rows are there, and it is known which of them count."""
        assert self._lake is not None
        assert self._note is not None
        self._note.renew(paths)
        complete = complete_until(self._lake, paths, time.time_ns())
        limits = (self._decided_until(paths), None if complete is None else complete - 1)
        return min((limit for limit in limits if limit is not None), default=None)

    def _decided_until(self, paths: Sequence[str]) -> int | None:
        """The time of arrival up to which it is known which rows of classes count."""
        if self._runs is None or not any(has_classes(path) for path in paths):
            return None
        return self._runs.decided_until(time.time_ns())

    def _paths(self) -> list[str]:
        return [path for path in self._open()[0].paths() if self._includes(path)]

    # -- in an executor

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of some files."""
        return read_files(self._place, partition, self._wanted)


def _position(offset: Offset) -> Position:
    return position_from_json(offset)
