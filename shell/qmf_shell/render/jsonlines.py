"""Results for programs: one JSON value per line.

A table is a list of objects keyed by its headings in lower case, details are one object, a message is
``{"message": ...}``.
Times are ISO 8601 in UTC with nanoseconds, durations are nanoseconds, numbers are plain numbers without unit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from qmf_shell.results import (
    Amount,
    Cell,
    Data,
    Details,
    Extremes,
    Fields,
    Group,
    Instant,
    Line,
    Link,
    Message,
    Result,
    Span,
    Spread,
    Table,
)


def json_lines(result: Result) -> Iterator[str]:
    """The lines of a result; ASCII only, so that no control character gets through."""
    for value in _values(result):
        yield json.dumps(value, default=str, allow_nan=False)


def _values(result: Result) -> Iterator[object]:
    match result:
        case Table(columns, rows):
            names = [column.title.lower() for column in columns]
            yield [dict(zip(names, map(_cell, row), strict=True)) for row in rows]
        case Details(pairs):
            yield {name: _cell(cell) for name, cell in pairs}
        case Line(columns, cells):
            yield {column.title.lower(): _cell(cell) for column, cell in zip(columns, cells, strict=True)}
        case Message(text):
            yield {"message": text}
        case Group(parts):
            for part in parts:
                yield from _values(part)


def _cell(cell: Cell) -> object:
    match cell:
        case Instant(ns):
            return _iso(ns) if ns else None
        case Span(ns):
            return ns
        case Amount(value, _):
            return _tree(value)
        case Extremes(value, high, low, _):
            return {"value": _tree(value), "high": _tree(high), "low": _tree(low)}
        case Spread():
            return {"count": cell.count, "min": _tree(cell.low), "max": _tree(cell.high), "mean": _tree(cell.mean)}
        case Link(number, name):
            return {"id": number, "name": name}
        case Data(value):
            return _tree(value)
        case Fields(values):
            return {name: _cell(value) for name, value in values.items()}
        case _:
            return _tree(cell)


def _tree(value: object) -> object:
    """`value` as JSON can hold it: no NaN, no infinity, keys as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _tree(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_tree(item) for item in value]
    return value


def _iso(ns: int) -> object:
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=ns // 1_000_000_000)
    except OverflowError:
        return ns
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ns % 1_000_000_000:09}Z"
