"""Results as lines of aligned text, with or without colour: for terminals, pipes and files.

Tables are formatted here instead of by rich, which takes half a minute for 10,000 rows of 14 columns; this takes a
second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from operator import gt

import attrs

from qmf.views.cells import Cell, NamedValues, WatchedValue
from qmf.views.formatting import Formatter
from qmf.views.text import clean
from qmf_shell.render.layout import (
    GAP,
    NARROWEST,
    SHORT,
    ColumnPlan,
    display_width,
    indent,
    natural_widths,
    pad,
    plan_columns,
    wrap,
)
from qmf_shell.render.plot import draw_plot
from qmf_shell.render.shortening import shorten_middle, shorten_values
from qmf_shell.render.styles import CHANGED_MARK, Styler
from qmf_shell.results.result import Details, Notice, Plot, Result, ResultGroup, Role, StreamLine, Table, TableColumn

_BLANK = " " * len(CHANGED_MARK)
#: Cells of a stream line that are coloured even if the line is broken: time, severity and name.
_FRONT = 3


@attrs.frozen(kw_only=True)
class TextOptions:
    """How results are formatted.

    Attributes:
        formatter: formats cells.
        width: columns of the terminal; None for no limit.
        height: lines of a plot.
        styler: adds colours.
        braille: plots may use braille characters.
    """

    formatter: Formatter
    width: int | None = None
    height: int = 20
    styler: Styler = attrs.field(factory=Styler)
    braille: bool = True

    @property
    def left_out(self) -> str:
        """What stands for a part of a text that is left out."""
        return "…" if self.braille else ".."


def text_lines(result: Result, options: TextOptions) -> Iterator[str]:
    """The lines of a result, without their ends.

    Args:
        result: not a `ResultStream` or a `LiveView`, whose items are formatted one by one.
    """
    match result:
        case Table():
            yield from _table(result, options)
        case Details(pairs, title):
            if title:
                yield from map(options.styler.title, _wrap(title, options.width))
            texts = [(clean(name), options.formatter.text(cell)) for name, cell in pairs]
            yield from _pairs(texts, [TableColumn("", Role.NAME)] * len(texts), options)
        case Notice(text, level):
            for line in text.split("\n"):
                yield from (options.styler.notice(level, part) for part in _wrap(line, options.width))
        case ResultGroup(parts):
            for number, part in enumerate(parts):
                if number:
                    yield ""
                yield from text_lines(part, options)
        case Plot():
            rows = draw_plot(result, options.formatter, options.width or 80, options.height, braille=options.braille)
            for number, row in enumerate(rows):
                text = "".join(options.styler.series(piece.series, piece.text) for piece in row)
                yield text.rstrip() if number else options.styler.title(text)
        case StreamLine():
            yield from _line(result, options)


def _line(line: StreamLine, options: TextOptions) -> Iterator[str]:
    """The cells of a stream line; severities are padded, so that the following cells are aligned."""
    pairs = list(zip(line.columns, line.cells, strict=True))
    texts = [
        pad(options.formatter.text_as(cell, column.form), 6 if column.role is Role.SEVERITY else 0)
        for column, cell in pairs
    ]
    if options.width is not None and any(column.shortens for column in line.columns):
        shown = _fit_cells(pairs, texts, options, options.width)
        pairs, texts = [pairs[at] for at, _ in shown], [text for _, text in shown]
    gap = " " * GAP
    painted = [options.styler.cell(column, text, text) for (column, _), text in zip(pairs, texts, strict=True)]
    first, *more = _wrap(gap.join(texts), options.width)
    front = gap.join(texts[:_FRONT])
    if not more:
        yield gap.join(painted)
    elif first.startswith(front):
        yield gap.join(painted[:_FRONT]) + first[len(front) :]
    else:
        yield first
    yield from more


def _fit_cells(
    pairs: Sequence[tuple[TableColumn, Cell]], texts: Sequence[str], options: TextOptions, width: int
) -> list[tuple[int, str]]:
    """Numbers and texts of the cells on one line: without the spare ones, and shortened, as far as necessary."""
    widths = list(map(display_width, texts))
    shown = _without_spare([column for column, _ in pairs], widths, width)
    flexible = [at for at in shown if pairs[at][0].shortens]
    room = width - GAP * (len(shown) - 1) - sum(widths[at] for at in shown if at not in flexible)
    if sum(widths[at] for at in flexible) <= room:
        return [(at, texts[at]) for at in shown]
    # Room enough for something is always assumed: a line that is still too long is wrapped.
    each = max(SHORT, room // max(1, len(flexible)))
    return [(at, _short_text(options, pairs[at][1], texts[at], each) if at in flexible else texts[at]) for at in shown]


def _without_spare(columns: Sequence[TableColumn], widths: Sequence[int], width: int) -> list[int]:
    """Numbers of the columns of a line: those that are spare only as far as there is room, the last ones go first."""
    shown = list(range(len(columns)))
    for at in reversed(range(len(columns))):
        if sum(widths[other] + GAP for other in shown) - GAP <= width:
            break
        if columns[at].spare:
            shown.remove(at)
    return shown


def _wrap(text: str, width: int | None) -> list[str]:
    text = clean(text)
    return [text] if width is None else wrap(text, width)


def _cell_text(formatter: Formatter, column: TableColumn, cell: Cell) -> str:
    text = formatter.text_as(cell, column.form)
    if not isinstance(cell, WatchedValue):
        return text
    # Unchanged values get blanks, so that nothing moves when they change.
    return text + (CHANGED_MARK if cell.changed else _BLANK)


def _table(table: Table, options: TextOptions) -> Iterator[str]:
    styler, width = options.styler, options.width
    if not table.rows:
        yield from map(styler.faint, _wrap(table.empty, width))
        return
    if table.title:
        yield from map(styler.title, _wrap(table.title, width))
    if table.exact:
        options = attrs.evolve(options, formatter=attrs.evolve(options.formatter, exact=True))
    units = [options.formatter.heading(item.form, item.unit) for item in table.columns]
    rows = _texts(table, options)
    margin = indent(width)
    planned = plan_columns(table.columns, rows, None if width is None else width - margin, units)
    if planned.widths is not None:
        heads = planned.headings([clean(item.title) for item in table.columns])
        heads += [planned.of(units)] if any(units) else []
        yield from (" " * margin + line for line in _heading_lines(planned, table.columns, heads, styler))
    yield from _row_lines(table, rows, planned, units, options)
    for part in () if table.more is None else table.more():
        if part.rows and planned.widths is None:
            yield ""
        rows = _texts(part, options)
        planned = planned.widen_for(rows, None if width is None else width - margin)
        yield from _row_lines(part, rows, planned, units, options)


def _texts(table: Table, options: TextOptions) -> list[list[str]]:
    return [list(map(partial(_cell_text, options.formatter), table.columns, row)) for row in table.rows]


def _row_lines(
    table: Table, rows: Sequence[Sequence[str]], planned: ColumnPlan, units: Sequence[str], options: TextOptions
) -> Iterator[str]:
    """The lines of the rows of a table, whose texts are `rows`, and of its note."""
    if planned.widths is None:
        yield from _rows_as_pairs(table, planned.shown, rows, units, options)
    else:
        drawn = list(map(planned.of, rows))
        _shorten(options, table, planned, drawn)
        margin = " " * indent(options.width)
        grid = _grid(planned.of(table.columns), drawn, planned.widths, options.styler)
        yield from (margin + line for line in grid)
    if table.note:
        yield from map(options.styler.faint, _wrap(table.note, options.width))


def _rows_as_pairs(
    table: Table, shown: Sequence[int], rows: Sequence[Sequence[str]], units: Sequence[str], options: TextOptions
) -> Iterator[str]:
    """Each row as the names and values of its cells, with an empty line between rows."""
    for number, row in enumerate(rows):
        if number:
            yield ""
        filled = [at for at in shown if row[at]]
        texts = [(clean(table.columns[at].title), f"{row[at]} {units[at]}".rstrip()) for at in filled]
        yield from _pairs(texts, [table.columns[at] for at in filled], options)


def _shorten(options: TextOptions, table: Table, planned: ColumnPlan, rows: Sequence[list[str]]) -> None:
    """Shorten the texts that are too wide for their columns and may be shortened."""
    for place, (at, width) in enumerate(zip(planned.shown, planned.widths or (), strict=True)):
        if not table.columns[at].shortens:
            continue
        for texts, cells in zip(rows, table.rows, strict=True):
            if display_width(texts[place]) > width:
                texts[place] = _short_text(options, cells[at], texts[place], width)


def _short_text(options: TextOptions, cell: Cell, text: str, width: int) -> str:
    if isinstance(cell, NamedValues):
        return shorten_values(options.formatter.telling_values(cell), width, options.left_out)
    return shorten_middle(text, width, options.left_out)


def _heading_lines(
    planned: ColumnPlan, columns: Sequence[TableColumn], heads: Sequence[Sequence[str]], styler: Styler
) -> Iterator[str]:
    widths = planned.widths or ()
    drawn = planned.of(columns)
    plain = [TableColumn(column.title, column.role if is_right(column) else Role.TEXT) for column in drawn]
    for texts in heads:
        if any(texts):
            yield from map(styler.head, _row(plain, texts, widths, Styler()))
    yield styler.faint(styler.rule * (sum(widths) + GAP * (len(widths) - 1)))


def _grid(
    columns: Sequence[TableColumn], rows: Sequence[Sequence[str]], widths: Sequence[int], styler: Styler
) -> Iterator[str]:
    # Thousands of rows may be ASCII that fits: each of these takes one operation.
    form = (" " * GAP).join(
        f"%{'' if is_right(column) else '-'}{width}s" for column, width in zip(columns, widths, strict=True)
    )
    for row in rows:
        if styler.colour or not "".join(row).isascii() or any(map(gt, map(len, row), widths)):
            yield from _row(columns, row, widths, styler)
        else:
            yield (form % tuple(row)).rstrip()


def is_right(column: TableColumn) -> bool:
    """True for columns that are aligned to the right."""
    return column.role in (Role.NUMBER, Role.ID)


def _row(columns: Sequence[TableColumn], texts: Sequence[str], widths: Sequence[int], styler: Styler) -> Iterator[str]:
    cells = [wrap(text, width) for text, width in zip(texts, widths, strict=True)]
    for number in range(max(map(len, cells))):
        parts = []
        for column, whole, cell, width in zip(columns, texts, cells, widths, strict=True):
            part = cell[number] if number < len(cell) else ""
            blanks = " " * max(0, width - display_width(part))
            painted = styler.cell(column, whole, part)
            parts.append(blanks + painted if is_right(column) else painted + blanks)
        yield (" " * GAP).join(parts).rstrip()


def _pairs(pairs: Sequence[tuple[str, str]], columns: Sequence[TableColumn], options: TextOptions) -> Iterator[str]:
    """Names and values; on a very narrow terminal, each value is below its name."""
    styler, width = options.styler, options.width
    margin = " " * indent(width)
    longest = natural_widths(["", ""], pairs)[0]
    room = None if width is None else width - len(margin) - longest - GAP
    for (name, value), column in zip(pairs, columns, strict=True):
        if room is not None and room < NARROWEST:
            yield margin + styler.faint(name)
            parts = wrap(value, max(8, (width or 0) - len(margin) - 2))
            yield from (f"{margin}  {styler.cell(column, value, part)}" for part in parts)
            continue
        first, *more = [value] if room is None else wrap(value, room)
        front = margin + styler.faint(name) + " " * (longest + GAP - display_width(name))
        yield (front + styler.cell(column, value, first)).rstrip()
        yield from (margin + " " * (longest + GAP) + styler.cell(column, value, line) for line in more)
