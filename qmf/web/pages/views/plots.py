"""Plots of values over time: what is drawn together, and the options of ECharts for it; and small ones without axes, as
the points of an SVG polyline."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from qmf.views.names import reference_text
from qmf.views.objects import ObjectView
from qmf.views.rates import growth_rates
from qmf.views.units import number_text, plural_unit
from qmf.web.pages.live.series import SeriesStore
from qmf.web.pages.views.page_columns import PageColumn, columns_of
from qmf.web.pages.views.page_texts import class_title, object_title
from qmf.web.pages.views.page_urls import WINDOWS, PlotsUrl, PlottedValue

#: Points of a line at most.
MOST_POINTS = 500
#: Values of one page at most.
MOST_VALUES = 24

#: Colours that people with any colour vision tell apart (Okabe and Ito), for light and dark pages.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8c6bb1", "#7f7f7f")


@attrs.frozen
class PlotLine:
    """A line of a plot.

    Attributes:
        value: what is drawn.
        label: its object and name.
        unit: in the plural; empty if there is none.
        points: seconds since 1970, and values.
        problem: why there is nothing to draw; empty if there is.
    """

    value: PlottedValue
    label: str
    unit: str
    points: tuple[tuple[float, float], ...]
    problem: str = ""


def plot_lines(
    url: PlotsUrl, series: SeriesStore, find: Callable[[PlottedValue], ObjectView | None], now: float
) -> list[PlotLine]:
    """The lines of an address.

    Args:
        url: the address.
        series: what was recorded.
        find: finds the object of a value; None while it is not known.
        now: seconds since 1970.
    """
    return [_line(value, series, find(value), now, WINDOWS[url.window]) for value in url.values]


def _line(value: PlottedValue, series: SeriesStore, obj: ObjectView | None, now: float, window: float) -> PlotLine:
    column = _column(obj, value.name)
    index = reference_text(value.object_id) if obj is None else f"{class_title(obj)} {object_title(obj)}"
    unit = plural_unit(column.field.unit) if column and column.field.unit else ""
    if value.rate:
        unit = f"{unit}/s"
    label = f"{index} {value.name}{'/s' if value.rate else ''}"
    recorded = series.get((value.object_id, value.name))
    start = now - window
    points = list(recorded.points(start)) if recorded is not None else []
    if obj is None:
        return PlotLine(value, label, unit, tuple(points), "the object is not there")
    if column is None or not column.is_number:
        return PlotLine(value, label, unit, (), "not a number of this class")
    if value.rate:
        points = list(growth_rates(points))
    if points:
        points = [(max(at, start), number) for at, number in points]
        points.append((now, 0.0 if value.rate and now - points[-1][0] > 30 else points[-1][1]))
    return PlotLine(value, label, unit, tuple(thin_out(points, MOST_POINTS)))


def _column(obj: ObjectView | None, name: str) -> PageColumn | None:
    return columns_of([obj.schema]).get(name) if obj is not None else None


def value_of_line(line: PlotLine) -> tuple[str, str, str]:
    """The newest, the smallest and the greatest value of a line, as texts with their unit."""
    values = [value for _, value in line.points]
    if not values:
        return "no value yet", "", ""
    now, low, high = (
        f"{number_text(round(value, 3))} {line.unit}".strip() for value in (values[-1], min(values), max(values))
    )
    return now, low, high


def groups(lines: Sequence[PlotLine], *, together: bool) -> list[list[PlotLine]]:
    """Which lines share a plot: all, or those with the same unit."""
    if together:
        return [list(lines)] if lines else []
    found: dict[str, list[PlotLine]] = {}
    for line in lines:
        found.setdefault(line.unit, []).append(line)
    return list(found.values())


def echart_options(lines: Sequence[PlotLine], now: float, window: float, *, dark: bool) -> dict[str, object]:
    """The options of an ECharts line chart; with two units, the second has its axis on the right.

    Args:
        lines: what is drawn together.
        now: seconds since 1970, the right edge.
        window: seconds that it shows.
        dark: for a dark page.
    """
    ink, grid = ("#e8eaed", "#3c4043") if dark else ("#202124", "#dadce0")
    units = list(dict.fromkeys(line.unit for line in lines))
    axis = {"axisLabel": {"color": ink}, "splitLine": {"lineStyle": {"color": grid}}}
    return {
        "animation": False,
        "color": list(COLOURS),
        "legend": {"type": "scroll", "textStyle": {"color": ink}, "top": 0},
        "tooltip": {"trigger": "axis", "confine": True},
        "grid": {"left": 8, "right": 16, "top": 56, "bottom": 8, "containLabel": True},
        "xAxis": {
            "type": "time",
            "min": round((now - window) * 1000),
            "max": round(now * 1000),
            "axisLabel": {"color": ink, "hideOverlap": True},
        },
        "yAxis": [
            {"type": "value", "name": unit, "nameTextStyle": {"color": ink, "align": "left"}, "scale": True, **axis}
            for unit in units[:2]
        ],
        "series": [
            {
                "type": "line",
                "name": line.label,
                "yAxisIndex": min(units.index(line.unit), 1),
                "showSymbol": False,
                "step": False if line.value.rate else "end",
                "data": [[round(at * 1000), value] for at, value in line.points],
            }
            for line in lines
        ],
    }


WIDTH, HEIGHT = 120, 28
#: Room for the width of the line at the upper and the lower edge.
_MARGIN = 2
#: Points of a line at most: more can't be told apart at this width.
SPARK_POINTS = 120


@attrs.frozen
class SparkLine:
    """A small plot.

    Attributes:
        points: for the attribute of a polyline in a view box of `WIDTH` x `HEIGHT`.
        low, high: the smallest and the greatest value that it shows.
    """

    points: str
    low: float
    high: float


def spark_line(points: Sequence[tuple[float, float]], now: float, window: float) -> SparkLine | None:
    """The plot of the last `window` seconds; the last value holds until `now`. None without any point."""
    start = now - window
    if not points:
        return None
    shown = thin_out([(max(at, start), value) for at, value in points] + [(now, points[-1][1])], SPARK_POINTS)
    low = min(value for _, value in shown)
    high = max(value for _, value in shown)
    height = HEIGHT - 2 * _MARGIN
    texts = []
    for at, value in shown:
        x = WIDTH * min(1.0, (at - start) / window)
        y = HEIGHT / 2 if high == low else _MARGIN + height * (1 - (value - low) / (high - low))
        texts.append(f"{x:.1f},{y:.1f}")
    return SparkLine(" ".join(texts), low, high)


def thin_out(points: Sequence[tuple[float, float]], most: int) -> list[tuple[float, float]]:
    """At most about `most` points that look the same: of each stretch of time the smallest and the greatest value."""
    if len(points) <= most:
        return list(points)
    groups = max(1, most // 2)
    found: list[tuple[float, float]] = []
    for at in range(groups):
        part = points[at * len(points) // groups : (at + 1) * len(points) // groups]
        if part:
            ends = {min(part, key=lambda item: item[1]), max(part, key=lambda item: item[1])}
            found += sorted(ends)
    if found[-1] != points[-1]:
        found.append(points[-1])
    return found
