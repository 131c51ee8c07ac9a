"""Rows that wait for their commit, by kind or class version."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import attrs

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import columns_of
from qmf.pipeline.lake.columns import ClassVersion, MemberKind
from qmf.pipeline.lake.days import day
from qmf.pipeline.lake.row_columns import Columns
from qmf.pipeline.record.conversion import CellConverter, InvalidValueError, converter

#: Cells of one row, in the order of their columns.
Cells = tuple[object, ...]


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


@attrs.frozen
class RowGroup:
    """Which rows are kept together: those of a kind, or of a class version."""

    kind: RowKind
    version: ClassVersion | None = None


@attrs.define
class _Buffer:
    columns: Columns
    since: float
    rows: list[Cells] = attrs.field(factory=list)
    dates: list[str] = attrs.field(factory=list)


@attrs.frozen
class WaitingRows:
    """Rows of one group, taken for a commit.

    Attributes:
        group: what they have in common.
        columns: of the rows.
        rows: their cells.
        dates: their days.
    """

    group: RowGroup
    columns: Columns
    rows: Sequence[Cells]
    dates: Sequence[str]


class RowBuffers:
    """All rows that wait. Belongs to one thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buffers: dict[RowGroup, _Buffer] = {}
        self.cells = 0
        """Cells that wait; the memory needed is proportional to them."""

    def add(self, kind: RowKind, version: ClassVersion | None, time_ns: int, row: Cells) -> None:
        """Add one row, with all its cells."""
        group = RowGroup(kind, version)
        buffer = self._buffers.get(group)
        if buffer is None:
            buffer = self._buffers[group] = _Buffer(columns_of(kind, version), self._clock())
        buffer.rows.append(row)
        buffer.dates.append(day(time_ns))
        self.cells += len(row)

    def age(self) -> float:
        """Seconds since the oldest waiting row was added; 0 for none."""
        now = self._clock()
        return max((now - buffer.since for buffer in self._buffers.values()), default=0.0)

    def take(self) -> list[WaitingRows]:
        """Remove and return all rows."""
        taken = [WaitingRows(group, item.columns, item.rows, item.dates) for group, item in self._buffers.items()]
        self._buffers, self.cells = {}, 0
        return taken
