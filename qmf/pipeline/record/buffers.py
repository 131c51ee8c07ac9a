"""Values that a console delivers as cells of columns, and rows that wait for their commit, by kind or class version.

A foreign agent may send anything under any name; a value that doesn't fit its column raises `InvalidValueError`: it
must neither stop the recorder nor silently become another value.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from uuid import UUID

import attrs

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import columns_of
from qmf.pipeline.lake.columns import ClassVersion, Columns, ColumnType, LakeColumn, MemberKind, MemberPart
from qmf.pipeline.lake.days import day
from qmf.protocol import ObjectId
from qmf.views.records import JsonForm

#: Converts one value to a cell; raises `InvalidValueError` where it can't.
CellConverter = Callable[[object], object]

_BOUNDS: Mapping[ColumnType, tuple[int, int]] = {
    ColumnType.INT8: (-(1 << 7), (1 << 7) - 1),
    ColumnType.INT16: (-(1 << 15), (1 << 15) - 1),
    ColumnType.INT32: (-(1 << 31), (1 << 31) - 1),
    ColumnType.INT64: (-(1 << 63), (1 << 63) - 1),
    ColumnType.DECIMAL: (-(10**20) + 1, 10**20 - 1),
}


class InvalidValueError(ValueError):
    """A value that its column can't hold."""


def converter(column: LakeColumn) -> CellConverter:
    if column.part is MemberPart.AGENT:
        return _agent
    if column.type == "objId":
        return _object
    if column.column_type in _BOUNDS:
        low, high = _BOUNDS[column.column_type]
        return lambda value: _integer(value, low, high)
    return _CONVERTERS[column.column_type]


def to_json(value: object) -> str:
    """A value of a map, a list, or an unknown type as JSON; types that JSON lacks are written as text."""
    return json.dumps(_FORM.plain(value), ensure_ascii=False, separators=(",", ":"))


def _integer(value: object, low: int, high: int) -> int:
    if type(value) is not int and not isinstance(value, int):
        raise InvalidValueError
    if isinstance(value, bool) or not low <= value <= high:
        raise InvalidValueError
    return value


def _float(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidValueError
    return float(value)


def _bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidValueError
    return value


def _text(value: object) -> str:
    if isinstance(value, str):
        # Text that was not UTF-8 on the wire holds surrogates, which no file format accepts.
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping | list | tuple):
        return to_json(value)
    raise InvalidValueError


def _time(value: object) -> int:
    """Microseconds; the nanoseconds are in the other column."""
    return _integer(value, *_BOUNDS[ColumnType.INT64]) // 1000


def _object(value: object) -> str:
    if not isinstance(value, ObjectId):
        raise InvalidValueError
    return _text(value.object_name)


def _agent(value: object) -> str | None:
    if not isinstance(value, ObjectId):
        raise InvalidValueError
    return None if value.agent_name is None else _text(value.agent_name)


_CONVERTERS: Mapping[ColumnType, CellConverter] = {
    ColumnType.FLOAT: _float,
    ColumnType.DOUBLE: _float,
    ColumnType.BOOL: _bool,
    ColumnType.TEXT: _text,
    ColumnType.TIME: _time,
}


def _reference(value: ObjectId) -> dict[str, object]:
    return {"_object_name": value.object_name, "_agent_name": value.agent_name, "_agent_epoch": value.agent_epoch}


_FORM = JsonForm(text=_text, special=str, binary=bytes.hex, reference=_reference)


#: Cells of one row, in the order of their columns.
Cells = tuple[object, ...]


class RowConverter:
    """Makes the cells of one class version, and counts the values so far that didn't fit their column."""

    def __init__(self, version: ClassVersion) -> None:
        self.version = version
        self._converters: list[tuple[str, bool, CellConverter]] = [
            (item.wire, item.kind is MemberKind.STATISTIC, converter(item)) for item in version.columns
        ]
        self.invalid_values = 0

    def cells(self, values: dict[str, object], *, statistics: bool) -> Cells:
        """The cells of one row, from values by wire name; those that are missing or don't fit become None."""
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
class WaitingRows:
    """Cells of rows of a kind or of a class version, with their days; the first one was added at `since`."""

    kind: RowKind
    version: ClassVersion | None
    columns: Columns
    since: float
    rows: list[Cells] = attrs.field(factory=list)
    dates: list[str] = attrs.field(factory=list)


class RowBuffers:
    """All rows that wait. Belongs to one thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buffers: dict[tuple[RowKind, ClassVersion | None], WaitingRows] = {}
        self.cells = 0
        """Cells that wait; the memory needed is proportional to them."""

    def add(self, kind: RowKind, version: ClassVersion | None, time_ns: int, row: Cells) -> None:
        buffer = self._buffers.get((kind, version))
        if buffer is None:
            buffer = WaitingRows(kind, version, columns_of(kind, version), self._clock())
            self._buffers[kind, version] = buffer
        buffer.rows.append(row)
        buffer.dates.append(day(time_ns))
        self.cells += len(row)

    def age(self) -> float:
        """Seconds since the oldest waiting row was added; 0 for none."""
        now = self._clock()
        return max((now - buffer.since for buffer in self._buffers.values()), default=0.0)

    def take(self) -> list[WaitingRows]:
        taken = list(self._buffers.values())
        self._buffers, self.cells = {}, 0
        return taken
