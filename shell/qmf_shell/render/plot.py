"""Draws lines over time with characters: two by four dots per character (braille), with axes.

Its own code because libraries do not fit: the interface of plotext changed in each of its last major versions, is
untyped and has one figure for the whole process, and it takes a tenth of a second to load.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import attrs
from rich.cells import cell_len

from qmf_shell.render.formatting import Formatter
from qmf_shell.render.layout import wrap
from qmf_shell.render.units import duration_text, number_text
from qmf_shell.results.result import Plot, PlotSeries
from qmf_shell.text import clean

#: The bits of the dots in a braille character, by column and row.
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_BRAILLE = 0x2800
#: Characters that draw lines without braille, one per line.
_ASCII = "*+ox#@"
#: Least columns and rows of the plot area.
_LEAST = (10, 3)
#: Steps between marks of the scale, times a power of ten.
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


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


def draw_plot(plot: Plot, formatter: Formatter, width: int, height: int, *, braille: bool = True) -> list[SegmentRow]:
    """A plot as rows of segments; colours are added later.

    Args:
        plot: the plot.
        formatter: formats the latest values.
        width, height: of the whole picture, in characters.
        braille: the terminal can show braille; else ASCII is used.
    """
    legend = [
        row for number, item in enumerate(plot.series) for row in _legend(number, item, formatter, width, braille)
    ]
    note = [(Segment(clean(plot.note)),)] if plot.note else []
    rows = max(_LEAST[1], height - len(legend) - len(note) - 2)
    low, high, step = _scale([value for item in plot.series for _, value in item.points if value is not None])
    marks = _marks(low, high, step, rows)
    margin = max(cell_len(text) for text in marks.values())
    columns = max(_LEAST[0], width - margin - 2)
    first, last = _ends(plot)
    canvas = _Canvas(columns, rows, braille)
    for number, series in enumerate(plot.series):
        canvas.line(number, _dots(series, first, last, low, high, canvas.size))
    edges = ("┤", "│") if braille else ("|", "|")
    body: list[SegmentRow] = []
    for at, segments in enumerate(canvas.rows()):
        mark = marks.get(at, "")
        edge = edges[0] if mark else edges[1]
        body.append((Segment(f"{' ' * (margin - cell_len(mark))}{mark} {edge}"), *segments))
    begin, end = _axis_texts(plot, formatter, last - first, columns)
    axis = " " * (margin + 2) + begin + " " * max(1, columns - len(begin) - len(end)) + end
    return [(Segment(clean(plot.title)),), *body, (Segment(axis),), *legend, *note]


def _legend(number: int, series: PlotSeries, formatter: Formatter, width: int, braille: bool) -> Iterator[SegmentRow]:
    sign = "──" if braille else _ASCII[number % len(_ASCII)] * 2
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


def _marks(low: float, high: float, step: float, rows: int) -> dict[int, str]:
    """The texts of marks by their rows."""
    marks: dict[int, str] = {}
    count = round((high - low) / step)
    for number in range(count + 1):
        row = round((rows - 1) * (1 - number / count))
        if number in (0, count) or all(abs(row - other) > 1 for other in marks):
            marks[row] = number_text(round(low + number * step, 10))
    return marks


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


class _Canvas:
    """A grid of dots."""

    def __init__(self, columns: int, rows: int, braille: bool) -> None:
        self._across, self._down = (2, 4) if braille else (1, 1)
        self._braille = braille
        self.size = (columns * self._across, rows * self._down)
        self._cells: list[list[tuple[int, int | None]]] = [[(0, None)] * columns for _ in range(rows)]

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

    def rows(self) -> list[SegmentRow]:
        """The rows; adjacent characters of the same line form one segment."""
        result: list[SegmentRow] = []
        for cells in self._cells:
            segments: list[Segment] = []
            for bits, number in cells:
                owner = number if bits else None
                char = self._char(bits, number)
                if segments and segments[-1].series == owner:
                    segments[-1] = Segment(segments[-1].text + char, owner)
                else:
                    segments.append(Segment(char, owner))
            result.append(tuple(segments))
        return result

    def _char(self, bits: int, number: int | None) -> str:
        if not bits:
            return " "
        return chr(_BRAILLE + bits) if self._braille else _ASCII[(number or 0) % len(_ASCII)]
