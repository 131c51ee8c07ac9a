"""Draws a page: lines of styled text for a number of columns and lines. A pure function of the page's state.

Only the rows that fit are formatted. Whatever the size is, there are as many lines as it has, none wider than it.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from rich.cells import chop_cells

from qmf.views.text import clean
from qmf_shell.render.formatting import ABSENT, Formatter
from qmf_shell.render.layout import display_width, halves
from qmf_shell.render.shortening import shorten_end, shorten_middle, shorten_values
from qmf_shell.results.cells import NamedValues
from qmf_shell.results.result import Role
from qmf_shell.screens.rows import Level, Mark, Row, ScreenColumn, table_column
from qmf_shell.screens.state import Page

Fragments = list[tuple[str, str]]

#: Blanks between columns.
GAP = 2
#: Texts take at most so much of the width, unless there is room.
_TEXT_PART = 3
_LEAST_TEXT = 12
#: Headings are shortened to so much at most, if there is no room.
_LEAST_HEADING = 12
#: Below this width there are no short ids, below this height no units.
_NARROW, _TALL = 60, 16
#: Columns that are shown where there is room need so much of it.
_LEAST_SPARE = 24

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
        head: number of the line with the headings.
        heads: the first and last column of each heading, with the key of its column.
        keys: the same of what the last line names, with the key that it stands for.
        tabs: the same of the tabs, with their numbers.
        widths: the widths of columns by key.
        basis: what the widths are for.
    """

    size: tuple[int, int] = (80, 24)
    body: tuple[int, int] = (0, 0)
    head: int = -1
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

    @property
    def left_out(self) -> str:
        """Stands for a part of a text that is left out."""
        return "…" if self.wide_characters else "~"


def draw_page(page: Page, around: Surroundings, geometry: Geometry, width: int, height: int) -> list[Fragments]:
    """The lines of a page; notes in `geometry` where things are."""
    geometry.size = width, height
    geometry.head, geometry.heads, geometry.keys, geometry.tabs = -1, [], [], []
    lines: list[Fragments] = []
    if height >= 3:
        lines.append(_title_line(page, around, width))
    if page.tabs and height >= 6:
        lines.append(_tab_line(page, geometry, width))
    foot = height >= 4
    if around.message is not None:
        foot = True
    with_heads = height >= 5
    # Units need a line of their own: only if columns have some, and there is room.
    units = height >= _TALL and any(_unit(item, around) for item in page.model.shown_columns)
    room = height - len(lines) - with_heads - units - foot
    split = height >= _TALL and any(len(item.title) > _LEAST_HEADING for item in page.model.shown_columns)
    rows, columns = _body(page, around, geometry, width, room - split, split=split)
    if split and not any(item.is_split for item in columns):
        split = False
        rows, columns = _body(page, around, geometry, width, room, split=False)
    room -= split
    if with_heads:
        geometry.head = len(lines)
        geometry.head += split
        lines += _head_lines(page, around, geometry, columns, width, split=split, units=units)
    geometry.body = len(lines), max(0, room)
    cursor = page.model.cursor - page.model.top
    for number, row in enumerate(rows):
        lines.append(_row_line(row, around, columns, width, chosen=number == cursor))
    if not rows and room > 0:
        lines += [[("class:faint", shorten_middle(text, width, around.left_out))] for text in _empty_lines(page)][:room]
    lines += [[("", "")]] * (height - len(lines) - foot)
    if foot:
        lines.append(_foot_line(around, geometry, width))
    return lines[:height]


def _body(
    page: Page, around: Surroundings, geometry: Geometry, width: int, room: int, *, split: bool
) -> tuple[Sequence[Row], list[_Placed]]:
    """The rows that fit, and the columns."""
    _, rows = page.model.window(max(0, room))
    rows = rows[: max(0, room)]
    return rows, _fitting(page, around, geometry, rows, width, split=split)


def _empty_lines(page: Page) -> list[str]:
    if not page.loaded:
        return ["loading ..."]
    if page.model.filter:
        return [f"Nothing matches {clean(page.model.filter)!r}."]
    own = page.own_left_out
    return [page.empty, *([f"{own:,} of agents and consoles not shown; a shows them."] if own else [])]


# -- the first and the last line ---------------------------------------------------------------------------------------


