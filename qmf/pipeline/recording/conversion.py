"""Values as a console gives them, as cells of a column. What doesn't fit becomes None, and is counted by the caller.

A foreign agent may send anything under any name; a cell that doesn't fit must neither stop the recorder nor turn into
another value silently.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from qmf.pipeline.lake.columns import Cell, Column, Part
from qmf.protocol import ObjectId

#: Turns one value into a cell; raises `Misfit` when it can't.
Convert = Callable[[object], object]

_BOUNDS: Mapping[Cell, tuple[int, int]] = {
    Cell.INT8: (-(1 << 7), (1 << 7) - 1),
    Cell.INT16: (-(1 << 15), (1 << 15) - 1),
    Cell.INT32: (-(1 << 31), (1 << 31) - 1),
    Cell.INT64: (-(1 << 63), (1 << 63) - 1),
    Cell.DECIMAL: (-(10**20) + 1, 10**20 - 1),
}


class Misfit(ValueError):
    """A value that its column can't hold."""


def converter(column: Column) -> Convert:
    """The function that makes cells of a column."""
    if column.part is Part.AGENT:
        return _agent
    if column.type == "objId":
        return _object
    if column.cell in _BOUNDS:
        low, high = _BOUNDS[column.cell]
        return lambda value: _integer(value, low, high)
    return _CONVERT[column.cell]


def to_json(value: object) -> str:
    """A value of a map, a list, or of no known type as JSON; what JSON lacks is written as text."""
    return json.dumps(_jsonable(value), ensure_ascii=False, separators=(",", ":"))


def _integer(value: object, low: int, high: int) -> int:
    if type(value) is not int and not isinstance(value, int):
        raise Misfit
    if isinstance(value, bool) or not low <= value <= high:
        raise Misfit
    return value


def _float(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Misfit
    return float(value)


def _bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise Misfit
    return value


def _text(value: object) -> str:
    if isinstance(value, str):
        # Text that was no UTF-8 holds surrogates, which no file format takes.
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping | list | tuple):
        return to_json(value)
    raise Misfit


def _time(value: object) -> int:
    """Microseconds; the nanoseconds are in the column beside it."""
    return _integer(value, *_BOUNDS[Cell.INT64]) // 1000


def _object(value: object) -> str:
    if not isinstance(value, ObjectId):
        raise Misfit
    return _text(value.object_name)


def _agent(value: object) -> str | None:
    if not isinstance(value, ObjectId):
        raise Misfit
    return None if value.agent_name is None else _text(value.agent_name)


_CONVERT: Mapping[Cell, Convert] = {
    Cell.FLOAT: _float,
    Cell.DOUBLE: _float,
    Cell.BOOL: _bool,
    Cell.TEXT: _text,
    Cell.TIME: _time,
}


def _jsonable(value: object) -> object:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, ObjectId):
        return {"_object_name": value.object_name, "_agent_name": value.agent_name, "_agent_epoch": value.agent_epoch}
    if isinstance(value, Mapping):
        return {_text(str(key)): _jsonable(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [_jsonable(item) for item in value]
    return _text(value.hex()) if isinstance(value, bytes) else _text(str(value))
