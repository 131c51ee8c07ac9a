"""Draws lines over time with characters, with axes, on a grid of dots: two by four per character (braille), or one.

Its own code because libraries do not fit: the interface of plotext changed in each of its last major versions, is
untyped and has one figure for the whole process, and it takes a tenth of a second to load.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import attrs
from rich.cells import cell_len

from qmf.views.formatting import Formatter
from qmf.views.text import clean
from qmf.views.times import duration_text
from qmf.views.units import brief_scale, heading_unit, number_text
from qmf_shell.render.layout import wrap
from qmf_shell.results.result import Plot, PlotSeries

#: The bits of the dots in a braille character, by column and row.
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_BRAILLE = 0x2800
#: Characters that draw lines without braille, one per line.
ASCII_LINES = "*+ox#@"
#: Columns between two marks of a line.
_MARK_DISTANCE = 12


@attrs.frozen
class Segment:
    """Some characters of a row that have the same colour.

    Attributes:
        text: the characters.
        series: number of the line that they draw; None for axes and texts.
    """

    text: str
    series: int | None = None


SegmentRow = tuple[Segment, ...]


class Canvas:
    """A grid of dots."""

    def __init__(self, columns: int, rows: int, braille: bool) -> None:
        self._across, self._down = (2, 4) if braille else (1, 1)
        self._braille = braille
        self.size = (columns * self._across, rows * self._down)
        self._cells: list[list[tuple[int, int | None]]] = [[(0, None)] * columns for _ in range(rows)]
        # A row that each line passes in each column, and the signs by row and column.
        self._passed: dict[tuple[int, int], int] = {}
        self._signs: dict[tuple[int, int], tuple[str, int]] = {}

    def line(self, number: int, dots: Sequence[tuple[int, int] | None]) -> None:
        """Draw a line through dots."""
        before: tuple[int, int] | None = None
        for dot in dots:
            if dot is not None:
                self._stroke(number, before or dot, dot)
            before = dot

    def _stroke(self, number: int, start: tuple[int, int], end: tuple[int, int]) -> None:
        steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
        for step in range(steps + 1):
            x = start[0] + round((end[0] - start[0]) * step / steps)
            y = start[1] + round((end[1] - start[1]) * step / steps)
            self._set(number, x, y)

    def _set(self, number: int, x: int, y: int) -> None:
        column, row = x // self._across, y // self._down
        bits, _ = self._cells[row][column]
        dot = _DOTS[x % 2][y % 4] if self._braille else 1
        # Where two lines cross, the character has the colour of the later one.
        self._cells[row][column] = (bits | dot, number)
        self._passed[number, column] = row

    def mark(self, number: int, sign: str, place: int, count: int) -> None:
        """Put a sign on a line every few columns, where other lines have theirs not.

        Args:
            number: of the line.
            sign: one character.
            place: of the line among those that have signs.
            count: how many those are.
        """
        width = len(self._cells[0])
        start = (_MARK_DISTANCE // 2 + place * _MARK_DISTANCE // count) % _MARK_DISTANCE
        for column in range(min(start, width - 1), width, _MARK_DISTANCE):
            row = self._passed.get((number, column))
            if row is not None:
                self._signs[row, column] = (sign, number)

    def rows(self) -> list[SegmentRow]:
        """The rows; adjacent characters of the same line form one segment."""
        result: list[SegmentRow] = []
        for row, cells in enumerate(self._cells):
            segments: list[Segment] = []
            for column, (bits, number) in enumerate(cells):
                sign = self._signs.get((row, column))
                char, owner = sign or (self._char(bits, number), number if bits else None)
                if segments and segments[-1].series == owner:
                    segments[-1] = Segment(segments[-1].text + char, owner)
                else:
                    segments.append(Segment(char, owner))
            result.append(tuple(segments))
        return result

    def _char(self, bits: int, number: int | None) -> str:
        if not bits:
            return " "
        return chr(_BRAILLE + bits) if self._braille else ASCII_LINES[(number or 0) % len(ASCII_LINES)]


#: Marks on lines with braille, where there are several.
_SIGNS = "●▲■◆○△"
#: Least columns and rows of the plot area.
_LEAST = (10, 3)
#: Steps between marks of the scale, times a power of ten.
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


def draw_plot(plot: Plot, formatter: Formatter, width: int, height: int, *, braille: bool = True) -> list[SegmentRow]:
    """A plot as rows of segments; colours are added later.

    Lines with different units are in pictures of their own, one below the other, with one axis of time. Of several
    lines, each has a mark of its own, so that they can be told apart without colours.

    Args:
        width, height: of the whole picture, in characters.
        braille: the terminal can show braille; else ASCII is used.
    """
    several = len(plot.series) > 1
    legend = [
        row
        for number, item in enumerate(plot.series)
        for row in _legend(item, _sign(number, several, braille), number, formatter, width)
    ]
    note = [(Segment(clean(plot.note)),)] if plot.note else []
    panels = _panels(plot.series, formatter.exact)
    headed = len(panels) > 1
    heads = sum(1 for panel in panels if panel.heading and headed)
    rows = max(_LEAST[1], (height - len(legend) - len(note) - 2 - heads) // max(1, len(panels)))
    marks = [_marks(panel, rows, formatter.exact) for panel in panels]
    margin = max((cell_len(text) for texts in marks for text in texts.values()), default=0)
    columns = max(_LEAST[0], width - margin - 2)
    first, last = _ends(plot)
    body: list[SegmentRow] = []
    for panel, texts in zip(panels, marks, strict=True):
        if panel.heading and headed:
            body.append((Segment(f"{' ' * margin} {panel.heading}"[:width]),))
        canvas = _draw(panel, Canvas(columns, rows, braille), (first, last), signs=several and braille)
        body += _frame(canvas, texts, margin, braille)
    begin, end = _axis_texts(plot, formatter, last - first, columns)
    axis = " " * (margin + 2) + begin + " " * max(1, columns - len(begin) - len(end)) + end
    return [(Segment(clean(plot.title)),), *body, (Segment(axis),), *legend, *note]


def _draw(panel: _Panel, canvas: Canvas, period: tuple[float, float], *, signs: bool) -> Canvas:
    """A canvas with the lines of a panel; `signs`: with their marks on them."""
    for number, series in panel.series:
        canvas.line(number, _dots(series, *period, panel.low, panel.high, canvas.size))
    if signs:
        for place, (number, _) in enumerate(panel.series):
            canvas.mark(number, _SIGNS[number % len(_SIGNS)], place, len(panel.series))
    return canvas


def _frame(canvas: Canvas, marks: Mapping[int, str], margin: int, braille: bool) -> Iterator[SegmentRow]:
    """The rows of a canvas with the axis at their left."""
    edges = ("┤", "│") if braille else ("|", "|")
    for at, segments in enumerate(canvas.rows()):
        mark = marks.get(at, "")
        edge = edges[0] if mark else edges[1]
        yield Segment(f"{' ' * (margin - cell_len(mark))}{mark} {edge}"), *segments


@attrs.frozen
class _Panel:
    """Lines with one axis.

    Attributes:
        series: the lines, with their numbers in the plot.
        unit: of their values, or None.
        heading: what is written above: the unit, if the marks of the axis don't have it.
        low, high, step: the scale.
    """

    series: tuple[tuple[int, PlotSeries], ...]
    unit: str | None
    heading: str
    low: float
    high: float
    step: float


def _panels(series: Sequence[PlotSeries], exact: bool) -> list[_Panel]:
    groups: dict[str | None, list[tuple[int, PlotSeries]]] = {}
    for number, item in enumerate(series):
        groups.setdefault(item.unit, []).append((number, item))
    panels = []
    for unit, items in groups.items():
        scale = _scale([value for _, item in items for _, value in item.points if value is not None])
        panels.append(_Panel(tuple(items), unit, heading_unit(unit, exact=exact), *scale))
    return panels


def _sign(number: int, several: bool, braille: bool) -> str:
    """What stands before a line in the legend."""
    if not braille:
        return ASCII_LINES[number % len(ASCII_LINES)] * 2
    return f"{_SIGNS[number % len(_SIGNS)]}─" if several else "──"


def _legend(series: PlotSeries, sign: str, number: int, formatter: Formatter, width: int) -> Iterator[SegmentRow]:
    first, *more = wrap(f"{clean(series.name)}  {formatter.text(series.cell)}", max(1, width - len(sign) - 1))
    yield Segment(f"{sign} ", number), Segment(first)
    yield from ((Segment(" " * (len(sign) + 1) + line),) for line in more)


def _ends(plot: Plot) -> tuple[float, float]:
    """The seconds that the picture begins and ends with."""
    if plot.first is not None and plot.last is not None:
        return plot.first.ns / 1e9, plot.last.ns / 1e9
    return _times(plot.series)


def _axis_texts(plot: Plot, formatter: Formatter, seconds: float, columns: int) -> tuple[str, str]:
    """The texts below the picture's ends; the dates of times are left out where there is no room for them."""
    if plot.first is not None and plot.last is not None:
        for form in (formatter, attrs.evolve(formatter, short=True)):
            begin, end = form.instant(plot.first.ns), form.instant(plot.last.ns)
            if len(begin) + len(end) < columns:
                return begin, end
        return "", ""
    return f"-{duration_text(round(seconds * 1e9))}" if seconds > 0 else "", "now"


