"""Rows that wait for their commit, by partition, with the columns that their files will have."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence

import attrs

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import arrow_table, columns_of, import_pyarrow
from qmf.pipeline.lake.columns import ClassVersion, MemberKind
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.layout import LakePartition, day
from qmf.pipeline.lake.row_columns import Columns
from qmf.pipeline.recording.conversion import CellConverter, InvalidValueError, converter

#: Cells of one row, in the order of their columns.
Cells = tuple[object, ...]

#: Bytes of a file for each cell, until the first file of a class is measured.
_BYTES_PER_CELL = 8.0


@attrs.frozen
class CommitCounts:
    """What commits wrote.

    Attributes:
        rows, files, size: numbers of rows and files, and the size in bytes.
    """

    rows: int = 0
    files: int = 0
    size: int = 0

    def __add__(self, other: CommitCounts) -> CommitCounts:
        return CommitCounts(self.rows + other.rows, self.files + other.files, self.size + other.size)


@attrs.frozen
class CommittedFile:
    """One file that a commit wrote.

    Attributes:
        partition: its folder.
        rows, cells, size: numbers of rows and cells, and the size in bytes.
    """

    partition: LakePartition
    rows: int
    cells: int
    size: int


def total(files: Iterable[CommittedFile]) -> CommitCounts:
    """The counts of some files together."""
    return sum((CommitCounts(file.rows, 1, file.size) for file in files), CommitCounts())


class RowConverter:
    """Makes the cells of one class version.

    Attributes:
        version: of the class.
        invalid_values: number of values so far that didn't fit their column.
    """

    def __init__(self, version: ClassVersion) -> None:
        self.version = version
        self._converters: list[tuple[str, bool, CellConverter]] = [
            (item.wire, item.kind is MemberKind.STATISTIC, converter(item)) for item in version.columns
        ]
        self.invalid_values = 0

    def cells(self, values: dict[str, object], *, statistics: bool) -> Cells:
        """The cells of one row.

        Args:
            values: by wire name. Missing values, and those that don't fit, become None.
            statistics: False leaves the statistics' columns empty.
        """
        cells: list[object] = []
        for wire, is_statistic, convert in self._converters:
            value = values.get(wire)
            if value is None or (is_statistic and not statistics):
                cells.append(None)
                continue
            try:
                cells.append(convert(value))
            except InvalidValueError:
                self.invalid_values += 1
                cells.append(None)
        return tuple(cells)


@attrs.define
class _PartitionBuffer:
    columns: Columns
    since: float
    rows: list[Cells] = attrs.field(factory=list)


@attrs.frozen
class CommitBatch:
    """The rows of one commit.

    Attributes:
        parts: those of each file.
    """

    parts: Sequence[tuple[LakePartition, Columns, list[Cells]]]


class RowBuffers:
    """All rows that wait. Belongs to one thread.

    The size of a file is known only after compression, so that of the next one is estimated from the bytes per cell of
    the last one of the same class version.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buffers: dict[LakePartition, _PartitionBuffer] = {}
        self._bytes_per_cell: dict[LakePartition, float] = {}
        self.cells = 0
        """Cells that wait; the memory needed is proportional to them."""

    def add(self, kind: RowKind, version: ClassVersion | None, time_ns: int, row: Cells) -> None:
        """Add one row, with all its cells."""
        package, name, hash = (version.package, version.name, version.hash) if version else ("", "", "")
        partition = LakePartition(kind, package, name, hash, day(time_ns))
        buffer = self._buffers.get(partition)
        if buffer is None:
            buffer = self._buffers[partition] = _PartitionBuffer(columns_of(kind, version), self._clock())
        buffer.rows.append(row)
        self.cells += len(row)

    def age(self) -> float:
        """Seconds since the oldest waiting row was added; 0 for none."""
        now = self._clock()
        return max((now - buffer.since for buffer in self._buffers.values()), default=0.0)

    def largest(self) -> float:
        """Estimated bytes of the largest file."""
        return max((self._bytes(partition, buffer) for partition, buffer in self._buffers.items()), default=0.0)

    def record_sizes(self, files: Iterable[CommittedFile]) -> None:
        """Use the sizes of a commit's files for the next estimates."""
        for file in files:
            self._bytes_per_cell[_without_date(file.partition)] = file.size / file.cells

    def take(self, limit: float = math.inf) -> CommitBatch:
        """Remove and return all rows.

        Args:
            limit: bytes that a file should have at most.
        """
        parts: list[tuple[LakePartition, Columns, list[Cells]]] = []
        for partition, buffer in self._buffers.items():
            files = min(math.ceil(self._bytes(partition, buffer) / limit) or 1, len(buffer.rows))
            step = math.ceil(len(buffer.rows) / files)
            rows = buffer.rows
            parts += [(partition, buffer.columns, rows[n : n + step]) for n in range(0, len(rows), step)]
        self._buffers, self.cells = {}, 0
        return CommitBatch(parts)

    def _bytes(self, partition: LakePartition, buffer: _PartitionBuffer) -> float:
        per_cell = self._bytes_per_cell.get(_without_date(partition), _BYTES_PER_CELL)
        return len(buffer.rows) * len(buffer.columns) * per_cell


def _without_date(partition: LakePartition) -> LakePartition:
    return attrs.evolve(partition, date="")


def commit(lake: Lake, name: str, run: str, number: int, batch: CommitBatch) -> list[CommittedFile]:
    """Write a batch as one commit: its files, then the entry in the log.

    Args:
        lake: where.
        name, run: of the writer.
        number: of the first file; the files of a batch use as many numbers as the batch has parts.

    Returns:
        the files.

    Raises:
        LakeError: the file system failed, for instance because it is full. Files that were whole by then stay, and
            the writer's next start adds them to the log.
    """
    parquet = import_pyarrow().parquet
    added: dict[str, int] = {}
    files: list[CommittedFile] = []
    for index, (partition, columns, rows) in enumerate(batch.parts):
        table = arrow_table(columns, rows)
        path = lake.write(
            partition.folder,
            name,
            run,
            number + index,
            lambda target, table=table: parquet.write_table(table, target, compression="zstd"),  # type: ignore[misc]
        )
        added[path] = len(rows)
        size = (lake.root / path).stat().st_size
        files.append(CommittedFile(partition, len(rows), len(rows) * len(columns), size))
    if added:
        lake.append_to_log(added)
    return files
