"""Results as lines of aligned text, with colour or without: for terminals, pipes and files.

Tables are drawn here and not by a library: rich takes half a minute for 10,000 rows of 14 columns, this takes a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import gt

import attrs

from qmf_shell.render.formatting import Formatter
from qmf_shell.render.layout import GAP, NARROWEST, display_width, indent, natural_widths, pad, plan_columns, wrap
from qmf_shell.render.plot import draw_plot
from qmf_shell.render.styles import CHANGED_MARK, Styler
from qmf_shell.results.result import (
    Cell,
    Column,
    Details,
    Notice,
    Plot,
    Result,
    ResultGroup,
    Role,
    StreamLine,
    Table,
    WatchedValue,
)
from qmf_shell.text import clean

_BLANK = " " * len(CHANGED_MARK)
#: Cells of a line of a stream that are painted where the line has to be broken: time, severity and name.
_FRONT = 3


@attrs.frozen(kw_only=True)
class TextOptions:
    """What results are drawn on.

    Attributes:
        formatter: writes cells.
        width: columns of the terminal, or None for no limit.
        height: lines of a plot.
        paint: colours.
        braille: plots may use it.
    """

    formatter: Formatter
    width: int | None = None
    height: int = 20
    paint: Styler = attrs.field(factory=Styler)
    braille: bool = True


def text_lines(result: Result, sheet: TextOptions) -> Iterator[str]:
    """The lines of a result, without their ends.

    Args:
        result: anything but a `Stream` or a `View`, which are printed item by item.
        sheet: what to draw on.
    """
    match result:
        case Table():
            yield from _table(result, sheet)
        case Details(pairs, title):
            if title:
                yield from map(sheet.paint.title, _wrapped(title, sheet.width))
            texts = [(clean(name), sheet.formatter.text(cell)) for name, cell in pairs]
            yield from _pairs(texts, [Column("", Role.NAME)] * len(texts), sheet)
        case Notice(text, level):
            for line in text.split("\n"):
                yield from (sheet.paint.message(level, part) for part in _wrapped(line, sheet.width))
        case ResultGroup(parts):
            for number, part in enumerate(parts):
                if number:
                    yield ""
                yield from text_lines(part, sheet)
        case Plot():
            rows = draw_plot(result, sheet.formatter, sheet.width or 80, sheet.height, braille=sheet.braille)
            for number, row in enumerate(rows):
                text = "".join(sheet.paint.series(piece.series, piece.text) for piece in row)
                yield text.rstrip() if number else sheet.paint.title(text)
        case StreamLine():
            yield from _line(result, sheet)


def _line(line: StreamLine, sheet: TextOptions) -> Iterator[str]:
    """The cells of a line of a stream, severities padded so that what follows stays in line."""
    texts = [
        pad(sheet.formatter.text(cell), 6 if column.role is Role.SEVERITY else 0)
        for column, cell in zip(line.columns, line.cells, strict=True)
    ]
    gap = " " * GAP
    painted = [sheet.paint.cell(column, text, text) for column, text in zip(line.columns, texts, strict=True)]
    first, *more = _wrapped(gap.join(texts), sheet.width)
    front = gap.join(texts[:_FRONT])
    if not more:
        yield gap.join(painted)
    elif first.startswith(front):
        yield gap.join(painted[:_FRONT]) + first[len(front) :]
    else:
        yield first
    yield from more


def _wrapped(text: str, width: int | None) -> list[str]:
    text = clean(text)
    return [text] if width is None else wrap(text, width)


def _cell_text(formatter: Formatter, cell: Cell) -> str:
    text = formatter.text(cell)
    if not isinstance(cell, WatchedValue):
        return text
    # What has not changed gets blanks, so that nothing moves when it does.
    return text + (CHANGED_MARK if cell.changed else _BLANK)


def _table(table: Table, sheet: TextOptions) -> Iterator[str]:
    paint, width = sheet.paint, sheet.width
    if not table.rows:
        yield from map(paint.faint, _wrapped(table.empty, width))
        return
    if table.title:
        yield from map(paint.title, _wrapped(table.title, width))
    titles = [clean(item.title) for item in table.columns]
    formatter = sheet.formatter
    rows = [[_cell_text(formatter, cell) for cell in row] for row in table.rows]
    margin = " " * indent(width)
    planned = plan_columns(table.columns, rows, None if width is None else width - len(margin))
    columns = [table.columns[at] for at in planned.shown]
    if planned.widths is None:
        for number, row in enumerate(rows):
            if number:
                yield ""
            said = [at for at in planned.shown if row[at]]
            yield from _pairs([(titles[at], row[at]) for at in said], [table.columns[at] for at in said], sheet)
    else:
        titles = [titles[at] for at in planned.shown]
        rows = [[row[at] for at in planned.shown] for row in rows]
        yield from (margin + line for line in _grid(columns, titles, rows, planned.widths, paint))
    if table.note:
        yield from map(paint.faint, _wrapped(table.note, width))


def _grid(
    columns: Sequence[Column],
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    widths: Sequence[int],
    paint: Styler,
) -> Iterator[str]:
    plain = [Column(column.title, column.role if is_right(column) else Role.TEXT) for column in columns]
    yield from map(paint.head, _row(plain, titles, widths, Styler()))
    yield paint.faint(paint.rule * (sum(widths) + GAP * (len(widths) - 1)))
    # Most rows are ASCII that fits: there are thousands of them, and one operation writes each.
    form = (" " * GAP).join(
        f"%{'' if is_right(column) else '-'}{width}s" for column, width in zip(columns, widths, strict=True)
    )
    for row in rows:
        if paint.colour or not "".join(row).isascii() or any(map(gt, map(len, row), widths)):
            yield from _row(columns, row, widths, paint)
        else:
            yield (form % tuple(row)).rstrip()


def is_right(column: Column) -> bool:
    """True for columns that are aligned to the right."""
    return column.role in (Role.NUMBER, Role.ID)


def _row(columns: Sequence[Column], texts: Sequence[str], widths: Sequence[int], paint: Styler) -> Iterator[str]:
    cells = [wrap(text, width) for text, width in zip(texts, widths, strict=True)]
    for number in range(max(map(len, cells))):
        parts = []
        for column, whole, cell, width in zip(columns, texts, cells, widths, strict=True):
            part = cell[number] if number < len(cell) else ""
            blanks = " " * max(0, width - display_width(part))
            painted = paint.cell(column, whole, part)
            parts.append(blanks + painted if is_right(column) else painted + blanks)
        yield (" " * GAP).join(parts).rstrip()


def _pairs(pairs: Sequence[tuple[str, str]], columns: Sequence[Column], sheet: TextOptions) -> Iterator[str]:
    """Names and values; where it is very narrow, each value stands below its name."""
    paint, width = sheet.paint, sheet.width
    margin = " " * indent(width)
    longest = natural_widths(["", ""], pairs)[0]
    room = None if width is None else width - len(margin) - longest - GAP
    for (name, value), column in zip(pairs, columns, strict=True):
        if room is not None and room < NARROWEST:
            yield margin + paint.faint(name)
            parts = wrap(value, max(8, (width or 0) - len(margin) - 2))
            yield from (f"{margin}  {paint.cell(column, value, part)}" for part in parts)
            continue
        first, *more = [value] if room is None else wrap(value, room)
        front = margin + paint.faint(name) + " " * (longest + GAP - display_width(name))
        yield (front + paint.cell(column, value, first)).rstrip()
        yield from (margin + " " * (longest + GAP) + paint.cell(column, value, line) for line in more)
