"""Tables and numbers as qpidd's tools print them. Returns text, prints nothing."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import attrs

#: Width of the line below the headings at most.
_MAX_LINE = 255
_GAP = "  "


class CellFormat(enum.Enum):
    """How the cells of a column are written."""

    PLAIN = enum.auto()
    #: A number with at most four digits and its unit: 999, 1.50k, 15.0m.
    SHORT = enum.auto()
    YES_NO = enum.auto()
    #: ``Y`` for true, nothing for false.
    YES = enum.auto()
    #: Nanoseconds as days, hours, minutes, seconds.
    DURATION = enum.auto()
    #: Digits in groups of three.
    GROUPED = enum.auto()


@attrs.frozen
class TextColumn:
    """A column of a table: its heading and the form of its cells."""

    title: str
    form: CellFormat = CellFormat.PLAIN


Row: TypeAlias = Sequence[object]


def table(title: str, columns: Sequence[TextColumn], rows: Sequence[Row], prefix: str = "  ") -> Iterator[str]:
    """The lines of a table; only the title if there are no rows."""
    yield title
    if not rows:
        return
    cells = [[format_cell(column.form, value) for column, value in zip(columns, row, strict=True)] for row in rows]
    widths = [max(len(column.title), *(len(row[at]) for row in cells)) + len(_GAP) for at, column in enumerate(columns)]
    yield _line(prefix, [column.title for column in columns], widths)
    yield (prefix + "=" * sum(widths))[:_MAX_LINE]
    for row in cells:
        yield _line(prefix, row, widths)


def _line(prefix: str, cells: Sequence[str], widths: Sequence[int]) -> str:
    return (prefix + "".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))).rstrip()


def format_cell(form: CellFormat, value: object) -> str:
    """A cell; empty for None, ``?`` for a value of another type than its column needs."""
    if value is None:
        return ""
    match form:
        case CellFormat.PLAIN:
            return str(value)
        case CellFormat.YES_NO:
            return "Y" if value else "N"
        case CellFormat.YES:
            return "Y" if value else ""
    if not isinstance(value, int):
        return "?"
    match form:
        case CellFormat.SHORT:
            return short_number(value)
        case CellFormat.DURATION:
            return duration(value)
        case _:
            return f"{value:,}"


def short_number(value: int) -> str:
    """A number in at most six characters."""
    if value < 1000:
        return f"{value:4d}"
    for unit in "km":
        if value < 1_000_000:
            return _scale(value, unit)
        value //= 1000
    return _scale(value, "g")


def _scale(thousandths: int, unit: str) -> str:
    value = thousandths / 1000
    if value < 10:
        return f"{value:.2f}{unit}"
    return f"{value:.1f}{unit}" if value < 100 else f"{thousandths // 1000:4d}{unit}"


def duration(nanoseconds: int) -> str:
    """A duration as ``1d 2h 3m 4s``."""
    seconds = max(0, nanoseconds) // 1_000_000_000
    parts = [(seconds // 86400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "m")]
    while parts and parts[0][0] == 0:
        del parts[0]
    return " ".join(f"{number}{unit}" for number, unit in [*parts, (seconds % 60, "s")])
