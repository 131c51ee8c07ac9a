"""Draws a page: lines of styled text for a number of columns and lines. A pure function of the page's state.

Only the rows that fit are formatted. Whatever the size is, there are as many lines as it has, none wider than it.
"""

from __future__ import annotations

from collections.abc import Sequence

from prompt_toolkit.formatted_text import ANSI, to_formatted_text
from rich.cells import chop_cells

from qmf.views.cells import NamedValues
from qmf.views.formatting import ABSENT
from qmf.views.text import clean
from qmf_shell.render.layout import GAP, display_width, pad
from qmf_shell.render.shortening import shorten_end, shorten_middle, shorten_values
from qmf_shell.render.styles import Styler
from qmf_shell.render.text_lines import TextOptions, text_lines
from qmf_shell.results.result import Result, Role
from qmf_shell.screens.fitting import LEAST_HEADING, PlacedColumn, place_columns, unit_of
from qmf_shell.screens.geometry import Geometry, ScreenContext
from qmf_shell.screens.rows import Mark, Row, ScreenColumn, ThresholdState
from qmf_shell.screens.state import Page

Fragments = list[tuple[str, str]]

#: Below this height there are no units.
_TALL = 16

_ROLES = {Role.ID: "class:id", Role.NAME: "class:name", Role.FAINT: "class:faint", Role.TREE: "class:name"}
_LEVELS = {
    ThresholdState.NORMAL: "",
    ThresholdState.WARNING: "class:warning",
    ThresholdState.CRITICAL: "class:critical",
}
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


def draw_page(page: Page, around: ScreenContext, geometry: Geometry, width: int, height: int) -> list[Fragments]:
    """The lines of a page; notes in `geometry` where things are."""
    geometry.begin(width, height)
    lines: list[Fragments] = []
    if height >= 3:
        lines.append(_title_line(page, around, width))
    if page.tabs and height >= 6:
        lines.append(_tab_line(page, geometry, width))
    foot = height >= 4 or around.message is not None
    room = height - len(lines) - foot
    if page.frame is None:
        lines += _table_lines(page, around, geometry, len(lines), room)
    else:
        lines += _frame_lines(page.frame, around, width, room)
    lines += [[("", "")]] * (height - len(lines) - foot)
    if foot:
        lines.append(_foot_line(around, geometry, width))
    return lines[:height]


def _table_lines(page: Page, around: ScreenContext, geometry: Geometry, top: int, room: int) -> list[Fragments]:
    """Headings and rows in `room` lines, the first of which is line number `top`."""
    width, height = geometry.size
    with_heads, tall = height >= 5, height >= _TALL
    # Units need a line of their own: only if columns have some, and there is room.
    units = tall and any(unit_of(item, around) for item in page.model.shown_columns)
    room -= with_heads + units
    split = tall and any(len(item.title) > LEAST_HEADING for item in page.model.shown_columns)
    rows, columns = _placed_rows(page, around, geometry, room - split, split=split)
    if split and not any(item.is_split for item in columns):
        split = False
        rows, columns = _placed_rows(page, around, geometry, room, split=False)
    room = max(0, room - split)
    lines: list[Fragments] = []
    if with_heads:
        geometry.head = top + split
        lines += _head_lines(page, around, geometry, columns, split=split, units=units)
    geometry.body = top + len(lines), room
    cursor = page.model.cursor - page.model.top
    lines += [_row_line(row, around, columns, width, chosen=at == cursor) for at, row in enumerate(rows)]
    if not rows:
        lines += [[("class:faint", shorten_middle(text, width, around.left_out))] for text in _empty_lines(page)][:room]
    return lines


def _placed_rows(
    page: Page, around: ScreenContext, geometry: Geometry, room: int, *, split: bool
) -> tuple[Sequence[Row], list[PlacedColumn]]:
    """The rows that fit, and the columns."""
    rows = page.model.window(max(0, room))[1][: max(0, room)]
    return rows, place_columns(page, around, geometry, rows, split=split)


def _frame_lines(frame: Result, around: ScreenContext, width: int, room: int) -> list[Fragments]:
    """The lines of a frame as they are printed; what does not fit is counted."""
    options = TextOptions(
        formatter=around.printing,
        width=width,
        height=room,
        styler=Styler(around.colour),
        braille=around.wide_characters,
    )
    texts = list(text_lines(frame, options))
    if len(texts) > room:
        texts[max(0, room - 1) :] = [f"... {len(texts) - room + 1:,} more lines"]
    return [[(style, text) for style, text, *_ in to_formatted_text(ANSI(line))] for line in texts]


def _empty_lines(page: Page) -> list[str]:
    if not page.loaded:
        return ["loading ..."]
    if page.model.filter:
        return [f"Nothing matches {clean(page.model.filter)!r}."]
    own = page.own_left_out
    return [page.empty, *([f"{own:,} of agents and consoles not shown; a shows them."] if own else [])]


# -- the first and the last line ---------------------------------------------------------------------------------------


def _title_line(page: Page, around: ScreenContext, width: int) -> Fragments:
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


def _filter_text(page: Page, around: ScreenContext, width: int) -> str:
    if not page.model.filter:
        return ""
    shown = f": {len(page.model.arranged_rows()):,} shown"
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


def _foot_line(around: ScreenContext, geometry: Geometry, width: int) -> Fragments:
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


# -- headings ---------------------------------------------------------------------------------------------------------


def _head_lines(
    page: Page,
    around: ScreenContext,
    geometry: Geometry,
    columns: Sequence[PlacedColumn],
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
        below.append(("class:faint", gap + _fit(unit_of(item.column, around), item.width, item.column.right, around)))
        geometry.heads.append((at, at + len(gap) + item.width, item.column.key))
        at += len(gap) + item.width
    sign = _hidden_text(page, columns)
    rest = geometry.size[0] - at
    if sign and rest > len(sign):
        line += [("class:head", " " * (rest - len(sign))), ("class:faint class:head", sign)]
    else:
        line.append(("class:head", " " * max(0, rest)))
    return [*([above] if split else []), line, *([below] if units else [])]


def _hidden_text(page: Page, columns: Sequence[PlacedColumn]) -> str:
    """How many columns are scrolled out to the left, or have no room at the right."""
    drawn = {item.column.key for item in columns}
    scrolled = [item for item in page.model.shown_columns if not item.fixed and not item.spare]
    left = min(page.model.left, max(0, len(scrolled) - 1))
    right = sum(item.key not in drawn and not item.key.startswith("\0") for item in scrolled[left:])
    return (f"<{left}" if left else "") + (f" {right}>" if right else "")


# -- rows --------------------------------------------------------------------------------------------------------------


def _row_line(
    row: Row, around: ScreenContext, columns: Sequence[PlacedColumn], width: int, *, chosen: bool
) -> Fragments:
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
            text = cut_end(text, item.width, around.left_out)
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


def _fit(text: str, width: int, right: bool, around: ScreenContext) -> str:
    return pad(shorten_middle(text, width, around.left_out), width, right=right)


def cut_end(text: str, width: int, mark: str = "…") -> str:
    """A text of at most `width` columns: what is too long loses its end, from a blank on if there is one."""
    if display_width(text) <= width or width <= 1:
        return text[: max(0, width)]
    head = chop_cells(text, width - 1)[0]
    word = head.rpartition(" ")[0]
    head = word if len(word) * 2 > len(head) and text[len(head)] != " " else head
    return head.rstrip() + mark
