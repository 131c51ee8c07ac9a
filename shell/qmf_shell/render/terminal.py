"""Results on a terminal with colours, drawn by rich. Imported only where there is one: rich takes time to load."""

from __future__ import annotations

from typing import TextIO

from rich import box
from rich.console import Console, RenderableType
from rich.console import Group as RichGroup
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from qmf_shell.render.formatting import ABSENT, Formatter
from qmf_shell.render.layout import GAP, NARROWEST, indent, natural, plan
from qmf_shell.render.plain import cell_texts, is_right, line_texts
from qmf_shell.results import Column, Details, Group, Level, Line, Message, Result, Role, Table
from qmf_shell.text import clean

_STYLES = {
    Role.TEXT: "",
    Role.ID: "bold green",
    Role.NAME: "bold",
    Role.NUMBER: "",
    Role.TIME: "",
    Role.SEVERITY: "",
    Role.FAINT: "dim",
}
_SEVERITIES = {
    "emerg": "bold white on red",
    "alert": "bold white on red",
    "crit": "bold red",
    "error": "red",
    "warn": "yellow",
    "notice": "cyan",
    "inform": "green",
    "debug": "dim",
}
_LEVELS = {Level.PLAIN: "", Level.GOOD: "green", Level.WARNING: "yellow"}
_TITLE = "bold cyan"
_HEAD = "bold"


class Terminal:
    """Draws on one terminal."""

    def __init__(self, out: TextIO, width: int, formatter: Formatter) -> None:
        self._width = width
        self._formatter = formatter
        # Colours of the 16-colour palette only: they follow the theme of the terminal, light or dark.
        self._console = Console(
            file=out,
            width=width,
            force_terminal=True,
            color_system="standard",
            highlight=False,
            markup=False,
            emoji=False,
        )

    def show(self, result: Result) -> None:
        """Print anything but a `Stream`, which is printed item by item."""
        self._console.print(self._render(result), soft_wrap=isinstance(result, Line))

    def _render(self, result: Result) -> RenderableType:
        match result:
            case Table():
                return self._table(result)
            case Details(pairs, title):
                texts = [(clean(name), self._formatter.text(cell)) for name, cell in pairs]
                body = self._pairs(texts, ["bold"] * len(texts))
                return RichGroup(Text(clean(title), _TITLE), body) if title else body
            case Message(text, level):
                return Text("\n".join(map(clean, text.split("\n"))), _LEVELS[level])
            case Group(parts):
                shown: list[RenderableType] = []
                for part in parts:
                    shown += [Text(""), self._render(part)] if shown else [self._render(part)]
                return RichGroup(*shown)
            case Line(columns, _):
                pieces = zip(columns, line_texts(result, self._formatter), strict=True)
                return Text("  ").join(Text(text, _style(column, text)) for column, text in pieces)
            case _:
                return Text("")

    def _table(self, table: Table) -> RenderableType:
        if not table.rows:
            return Text(clean(table.empty), "dim")
        parts: list[RenderableType] = []
        if table.title:
            parts.append(Text(clean(table.title), _TITLE))
        titles, rows = cell_texts(table, self._formatter)
        margin = indent(self._width)
        planned = plan(table.columns, rows, self._width - margin)
        if planned.widths is None:
            for number, row in enumerate(rows):
                parts += [Text("")] if number else []
                said = [at for at in planned.shown if row[at]]
                styles = [_style(table.columns[at], row[at]) for at in said]
                parts.append(self._pairs([(titles[at], row[at]) for at in said], styles))
        else:
            columns, titles = [table.columns[at] for at in planned.shown], [titles[at] for at in planned.shown]
            rows = [[row[at] for at in planned.shown] for row in rows]
            parts.append(_margin(_grid(columns, titles, rows, planned.widths), margin))
        if table.note:
            parts.append(Text(clean(table.note), "dim"))
        return RichGroup(*parts)

    def _pairs(self, pairs: list[tuple[str, str]], styles: list[str]) -> RenderableType:
        margin = indent(self._width)
        longest = natural(["", ""], pairs)[0]
        room = self._width - margin - longest - GAP
        if room < NARROWEST:
            lines = Text()
            for name, value in pairs:
                lines.append(f"{name}\n", "dim").append(f"  {value}\n")
            lines.right_crop(1)
            return _margin(lines, margin)
        grid = RichTable.grid(padding=(0, GAP, 0, 0))
        grid.add_column(width=longest, no_wrap=True)
        grid.add_column(max_width=room, overflow="fold")
        for number, (name, value) in enumerate(pairs):
            grid.add_row(Text(name, "dim"), Text(value, "dim" if value == ABSENT else styles[number]))
        return _margin(grid, margin)


def _margin(what: RenderableType, margin: int) -> Padding:
    return Padding(what, (0, 0, 0, margin), expand=False)


def _grid(columns: list[Column], titles: list[str], rows: list[list[str]], widths: tuple[int, ...]) -> RichTable:
    # One column of the gap is the box's own divider, the other is padding.
    grid = RichTable(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, GAP - 1, 0, 0),
        header_style=_HEAD,
        border_style="dim",
    )
    for column, title, width in zip(columns, titles, widths, strict=True):
        grid.add_column(Text(title), justify="right" if is_right(column) else "left", width=width, overflow="fold")
    for row in rows:
        grid.add_row(*(Text(text, _style(column, text)) for column, text in zip(columns, row, strict=True)))
    return grid


def _style(column: Column, text: str) -> str:
    if text == ABSENT:
        return "dim"
    if column.role is Role.SEVERITY:
        return _SEVERITIES.get(text.strip(), "")
    return _STYLES[column.role]
