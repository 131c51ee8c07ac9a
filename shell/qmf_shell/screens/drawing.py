"""Draws a page: lines of styled text for a number of columns and lines. A pure function of the page's state.

Only the rows that fit are formatted. Whatever the size is, there are as many lines as it has, none wider than it.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from rich.cells import chop_cells

from qmf_shell.render.formatting import ABSENT, Formatter
from qmf_shell.render.layout import display_width
from qmf_shell.results.result import Role
from qmf_shell.screens.rows import Level, Mark, Row, ScreenColumn, table_column
from qmf_shell.screens.state import Page
from qmf_shell.text import clean

Fragments = list[tuple[str, str]]

#: Blanks between columns.
GAP = 2
#: Texts take at most so much of the width, unless there is room.
_TEXT_PART = 3
_LEAST_TEXT = 12

_ROLES = {Role.ID: "class:id", Role.NAME: "class:name", Role.FAINT: "class:faint", Role.TREE: "class:name"}
_LEVELS = {Level.NORMAL: "", Level.WARNING: "class:warning", Level.CRITICAL: "class:critical"}
_MARKS = {Mark.NEW: "class:new", Mark.DELETED: "class:gone", Mark.LOST: "class:lost", Mark.LEFT: "class:gone"}
_SEVERITIES = {
    "emerg": "class:critical",
    "alert": "class:critical",
    "crit": "class:critical",
    "error": "class:error",
    "warn": "class:warning",
    "notice": "class:notice",
    "debug": "class:faint",
    "late": "class:warning",
    "gone": "class:critical",
    "lost": "class:critical",
    "deleted": "class:error",
}
#: Without colour, marks that follow a value.
_LEVEL_SIGNS = {Level.NORMAL: "", Level.WARNING: "!", Level.CRITICAL: "!!"}


@attrs.define
class Geometry:
    """Where things are on the screen, for the mouse, and the widths of columns, which only grow while it stays.

    Attributes:
        size: columns and lines.
        body: number of the first line with a row, and how many there are.
        heads: the first and last column of each heading, with the key of its column.
        keys: the same of what the last line names, with the key that it stands for.
        tabs: the same of the tabs, with their numbers.
        widths: the widths of columns by key.
        basis: what the widths are for.
    """

    size: tuple[int, int] = (80, 24)
    body: tuple[int, int] = (0, 0)
    heads: list[tuple[int, int, str]] = attrs.field(factory=list)
    keys: list[tuple[int, int, str]] = attrs.field(factory=list)
    tabs: list[tuple[int, int, int]] = attrs.field(factory=list)
    widths: dict[str, int] = attrs.field(factory=dict)
    basis: object = None


@attrs.frozen(kw_only=True)
class Surroundings:
    """What is drawn besides the page.

    Attributes:
        formatter: makes text of cells.
        colour: the terminal has colours; without them, marks follow values.
        trail: titles of the pages below this one.
        right: what the first line has at its end: the time, and whether the screen is paused.
        message: in place of the keys on the last line; its style and text.
        keys: what the last line names: key and meaning.
        wide_characters: the encoding has more than ASCII.
    """

    formatter: Formatter
    colour: bool = True
    trail: Sequence[str] = ()
    right: str = ""
    message: tuple[str, str] | None = None
    keys: Sequence[tuple[str, str]] = ()
    wide_characters: bool = True


def draw_page(page: Page, around: Surroundings, geometry: Geometry, width: int, height: int) -> list[Fragments]:
    """The lines of a page; notes in `geometry` where things are."""
    geometry.size = width, height
    geometry.heads, geometry.keys, geometry.tabs = [], [], []
    lines: list[Fragments] = []
    if height >= 3:
        lines.append(_title_line(page, around, width))
    if page.tabs and height >= 6:
        lines.append(_tab_line(page, geometry, width))
    foot = height >= 4
    if around.message is not None:
        foot = True
    with_heads = height >= 5
    room = height - len(lines) - with_heads - foot
    _, rows = page.model.window(max(0, room))
    rows = rows[: max(0, room)]
    columns = _fitting(page, around, geometry, rows, width)
    if with_heads:
        lines.append(_head_line(page, around, geometry, columns, width))
    geometry.body = len(lines), max(0, room)
    cursor = page.model.cursor - page.model.top
    for number, row in enumerate(rows):
        lines.append(_row_line(row, around, columns, width, chosen=number == cursor))
    if not rows and room > 0:
        lines += [[("class:faint", _cut(text, width))] for text in _empty_lines(page)][:room]
    lines += [[("", "")]] * (height - len(lines) - foot)
    if foot:
        lines.append(_foot_line(around, geometry, width))
    return lines[:height]


def _empty_lines(page: Page) -> list[str]:
    if not page.loaded:
        return ["loading ..."]
    if page.model.filter:
        return [f"Nothing matches {clean(page.model.filter)!r}."]
    return [page.empty]


# -- the first and the last line ---------------------------------------------------------------------------------------


def _title_line(page: Page, around: Surroundings, width: int) -> Fragments:
    trail = " > ".join([*map(clean, around.trail), clean(page.title)])
    left = f" {trail}"
    if display_width(left) > width - 20 and around.trail:
        left = f" {clean(page.title)}"
    details = [text for text in (page.summary, _filter_text(page), _sort_text(page)) if text]
    right = f" {around.right} " if around.right else " "
    for text in details:
        if display_width(left) + 2 + display_width(text) + display_width(right) <= width:
            left += f"  {text}"
    if display_width(left) + display_width(right) > width:
        right = right if display_width(right) < width // 2 else ""
        left = shortened(left, max(1, width - display_width(right)), around.wide_characters)
    return [("class:title", left + " " * max(0, width - display_width(left) - display_width(right)) + right)]


def _filter_text(page: Page) -> str:
    if not page.model.filter:
        return ""
    return f"/{clean(page.model.filter)}: {len(page.model.arranged()):,} shown"


def _sort_text(page: Page) -> str:
    column = page.model.column(page.model.sort)
    if column is None:
        return ""
    return f"by {clean(column.title)}" + (" descending" if page.model.descending else "")


def _tab_line(page: Page, geometry: Geometry, width: int) -> Fragments:
    line: Fragments = [("", " ")]
    at = 1
    for number, (name, other) in enumerate(page.tabs):
        text = f" {name} "
        if at + len(text) > width:
            break
        line += [("class:tab.current" if other is page else "class:tab", text), ("", " ")]
        geometry.tabs.append((at, at + len(text), number))
        at += len(text) + 1
    return line


def _foot_line(around: Surroundings, geometry: Geometry, width: int) -> Fragments:
    if around.message is not None:
        style, text = around.message
        return [(style, _cut(f" {text}", width))]
    line: Fragments = []
    at = 0
    for key, meaning in around.keys:
        size = len(key) + len(meaning) + 3
        if at + size > width:
            break
        line += [("class:key", f" {key}"), ("class:foot", f" {meaning} ")]
        geometry.keys.append((at, at + size, key))
        at += size
    return [*line, ("class:foot", " " * (width - at))]


# -- columns -----------------------------------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class _Placed:
    """A column on the screen: its width, and the texts of its cells."""

    column: ScreenColumn
    title: str
    width: int
    texts: dict[int, str]


def _fitting(page: Page, around: Surroundings, geometry: Geometry, rows: Sequence[Row], width: int) -> list[_Placed]:
    """The columns that fit, with the texts of the rows."""
    model = page.model
    shown = model.shown_columns
    if page.loaded and rows:
        shown = [item for item in shown if item.fixed or not item.key.startswith("\0") or _has_values(item, rows)]
    basis = (id(page), width, tuple(model.shown))
    if geometry.basis != basis:
        geometry.basis, geometry.widths = basis, {}
    fixed = [item for item in shown if item.fixed]
    if width < 60 and len(fixed) > 1:
        fixed = fixed[1:]  # the short id: the name says more
    scrolled = [item for item in shown if not item.fixed]
    scrolled = scrolled[min(model.left, max(0, len(scrolled) - 1)) :]
    placed: list[_Placed] = []
    used = 0
    cap = max(_LEAST_TEXT, width // _TEXT_PART)
    for item in [*fixed, *scrolled]:
        title = _heading(page, item, around)
        texts = {id(row): _cell_text(item, row, around) for row in rows}
        natural = max([display_width(title), *map(display_width, texts.values())], default=1)
        natural = max(natural, geometry.widths.get(item.key, 0))
        geometry.widths[item.key] = natural
        size = natural if item.right else min(natural, cap)
        gap = GAP if placed else 0
        if used + gap + size > width:
            rest = width - used - gap
            if placed and (item.right or rest < _LEAST_TEXT) and not item.fixed:
                break
            size = max(1, rest)
        placed.append(_Placed(item, title, size, texts))
        used += gap + size
        if used >= width:
            break
    return _widened(placed, geometry, width - used)


def _widened(placed: Sequence[_Placed], geometry: Geometry, spare: int) -> list[_Placed]:
    """Give the room that is left to texts that were cut."""
    result = []
    for item in placed:
        wanted = geometry.widths.get(item.column.key, item.width) - item.width
        more = max(0, min(wanted, spare))
        spare -= more
        result.append(attrs.evolve(item, width=item.width + more) if more else item)
    return result


def _has_values(column: ScreenColumn, rows: Sequence[Row]) -> bool:
    return any(column.cell(row) is not None for row in rows)


def _heading(page: Page, column: ScreenColumn, around: Surroundings) -> str:
    title = clean(column.title)
    if page.model.sort == column.key:
        signs = ("▼", "▲") if around.wide_characters else ("v", "^")
        title += f" {signs[0] if page.model.descending else signs[1]}"
    return title


def _head_line(
    page: Page, around: Surroundings, geometry: Geometry, columns: Sequence[_Placed], width: int
) -> Fragments:
    line: Fragments = []
    at = 0
    for number, item in enumerate(columns):
        gap = " " * GAP if number else ""
        text = _fit(item.title, item.width, item.column.right, around)
        style = "class:head.sort" if page.model.sort == item.column.key else "class:head"
        line += [("class:head", gap), (style, text)]
        geometry.heads.append((at, at + len(gap) + item.width, item.column.key))
        at += len(gap) + item.width
    shown = [item for item in page.model.shown_columns if not item.fixed]
    left = min(page.model.left, max(0, len(shown) - 1))
    more = len(shown) - left - sum(not item.column.fixed for item in columns)
    sign = (f"<{left}" if left else "") + (f" {more}>" if more > 0 and rows_hidden(columns, width, at) else "")
    rest = width - at
    if sign and rest > len(sign):
        return [*line, ("class:head", " " * (rest - len(sign))), ("class:faint class:head", sign)]
    return [*line, ("class:head", " " * max(0, rest))]


def rows_hidden(columns: Sequence[_Placed], width: int, used: int) -> bool:
    """True if there may be columns to the right of those that are drawn."""
    return bool(columns) and used <= width


# -- rows --------------------------------------------------------------------------------------------------------------


def _cell_text(column: ScreenColumn, row: Row, around: Surroundings) -> str:
    text = around.formatter.column_text(column.cell(row), table_column(column))
    if around.colour or text == ABSENT:
        return text
    return text + ("*" if column.changed(row) else "") + _LEVEL_SIGNS[column.level(row)]


def _row_line(row: Row, around: Surroundings, columns: Sequence[_Placed], width: int, *, chosen: bool) -> Fragments:
    line: Fragments = []
    cursor = "class:cursor" if chosen else ""
    used = 0
    for number, item in enumerate(columns):
        if number:
            line.append((cursor, " " * GAP))
            used += GAP
        text = item.texts[id(row)]
        style = _style(item.column, row, text)
        line.append((f"{style} {cursor}" if chosen else style, _fit(text, item.width, item.column.right, around)))
        used += item.width
    if chosen and used < width:
        line.append((cursor, " " * (width - used)))
    return line


def _style(column: ScreenColumn, row: Row, text: str) -> str:
    if row.mark.gone and column.role is not Role.SEVERITY:
        return _MARKS[row.mark]
    if text == ABSENT:
        return "class:faint"
    if column.role is Role.SEVERITY:
        return _SEVERITIES.get(text.split(" ")[0], "")
    level = column.level(row)
    if level:
        return _LEVELS[level]
    if column.changed(row):
        return "class:changed"
    if row.mark is Mark.NEW and column.fixed:
        return _MARKS[row.mark]
    return "class:rate" if column.rate else _ROLES.get(column.role, "")


def _fit(text: str, width: int, right: bool, around: Surroundings) -> str:
    text = shortened(text, width, around.wide_characters)
    blanks = " " * max(0, width - display_width(text))
    return blanks + text if right else text + blanks


def shortened(text: str, width: int, wide_characters: bool = True) -> str:
    """A text of at most `width` columns: what is too long loses its middle."""
    if display_width(text) <= width:
        return text
    sign = "…" if wide_characters else "~"
    if width <= 1:
        return sign[:width]
    head = (width - 1 + 1) // 2
    tail = width - 1 - head
    first = chop_cells(text, head)[0]
    last = ""
    for char in reversed(text):
        if display_width(char + last) > tail:
            break
        last = char + last
    return first + sign + last


def _cut(text: str, width: int) -> str:
    return shortened(text, width) if width > 0 else ""
