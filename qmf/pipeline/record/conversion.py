"""Values that a console delivers, converted to cells of a column. A value that doesn't fit raises `InvalidValueError`.

A foreign agent may send anything under any name; a value that doesn't fit must neither stop the recorder nor silently
become another value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from uuid import UUID

from qmf.pipeline.lake.columns import ColumnType, LakeColumn, MemberPart
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
    """The function that makes the cells of a column."""
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
