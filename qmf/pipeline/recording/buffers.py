"""Rows that wait for their commit: by place, with the columns that their files will have."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence

import attrs

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import arrow_table, columns_of, library
from qmf.pipeline.lake.columns import Group, Table
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.layout import Place, day
from qmf.pipeline.lake.row_columns import Columns
from qmf.pipeline.recording.conversion import Convert, Misfit, converter

Row = tuple[object, ...]


#: Bytes of a file for each cell, until the first file of a class tells better.
_BYTES_PER_CELL = 8.0


@attrs.frozen
class Written:
    """What commits wrote.

    Attributes:
        rows, files, size: how many of each; the size in bytes.
    """

    rows: int = 0
    files: int = 0
    size: int = 0

    def __add__(self, other: Written) -> Written:
        return Written(self.rows + other.rows, self.files + other.files, self.size + other.size)


@attrs.frozen
class File:
    """One file that a commit wrote.

    Attributes:
        place: where.
        rows, cells, size: how many of each; the size in bytes.
    """

    place: Place
    rows: int
    cells: int
    size: int


def total(files: Iterable[File]) -> Written:
    """What some files hold together."""
    return sum((Written(file.rows, 1, file.size) for file in files), Written())


class Converters:
    """Makes the cells of one class; made once per class version."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._steps: list[tuple[str, bool, Convert]] = [
            (item.wire, item.group is Group.STATISTIC, converter(item)) for item in table.columns
        ]
        self.misfits = 0

    def cells(self, values: dict[str, object], *, statistics: bool) -> Row:
        """The cells of one row.

        Args:
            values: by wire name; missing ones become None, as do those that don't fit: `misfits` counts them.
            statistics: False leaves the statistics' columns empty.
        """
        cells: list[object] = []
        for wire, is_statistic, convert in self._steps:
            value = values.get(wire)
            if value is None or (is_statistic and not statistics):
                cells.append(None)
                continue
            try:
                cells.append(convert(value))
            except Misfit:
                self.misfits += 1
                cells.append(None)
        return tuple(cells)


@attrs.define
class _Buffer:
    columns: Columns
    since: float
    rows: list[Row] = attrs.field(factory=list)


@attrs.frozen
class Batch:
    """Rows taken out of the buffers for one commit."""

    parts: Sequence[tuple[Place, Columns, list[Row]]]


class Buffers:
    """All rows that wait. Belongs to one thread.

    How large a file becomes is known only when it is compressed, so the size of the next one is foretold from the cells
    of the last one of the same class.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buffers: dict[Place, _Buffer] = {}
        self._per_cell: dict[tuple[object, ...], float] = {}
        self.cells = 0
        """Cells that wait: what the memory needed grows with."""

    def add(self, kind: RowKind, table: Table | None, time_ns: int, row: Row) -> None:
        """Add one row, with all its cells."""
        package, name, hash = (table.package, table.name, table.hash) if table else ("", "", "")
        place = Place(kind, package, name, hash, day(time_ns))
        buffer = self._buffers.get(place)
        if buffer is None:
            buffer = self._buffers[place] = _Buffer(columns_of(kind, table), self._clock())
        buffer.rows.append(row)
        self.cells += len(row)

    def age(self) -> float:
        """Seconds since the oldest row that waits came; 0 for none."""
        now = self._clock()
        return max((now - buffer.since for buffer in self._buffers.values()), default=0.0)

    def largest(self) -> float:
        """Bytes that the largest file will have, as far as can be foretold."""
        return max((self._bytes(place, buffer) for place, buffer in self._buffers.items()), default=0.0)

    def learn(self, files: Iterable[File]) -> None:
        """Remember how large the files of a commit became."""
        for file in files:
            self._per_cell[_class(file.place)] = file.size / file.cells

    def take(self, limit: float = math.inf) -> Batch:
        """Take everything out.

        Args:
            limit: bytes that a file should have at most.
        """
        parts: list[tuple[Place, Columns, list[Row]]] = []
        for place, buffer in self._buffers.items():
            files = min(math.ceil(self._bytes(place, buffer) / limit) or 1, len(buffer.rows))
            step = math.ceil(len(buffer.rows) / files)
            rows = buffer.rows
            parts += [(place, buffer.columns, rows[n : n + step]) for n in range(0, len(rows), step)]
        self._buffers, self.cells = {}, 0
        return Batch(parts)

    def _bytes(self, place: Place, buffer: _Buffer) -> float:
        return len(buffer.rows) * len(buffer.columns) * self._per_cell.get(_class(place), _BYTES_PER_CELL)


def _class(place: Place) -> tuple[object, ...]:
    return (place.kind, place.package, place.name, place.hash)


def commit(lake: Lake, name: str, run: str, number: int, batch: Batch) -> list[File]:
    """Write a batch as one commit: a file for each place, then the entry in the log.

    Args:
        lake, name, run: where, and as whom.
        number: of the first file; the files of a batch take as many numbers as there are parts.

    Returns:
        the files.

    Raises:
        LakeError: the file system refused, for instance because it is full. Files that were whole by then stay, and
            are entered when the writer starts again.
    """
    parquet = library().parquet
    added: dict[str, int] = {}
    files: list[File] = []
    for index, (place, columns, rows) in enumerate(batch.parts):
        table = arrow_table(columns, rows)
        path = lake.write(
            place.folder,
            name,
            run,
            number + index,
            lambda target, table=table: parquet.write_table(table, target, compression="zstd"),  # type: ignore[misc]
        )
        added[path] = len(rows)
        size = (lake.root / path).stat().st_size
        files.append(File(place, len(rows), len(rows) * len(columns), size))
    if added:
        lake.log(added)
    return files