def _times(series: Sequence[PlotSeries]) -> tuple[float, float]:
    times = [at for item in series for at, _ in item.points]
    return (min(times), max(times)) if times else (0.0, 0.0)


def _scale(values: Sequence[float]) -> tuple[float, float, float]:
    """Lowest and highest value of the scale, and the step between marks: round numbers that include all values."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    if high - low < 1e-300:
        # A flat line is drawn in the middle, and so is one whose range is too small to be divided.
        margin = max(1.0, abs(low) / 100)
        low, high = (low - margin, high + margin) if low else (0.0, 1.0)
    if 0 < low < high / 2:
        low = 0.0  # include zero if it takes less than half of the height
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in _STEPS if factor * power >= rough * 0.999)
    return math.floor(low / step) * step, math.ceil(high / step) * step, step


def _marks(panel: _Panel, rows: int, exact: bool) -> dict[int, str]:
    """The texts of marks by their rows."""
    marks: dict[int, float] = {}
    count = round((panel.high - panel.low) / panel.step)
    for number in range(count + 1):
        row = round((rows - 1) * (1 - number / count))
        if number in (0, count) or all(abs(row - other) > 1 for other in marks):
            marks[row] = round(panel.low + number * panel.step, 10)
    values = list(marks.values())
    return dict(zip(marks, map(number_text, values) if exact else brief_scale(values, panel.unit), strict=True))


def _dots(
    series: PlotSeries, first: float, last: float, low: float, high: float, size: tuple[int, int]
) -> list[tuple[int, int] | None]:
    """Points as dots of the canvas; None is a gap."""
    wide, tall = size
    span = last - first
    dots: list[tuple[int, int] | None] = []
    for at, value in series.points:
        if value is None or not math.isfinite(value):
            dots.append(None)
            continue
        x = round((at - first) / span * (wide - 1)) if span > 0 else wide - 1
        dots.append((x, round((high - value) / (high - low) * (tall - 1))))
    return dots
