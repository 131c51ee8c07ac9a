"""Computes the widths of columns, and whether a table fits at all: pure functions.

A table that does not fit gets headings of two lines, if it then shows more. If that is not enough, it loses its spare
columns; then columns that may wrap are narrowed; then columns without values are removed. If it still does not fit, its
rows are written as records, with one name and value per line. Without a limit (in a pipe) nothing is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

import attrs
from rich.cells import cell_len, chop_cells

from qmf.views.formatting import ABSENT
from qmf.views.text import clean
from qmf_shell.results.result import Role, TableColumn

_T = TypeVar("_T")

#: Texts of cells without a value.
EMPTY = ("", ABSENT)
#: Long words may be broken after these.
_BREAKS = "/,;:=_-.&?"
#: Blanks between columns.
GAP = 2
#: A column that wraps is never made narrower than this, unless its contents are.
NARROWEST = 12
#: Names are shortened to this width while spare columns remain, to the next one if that keeps columns of numbers, and
#: then to the last one.
COMFORTABLE, NARROW, SHORT = 32, 24, 16
#: Words up to this length are not broken as long as there is another way.
LONG_WORD = 24
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


def halves(title: str) -> tuple[str, str]:
    """A heading in two lines, broken before a capital letter or after a blank, as evenly as possible."""
    breaks = [
        at for at in range(1, len(title)) if (title[at].isupper() and title[at - 1].islower()) or title[at] == " "
    ]
    if not breaks:
        return "", title
    at = min(breaks, key=lambda place: max(place, len(title) - place))
    return title[:at], title[at:].lstrip()


def fit_widths(widths: Sequence[int], leasts: Sequence[int], room: int | None) -> list[int] | None:
    """Widths that fit into `room`, or None if there are none. The widest columns are narrowed first.

    Args:
        widths: as `natural_widths` gives them.
        leasts: how narrow each column may become; at least its width for those that stay as they are.
        room: width available to the table, without its indent; None for no limit.
    """
    result = list(widths)
    if room is None:
        return result
    over = sum(result) + GAP * (len(result) - 1) - room
    while over > 0:
        shrinkable = [at for at, least in enumerate(leasts) if result[at] > least]
        if not shrinkable:
            return None
        widest = max(shrinkable, key=lambda at: result[at])
        second = max((result[at] for at in shrinkable if at != widest), default=0)
        step = min(over, max(1, result[widest] - max(second, leasts[widest])))
        result[widest] -= step
        over -= step
    return result


def fit_in_turn(
    widths: Sequence[int], leasts: Sequence[int], first: Sequence[bool], room: int | None
) -> list[int] | None:
    """As `fit_widths`, but the columns of `first` are narrowed before the others."""
    narrowed = [least if early else width for width, least, early in zip(widths, leasts, first, strict=True)]
    return fit_widths(widths, narrowed, room) or fit_widths(narrowed, leasts, room)


@attrs.frozen
class ColumnPlan:
    """Which columns of a table are drawn, and how wide.

    Attributes:
        shown: numbers of the columns that are drawn.
        widths: their widths; None: rows are written as records.
        split: headings that are wider take two lines.
    """

    shown: tuple[int, ...]
    widths: tuple[int, ...] | None
    split: bool = False

    def of(self, items: Sequence[_T]) -> list[_T]:
        """What belongs to the columns that are drawn, for what belongs to all."""
        return [items[at] for at in self.shown]

    def widen_for(self, rows: Sequence[Sequence[str]], room: int | None) -> ColumnPlan:
        """The plan for further rows: the columns are as wide as these need, if that fits into `room`."""
        if self.widths is None or not rows:
            return self
        needed = natural_widths([""] * len(self.shown), list(map(self.of, rows)))
        widths = tuple(map(max, self.widths, needed))
        fits = room is None or sum(widths) + GAP * (len(widths) - 1) <= room
        return attrs.evolve(self, widths=widths) if fits else self

    def headings(self, titles: Sequence[str]) -> list[list[str]]:
        """The lines of the headings of the columns that are drawn, for the titles of all."""
        drawn = self.of(titles)
        if not self.split:
            return [drawn]
        pairs = [
            halves(title) if display_width(title) > width else ("", title)
            for title, width in zip(drawn, self.widths or (), strict=True)
        ]
        return [list(line) for line in zip(*pairs, strict=True)]


@attrs.frozen
class _Leasts:
    """How narrow columns of a kind may become.

    Attributes:
        shortened: those whose texts are shortened; None: they are not.
        wrapped: those whose texts are broken into lines; None: they are not.
        whole_words: no word of these is broken, unless it is longer than `LONG_WORD`.
    """

    shortened: int | None = None
    wrapped: int | None = None
    whole_words: bool = True


def plan_columns(
    columns: Sequence[TableColumn], rows: Sequence[Sequence[str]], room: int | None, units: Sequence[str] = ()
) -> ColumnPlan:
    """Fit a table into `room`: shorten names, split the headings of numbers, remove spare columns, wrap text, then
    remove columns without values.

    The last spare columns are removed first. If text must be wrapped even without any, they stay as long as the text is
    readable.

    Args:
        columns: the headings.
        rows: the texts of the cells.
        room: as in `fit_widths`.
        units: second lines of the headings, or nothing.
    """
    titles = [clean(item.title) for item in columns]
    plan = _plan(columns, titles, rows, room, units)
    if plan.widths is not None and len(plan.shown) == len(columns):
        return plan
    parts = [max(halves(title), key=display_width) for title in titles]
    narrower = [
        part if item.role is Role.NUMBER else title for item, part, title in zip(columns, parts, titles, strict=True)
    ]
    split = _plan(columns, narrower, rows, room, units, comfortable=NARROW)
    if split.widths is None or (plan.widths is not None and len(split.shown) <= len(plan.shown)):
        return plan
    return attrs.evolve(split, split=True)


def _plan(
    columns: Sequence[TableColumn],
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    room: int | None,
    units: Sequence[str],
    comfortable: int = COMFORTABLE,
) -> ColumnPlan:
    """See `plan_columns`; the headings are `titles`, and `comfortable` the width of names beside spare columns."""
    fitting = _Fitting(columns, titles, rows, natural_widths(titles, [units, *rows] if units else rows), room)
    everything = list(range(len(columns)))
    needed = [at for at in everything if not columns[at].spare]
    spare = [at for at in everything if columns[at].spare]
    filled = [at for at in needed if any(row[at] not in EMPTY for row in rows)]
    tight = _Leasts(SHORT, NARROWEST)
    tries = [(sorted(needed + spare[:left]), _Leasts(comfortable)) for left in range(len(spare), -1, -1)]
    tries += [
        (everything, _Leasts(COMFORTABLE, READABLE)),
        (needed, _Leasts(SHORT)),
        (everything, _Leasts(SHORT, READABLE)),
        (needed, tight),
        (filled, tight),
        (filled, attrs.evolve(tight, whole_words=False)),
    ]
    found = (fitting.plan(shown, limits) for shown, limits in tries)
    return next(filter(None, found), ColumnPlan(tuple(filled), None))


@attrs.frozen
class _Fitting:
    """Tries which columns fit.

    Attributes:
        columns: the headings.
        titles: their texts.
        rows: the texts of the cells.
        widths: what each column needs if nothing is broken.
        room: as in `fit_widths`.
    """

    columns: Sequence[TableColumn]
    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    widths: Sequence[int]
    room: int | None

    def plan(self, shown: Sequence[int], limits: _Leasts) -> ColumnPlan | None:
        """These columns, if they fit; spare ones are narrowed before others."""
        wanted, leasts = [self.widths[at] for at in shown], [self._least(at, limits) for at in shown]
        found = fit_in_turn(wanted, leasts, [self.columns[at].spare for at in shown], self.room)
        return None if found is None else ColumnPlan(tuple(shown), tuple(found))

    def _least(self, at: int, limits: _Leasts) -> int:
        column, title = self.columns[at], self.titles[at]
        if column.shortens and limits.shortened is not None:
            return max(limits.shortened, min(LONG_WORD, display_width(title)))
        if column.wraps and limits.wrapped is not None:
            words = _longest_word(title, *(row[at] for row in self.rows)) if limits.whole_words else 0
            return max(limits.wrapped, min(LONG_WORD, words))
        return self.widths[at]


#: A blank between words, but not one between a number and its unit.
_WORD_END = re.compile(r"(?<!\d) | (?!(?:%|[kMGTP]|[kMGTPµmn]?i?(?:B|b|Hz|s|W|V))(?![\w.:]))")


def _longest_word(*texts: str) -> int:
    return max((display_width(word) for text in texts for word in _WORD_END.split(text)), default=0)


def wrap(text: str, width: int) -> list[str]:
    """`text` in lines of at most `width` columns, broken at blanks if possible. At least one line.

    A number stays with the unit behind it.
    """
    if display_width(text) <= width:
        return [text]
    lines: list[str] = []
    # Indented text keeps its indent on every line.
    lead = text[: min(len(text) - len(text.lstrip(" ")), width // 2)]
    if lead:
        return [lead + line for line in wrap(text.lstrip(" "), width - len(lead))]
    line = ""
    for word in _WORD_END.split(text):
        joined = f"{line} {word}" if line else word
        if display_width(joined) <= width:
            line = joined
            continue
        if line:
            lines.append(line)
        *full, line = _pieces(word, max(1, width))
        lines += full
    return [*lines, line]


def _pieces(word: str, width: int) -> list[str]:
    """A word that is too long for a line in parts, which end with a punctuation mark if that leaves half of a line."""
    pieces: list[str] = []
    while display_width(word) > width:
        piece = chop_cells(word, width)[0]
        at = max((piece.rfind(mark) for mark in _BREAKS), default=-1) + 1
        piece = piece[:at] if at >= len(piece) // 2 else piece
        pieces.append(piece or word[:1])
        word = word[len(pieces[-1]) :]
    return [*pieces, word]


def pad(text: str, width: int, *, right: bool = False) -> str:
    """`text` padded with blanks to `width` columns; `right` aligns it to the right."""
    blanks = " " * max(0, width - display_width(text))
    return blanks + text if right else text + blanks
