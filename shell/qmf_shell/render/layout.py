"""Computes the widths of columns, and whether a table fits at all: pure functions.

A table that does not fit loses its spare columns; then columns that may wrap are narrowed; then columns without values
are removed. If it still does not fit, its rows are written as records, with one name and value per line. Without a
limit (in a pipe) nothing is left out or broken.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from rich.cells import cell_len, chop_cells

from qmf_shell.render.formatting import ABSENT
from qmf_shell.results.result import TableColumn
from qmf_shell.text import clean

#: Texts of cells without a value.
EMPTY = ("", ABSENT)
#: Blanks between columns.
GAP = 2
#: A column that wraps is never made narrower than this, unless its contents are.
NARROWEST = 12
#: Text in lines of this width is readable: then spare columns may stay.
READABLE = 40


def indent(width: int | None) -> int:
    """Blanks before tables: fewer on narrow terminals."""
    return 4 if width is None or width >= 80 else 2 if width >= 60 else 0


def display_width(text: str) -> int:
    """The columns that clean text takes on a terminal."""
    return len(text) if text.isascii() else cell_len(text)


def natural_widths(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """The width of each column if nothing is broken."""
    return [max(map(display_width, texts)) for texts in zip(titles, *rows, strict=True)]


def fit_widths(
    widths: Sequence[int], wraps: Sequence[bool], room: int | None, least: int = NARROWEST
) -> list[int] | None:
    """Widths that fit, or None if the table must be written as records.

    Args:
        widths: as `natural_widths` gives them.
        wraps: which columns may be narrowed.
        room: width available to the table, without its indent; None for no limit.
        least: no column is made narrower than this.
    """
    result = list(widths)
    if room is None:
        return result
    over = sum(result) + GAP * (len(result) - 1) - room
    while over > 0:
        shrinkable = [number for number, may in enumerate(wraps) if may and result[number] > least]
        if not shrinkable:
            return None
        widest = max(shrinkable, key=lambda number: result[number])
        second = max((result[number] for number in shrinkable if number != widest), default=least)
        step = min(over, max(1, result[widest] - max(second, least)))
        result[widest] -= step
        over -= step
    return result


@attrs.frozen
class ColumnPlan:
    """Which columns of a table are drawn, and how wide.

    Attributes:
        shown: numbers of the columns that are drawn.
        widths: their widths; None: rows are written as records.
    """

    shown: tuple[int, ...]
    widths: tuple[int, ...] | None


def plan_columns(
    columns: Sequence[TableColumn], rows: Sequence[Sequence[str]], room: int | None, units: Sequence[str] = ()
) -> ColumnPlan:
    """Fit a table into `room`: remove spare columns, then wrap text, then remove columns without values.

    The last spare columns are removed first. If text must be wrapped even without any, they stay as long as the text is
    readable.

    Args:
        columns: the headings.
        rows: the texts of the cells.
        room: as in `fit_widths`.
        units: second lines of the headings, or nothing.
    """
    widths = natural_widths([clean(item.title) for item in columns], [units, *rows] if units else rows)

    def fitted(shown: Sequence[int], least: int = NARROWEST) -> ColumnPlan | None:
        found = fit_widths([widths[at] for at in shown], [columns[at].wraps for at in shown], room, least)
        return None if found is None else ColumnPlan(tuple(shown), tuple(found))

    def overfull(shown: Sequence[int]) -> bool:
        return room is not None and sum(widths[at] for at in shown) + GAP * (len(shown) - 1) > room

    everything = range(len(columns))
    needed = [at for at in everything if not columns[at].spare]
    filled = [at for at in needed if any(row[at] not in EMPTY for row in rows)]
    if overfull(needed):
        whole = fitted(everything, READABLE)
        return whole or fitted(needed) or fitted(filled) or ColumnPlan(tuple(filled), None)
    shown = list(everything)
    while overfull(shown):
        shown.remove(max(at for at in shown if columns[at].spare))
    return ColumnPlan(tuple(shown), tuple(widths[at] for at in shown))


def wrap(text: str, width: int) -> list[str]:
    """`text` in lines of at most `width` columns, broken at blanks if possible. At least one line."""
    if display_width(text) <= width:
        return [text]
    lines: list[str] = []
    # Indented text keeps its indent on every line.
    lead = text[: min(len(text) - len(text.lstrip(" ")), width // 2)]
    if lead:
        return [lead + line for line in wrap(text.lstrip(" "), width - len(lead))]
    line = ""
    for word in text.split(" "):
        joined = f"{line} {word}" if line else word
        if display_width(joined) <= width:
            line = joined
            continue
        if line:
            lines.append(line)
        *full, line = chop_cells(word, max(1, width)) or [""]
        lines += full
    return [*lines, line]


def pad(text: str, width: int, *, right: bool = False) -> str:
    """`text` padded with blanks to `width` columns; `right` aligns it to the right."""
    blanks = " " * max(0, width - display_width(text))
    return blanks + text if right else text + blanks