def _title_line(page: Page, around: Surroundings, width: int) -> Fragments:
    trail = " > ".join([*map(clean, around.trail), clean(page.title)])
    left = f" {trail}"
    right = f" {around.right} " if around.right else " "
    # What hides rows is said in any case; the titles, the time and the rest have what it leaves.
    hiding = _filter_text(page, around, width // 2)
    room = width - (display_width(hiding) + 2 if hiding else 0)
    if display_width(left) > room - 20 and around.trail:
        left = f" {clean(page.title)}"
    if display_width(left) + display_width(right) > room:
        right = right if display_width(right) < room // 2 else ""
        left = shorten_middle(left, max(1, room - display_width(right)), around.left_out)
    own = f"{page.own_left_out:,} own left out" if page.own_left_out else ""
    details = [text for text in (page.summary, _sort_text(page), own) if text]
    for text in details:
        if display_width(left) + 2 + display_width(text) + display_width(right) <= room:
            left += f"  {text}"
    left = shorten_end(f"{left}  {hiding}" if hiding else left, max(1, width - display_width(right)), around.left_out)
    return [("class:title", left + " " * max(0, width - display_width(left) - display_width(right)) + right)]


def _filter_text(page: Page, around: Surroundings, width: int) -> str:
    if not page.model.filter:
        return ""
    shown = f": {len(page.model.arranged()):,} shown"
    text = shorten_middle(clean(page.model.filter), max(1, width - len(shown) - 1), around.left_out)
    return shorten_end(f"/{text}{shown}", max(1, width), around.left_out)


def _sort_text(page: Page) -> str:
    column = page.model.column(page.model.sort)
    if column is None:
        return ""
    return f"by {clean(column.title)}" + (" descending" if page.model.descending else "")


def _tab_line(page: Page, geometry: Geometry, width: int) -> Fragments:
    line: Fragments = []
    at = 0
    for number, (name, other) in enumerate(page.tabs):
        text = f" {name} "
        end = at + 1 + len(text)
        if end > width:
            break
        line += [("", " "), ("class:tab.current" if other is page else "class:tab", text)]
        geometry.tabs.append((at + 1, end, number))
        at = end
    return line


def _foot_line(around: Surroundings, geometry: Geometry, width: int) -> Fragments:
    if around.message is not None:
        style, text = around.message
        return [(style, shorten_middle(f" {text}", width, around.left_out))]
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
    """A column on the screen: its width, the one that it would like to have, and the texts of its cells."""

    column: ScreenColumn
    title: str
    width: int
    natural: int
    texts: dict[int, str]
    split: bool = False

    @property
    def is_split(self) -> bool:
        """True if its heading takes two lines."""
        return self.split and display_width(self.title) > self.width

    @property
    def heading(self) -> tuple[str, str]:
        """The two lines of its heading; the first is empty if one is enough."""
        return halves(self.title) if self.is_split else ("", self.title)


def _fitting(
    page: Page, around: Surroundings, geometry: Geometry, rows: Sequence[Row], width: int, *, split: bool
) -> list[_Placed]:
    """The columns that fit, with the texts of the rows."""
    model = page.model
    shown = model.shown_columns
    if page.loaded and rows:
        shown = [item for item in shown if item.fixed or not item.key.startswith("\0") or _has_values(item, rows)]
    basis = (id(page), width, tuple(model.shown), model.left)
    if geometry.basis != basis:
        geometry.basis, geometry.widths = basis, {}
    fixed = [item for item in shown if item.fixed]
    if width < _NARROW and len(fixed) > 1:
        fixed = fixed[1:]  # the short id: the name says more
    scrolled = [item for item in shown if not item.fixed and not item.spare]
    scrolled = scrolled[min(model.left, max(0, len(scrolled) - 1)) :]
    cap = max(_LEAST_TEXT, width // _TEXT_PART)
    name_cap = max(_LEAST_TEXT, width * 2 // 5)
    placed: list[_Placed] = []
    used = 0
    for item in [*fixed, *scrolled]:
        one = _measured(page, item, around, geometry, rows, placed[-1].column if placed else None, split=split)
        most = name_cap if item.main or (item.fixed and item.role is Role.NAME) else cap
        size = one.width if item.right else min(one.width, most)
        gap = GAP if placed else 0
        if used + gap + size > width:
            rest = width - used - gap
            if placed and (item.right or rest < _LEAST_TEXT) and not (item.fixed and rest > 0):
                break
            size = max(1, rest)
        placed.append(attrs.evolve(one, width=size))
        used += gap + size
        if used >= width:
            break
    # Prose such as descriptions keeps a part of what is left; other spare columns get what the others don't need.
    spare = [_measured(page, item, around, geometry, rows, None) for item in shown if item.spare]
    for one in spare:
        least = min(one.natural, _LEAST_SPARE)
        if one.column.prose and used + GAP + least <= width:
            placed.append(attrs.evolve(one, width=least))
            used += GAP + least
    placed = _widened(placed, width - used)
    for one in spare:
        rest = width - sum(other.width + GAP for other in placed)
        if not one.column.prose and rest >= min(one.natural, _LEAST_SPARE):
            placed.append(attrs.evolve(one, width=min(one.natural, rest)))
    return placed


def _measured(
    page: Page,
    column: ScreenColumn,
    around: Surroundings,
    geometry: Geometry,
    rows: Sequence[Row],
    before: ScreenColumn | None,
    *,
    split: bool = False,
) -> _Placed:
    """A column with the texts of the rows, as wide as these; a long heading may be shortened."""
    title = _heading(page, column, around, before)
    texts = {id(row): _cell_text(column, row, around) for row in rows}
    content = max([geometry.widths.get(column.key, 1), *map(display_width, texts.values())])
    geometry.widths[column.key] = content
    whole = max(display_width(title), display_width(_unit(column, around)))
    least = max(map(display_width, halves(title))) if split else _LEAST_HEADING
    least = max(min(whole, least), display_width(_unit(column, around)))
    return _Placed(column, title, max(content, least), max(content, whole), texts, split)


def _widened(placed: Sequence[_Placed], spare: int) -> list[_Placed]:
    """Give the room that is left to texts and headings that were shortened."""
    widths = {}
    # Prose first: the others are cut in the middle, and still say what they are.
    for item in sorted(placed, key=lambda one: not one.column.prose):
        more = max(0, min(item.natural - item.width, spare))
        spare -= more
        widths[item.column.key] = item.width + more
    return [attrs.evolve(item, width=widths[item.column.key]) for item in placed]


def _has_values(column: ScreenColumn, rows: Sequence[Row]) -> bool:
    return any(column.cell(row) is not None for row in rows)


def _heading(page: Page, column: ScreenColumn, around: Surroundings, before: ScreenColumn | None) -> str:
    # Beside the total, "per second" is enough.
    beside = column.rate and before is not None and before.name == column.name and not before.rate
    title = "/s" if beside else clean(column.title)
    if page.model.sort == column.key:
        signs = ("▼", "▲") if around.wide_characters else ("v", "^")
        title += f" {signs[0] if page.model.descending else signs[1]}"
    return title


def _unit(column: ScreenColumn, around: Surroundings) -> str:
    return around.formatter.heading(table_column(column))


def _head_lines(
    page: Page,
    around: Surroundings,
    geometry: Geometry,
    columns: Sequence[_Placed],
    width: int,
    *,
    split: bool,
    units: bool,
) -> list[Fragments]:
    """The headings, and below them the units that the cells don't have."""
    line: Fragments = []
    above: Fragments = []
    below: Fragments = []
    at = 0
    for number, item in enumerate(columns):
        gap = " " * GAP if number else ""
        upper, lower = item.heading
        style = "class:head.sort" if page.model.sort == item.column.key else "class:head"
        above += [("class:head", gap), (style, _fit(upper, item.width, item.column.right, around))]
        line += [("class:head", gap), (style, _fit(lower, item.width, item.column.right, around))]
        below.append(("class:faint", gap + _fit(_unit(item.column, around), item.width, item.column.right, around)))
        geometry.heads.append((at, at + len(gap) + item.width, item.column.key))
        at += len(gap) + item.width
    sign = _hidden(page, columns)
    rest = width - at
    if sign and rest > len(sign):
        line += [("class:head", " " * (rest - len(sign))), ("class:faint class:head", sign)]
    else:
        line.append(("class:head", " " * max(0, rest)))
    return [*([above] if split else []), line, *([below] if units else [])]


def _hidden(page: Page, columns: Sequence[_Placed]) -> str:
    """How many columns are scrolled out to the left, or have no room at the right."""
    drawn = {item.column.key for item in columns}
    scrolled = [item for item in page.model.shown_columns if not item.fixed and not item.spare]
    left = min(page.model.left, max(0, len(scrolled) - 1))
    right = sum(item.key not in drawn and not item.key.startswith("\0") for item in scrolled[left:])
    return (f"<{left}" if left else "") + (f" {right}>" if right else "")


# -- rows --------------------------------------------------------------------------------------------------------------


def _cell_text(column: ScreenColumn, row: Row, around: Surroundings) -> str:
    cell = column.cell(row)
    if isinstance(cell, NamedValues):
        return " ".join(f"{name}={value}" for name, value in around.formatter.telling_values(cell))
    text = around.formatter.column_text(cell, table_column(column))
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
        if item.column.prose:
            text = ended(text, item.width, around.left_out)
        elif display_width(text) > item.width and isinstance(cell := item.column.cell(row), NamedValues):
            text = shorten_values(around.formatter.telling_values(cell), item.width, around.left_out)
        if chosen:
            # The cursor has one colour, but what is critical stays so.
            style = f"{cursor} {style}" if style in _LEVELS.values() and style else f"{style} {cursor}"
        line.append((style, _fit(text, item.width, item.column.right, around)))
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
    text = shorten_middle(text, width, around.left_out)
    blanks = " " * max(0, width - display_width(text))
    return blanks + text if right else text + blanks


def ended(text: str, width: int, mark: str = "…") -> str:
    """A text of at most `width` columns: what is too long loses its end, from a blank on if there is one."""
    if display_width(text) <= width or width <= 1:
        return text[: max(0, width)]
    head = chop_cells(text, width - 1)[0]
    word = head.rpartition(" ")[0]
    head = word if len(word) * 2 > len(head) and text[len(head)] != " " else head
    return head.rstrip() + mark
