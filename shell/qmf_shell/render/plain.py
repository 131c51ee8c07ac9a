"""Results as aligned text without colour: for pipes, files, NO_COLOR and terminals that can do no more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qmf_shell.render.formatting import Formatter
from qmf_shell.render.layout import GAP, NARROWEST, indent, natural, pad, plan, wrap
from qmf_shell.results import Column, Details, Group, Line, Message, Result, Role, Table
from qmf_shell.text import clean


def plain_lines(result: Result, formatter: Formatter, width: int | None) -> Iterator[str]:
    """The lines of a result, without their ends.

    Args:
        result: anything but a `Stream`, which is printed item by item.
        formatter: writes cells.
        width: columns of the terminal, or None for no limit.
    """
    match result:
        case Table():
            yield from _table(result, formatter, width)
        case Details(pairs, title):
            if title:
                yield from _lines(title, width)
            yield from _pairs([(clean(name), formatter.text(cell)) for name, cell in pairs], width)
        case Message(text):
            for line in text.split("\n"):
                yield from _lines(line, width)
        case Group(parts):
            for number, part in enumerate(parts):
                if number:
                    yield ""
                yield from plain_lines(part, formatter, width)
        case Line():
            yield from _lines("  ".join(line_texts(result, formatter)), width)


def line_texts(line: Line, formatter: Formatter) -> list[str]:
    """The cells of a line of a stream, severities padded so that what follows stays in line."""
    return [
        pad(formatter.text(cell), 6 if column.role is Role.SEVERITY else 0)
        for column, cell in zip(line.columns, line.cells, strict=True)
    ]


def cell_texts(table: Table, formatter: Formatter) -> tuple[list[str], list[list[str]]]:
    """Headings and cells of a table as text."""
    return [clean(item.title) for item in table.columns], [[formatter.text(cell) for cell in row] for row in table.rows]


def is_right(column: Column) -> bool:
    """True for columns that are aligned to the right."""
    return column.role in (Role.NUMBER, Role.ID)


def _lines(text: str, width: int | None) -> list[str]:
    text = clean(text)
    return [text] if width is None else wrap(text, width)


def _table(table: Table, formatter: Formatter, width: int | None) -> Iterator[str]:
    if not table.rows:
        yield from _lines(table.empty, width)
        return
    if table.title:
        yield from _lines(table.title, width)
    titles, rows = cell_texts(table, formatter)
    margin = " " * indent(width)
    room = None if width is None else width - len(margin)
    planned = plan(table.columns, rows, room)
    if planned.widths is None:
        for number, row in enumerate(rows):
            if number:
                yield ""
            yield from _pairs([(titles[at], row[at]) for at in planned.shown if row[at]], width)
    else:
        columns, titles = [table.columns[at] for at in planned.shown], [titles[at] for at in planned.shown]
        rows = [[row[at] for at in planned.shown] for row in rows]
        yield from (margin + line for line in _grid(columns, titles, rows, planned.widths))
    if table.note:
        yield from _lines(table.note, width)


def _grid(
    columns: Sequence[Column], titles: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]
) -> Iterator[str]:
    yield from _row(columns, titles, widths)
    yield "=" * (sum(widths) + GAP * (len(widths) - 1))
    for row in rows:
        yield from _row(columns, row, widths)


def _row(columns: Sequence[Column], texts: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    cells = [wrap(text, width) for text, width in zip(texts, widths, strict=True)]
    for number in range(max(map(len, cells))):
        parts = [
            pad(cell[number] if number < len(cell) else "", width, right=is_right(column))
            for column, cell, width in zip(columns, cells, widths, strict=True)
        ]
        yield (" " * GAP).join(parts).rstrip()


def _pairs(pairs: Sequence[tuple[str, str]], width: int | None) -> Iterator[str]:
    """Names and values; where it is very narrow, each value stands below its name."""
    margin = " " * indent(width)
    longest = natural(["", ""], pairs)[0]
    room = None if width is None else width - len(margin) - longest - GAP
    for name, value in pairs:
        if room is None:
            yield f"{margin}{pad(name, longest + GAP)}{value}".rstrip()
        elif room >= NARROWEST:
            first, *more = wrap(value, room)
            yield f"{margin}{pad(name, longest + GAP)}{first}".rstrip()
            yield from (margin + " " * (longest + GAP) + line for line in more)
        else:
            yield margin + name
            yield from (f"{margin}  {line}" for line in wrap(value, max(8, (width or 0) - len(margin) - 2)))
