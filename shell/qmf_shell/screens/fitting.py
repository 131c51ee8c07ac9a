"""Chooses the columns of a page that fit on the screen, and their widths.

What is fixed stays at the left, the other columns follow from where they are scrolled to; spare ones come where there
is room. As in printed tables (`render.layout`), the widest columns are narrowed first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from qmf.views.cells import NamedValues
from qmf.views.formatting import ABSENT
from qmf.views.text import clean
from qmf_shell.render.layout import GAP, display_width, fit_in_turn, halves
from qmf_shell.results.result import Role
from qmf_shell.screens.geometry import Geometry, ScreenContext
from qmf_shell.screens.rows import Row, ScreenColumn, ThresholdState
from qmf_shell.screens.state import Page

#: Texts take at most so much of the width, unless there is room; names of what the rows are about 2/5.
_TEXT_PART = 3
_LEAST_TEXT = 12
#: Headings are shortened to so much at most, if there is no room.
LEAST_HEADING = 12
#: Below this width there are no short ids.
_NARROW = 60
#: Columns that are shown where there is room need so much of it.
_LEAST_SPARE = 24
#: Without colour, marks that follow a value.
_LEVEL_SIGNS = {ThresholdState.NORMAL: "", ThresholdState.WARNING: "!", ThresholdState.CRITICAL: "!!"}


@attrs.frozen(eq=False)
class PlacedColumn:
    """A column on the screen.

    Attributes:
        column: the column.
        title: its heading.
        width: how wide it is; of one that is only measured, how narrow it may become.
        natural: the width that shows everything.
        texts: of its cells, by the `id` of the row.
        split: its heading may take two lines.
    """

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


def place_columns(
    page: Page, around: ScreenContext, geometry: Geometry, rows: Sequence[Row], *, split: bool
) -> list[PlacedColumn]:
    """The columns that fit, with the texts of the rows.

    Args:
        geometry: has the width of the screen and those that columns had so far, and keeps the new ones.
        split: headings may take two lines.
    """
    width = geometry.size[0]
    geometry.keep_widths((id(page), width, tuple(page.model.shown), page.model.left))
    measuring = _Measuring(page, around, geometry, rows)
    shown = page.model.shown_columns
    if page.loaded and rows:
        shown = [item for item in shown if item.fixed or not item.key.startswith("\0") or _has_values(item, rows)]
    placed = _first_ones(measuring.in_order(_sequence(page, shown, width), split=split), width)
    # Prose such as descriptions keeps a part of what is left; other spare columns get what the others don't need.
    spare = [measuring.measure(item) for item in shown if item.spare]
    used = _used_width(placed)
    for one in spare:
        least = min(one.natural, _LEAST_SPARE)
        if one.column.prose and used + least <= width:
            placed.append(attrs.evolve(one, width=least))
            used += least + GAP
    placed = _widen(placed, width)
    for one in spare:
        rest = width - _used_width(placed)
        if not one.column.prose and rest >= min(one.natural, _LEAST_SPARE):
            placed.append(attrs.evolve(one, width=min(one.natural, rest)))
    return placed


def _sequence(page: Page, shown: Sequence[ScreenColumn], width: int) -> list[ScreenColumn]:
    """The columns from the left, without spare ones and those that are scrolled out."""
    fixed = [item for item in shown if item.fixed]
    if width < _NARROW and len(fixed) > 1:
        fixed = fixed[1:]  # the short id: the name says more
    scrolled = [item for item in shown if not item.fixed and not item.spare]
    return fixed + scrolled[min(page.model.left, max(0, len(scrolled) - 1)) :]


def _has_values(column: ScreenColumn, rows: Sequence[Row]) -> bool:
    return any(column.cell(row) is not None for row in rows)


def _used_width(placed: Sequence[PlacedColumn]) -> int:
    """The width of columns, with the gap behind each."""
    return sum(item.width + GAP for item in placed)


def _first_ones(measured: Iterable[PlacedColumn], width: int) -> list[PlacedColumn]:
    """As many columns as fit if each is as narrow as it may be; the last one may lose a part of its texts."""
    placed: list[PlacedColumn] = []
    for one in measured:
        least = one.width if one.column.right else min(one.width, _width_limit(one.column, width))
        rest = width - _used_width(placed)
        if least <= rest:
            placed.append(attrs.evolve(one, width=least))
            continue
        cut = rest >= _LEAST_TEXT and not one.column.right
        if cut or not placed or (one.column.fixed and rest > 0):
            rest = max(1, rest)
            placed.append(attrs.evolve(one, width=rest, natural=rest))
        break
    return placed


def _width_limit(column: ScreenColumn, width: int) -> int:
    """How wide a text is at most while other columns want room."""
    named = column.main or (column.fixed and column.role is Role.NAME)
    return max(_LEAST_TEXT, width * 2 // 5 if named else width // _TEXT_PART)


def _widen(placed: Sequence[PlacedColumn], width: int) -> list[PlacedColumn]:
    """Give the room that is left to texts that were shortened, then to headings.

    Prose keeps its width before the others: these are cut in the middle, and still show what they are.
    """
    leasts = [item.width for item in placed]
    naturals = [item.width if item.column.right else max(item.width, item.natural) for item in placed]
    widths = fit_in_turn(naturals, leasts, [not item.column.prose for item in placed], width) or leasts
    room = width + GAP - sum(wide + GAP for wide in widths)
    for at, item in enumerate(placed):
        more = max(0, min(item.natural - widths[at], room))
        widths[at] += more
        room -= more
    return [attrs.evolve(item, width=wide) for item, wide in zip(placed, widths, strict=True)]


@attrs.frozen
class _Measuring:
    """Measures the columns of a page for the rows on the screen."""

    page: Page
    around: ScreenContext
    geometry: Geometry
    rows: Sequence[Row]

    def in_order(self, columns: Sequence[ScreenColumn], *, split: bool) -> Iterator[PlacedColumn]:
        """The columns, each of which is measured when it is asked for."""
        for before, column in zip([None, *columns], columns, strict=False):
            yield self.measure(column, before, split=split)

    def measure(self, column: ScreenColumn, before: ScreenColumn | None = None, *, split: bool = False) -> PlacedColumn:
        """A column with the texts of the rows, as wide as these; a long heading may be shortened."""
        title = self._heading(column, before)
        texts = {id(row): _cell_text(column, row, self.around) for row in self.rows}
        content = max([self.geometry.widths.get(column.key, 1), *map(display_width, texts.values())])
        self.geometry.widths[column.key] = content
        unit = display_width(unit_of(column, self.around))
        whole = max(display_width(title), unit)
        least = max(map(display_width, halves(title))) if split else LEAST_HEADING
        least = max(min(whole, least), unit)
        return PlacedColumn(column, title, max(content, least), max(content, whole), texts, split)

    def _heading(self, column: ScreenColumn, before: ScreenColumn | None) -> str:
        # Beside the total, "per second" is enough.
        beside = column.rate and before is not None and before.name == column.name and not before.rate
        title = "/s" if beside else clean(column.title)
        model = self.page.model
        if model.sort == column.key:
            signs = ("▼", "▲") if self.around.wide_characters else ("v", "^")
            title += f" {signs[0] if model.descending else signs[1]}"
        return title


def unit_of(column: ScreenColumn, around: ScreenContext) -> str:
    """The unit below a heading; empty for none."""
    return around.formatter.heading(column.form, column.unit)


def _cell_text(column: ScreenColumn, row: Row, around: ScreenContext) -> str:
    cell = column.cell(row)
    if isinstance(cell, NamedValues):
        return " ".join(f"{name}={value}" for name, value in around.formatter.telling_values(cell))
    text = around.formatter.text_as(cell, column.form)
    if around.colour or text == ABSENT:
        return text
    return text + ("*" if column.changed(row) else "") + _LEVEL_SIGNS[column.level(row)]
