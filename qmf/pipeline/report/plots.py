"""The plots of a report. Pure functions from values to inline SVG: no script, the page's colours, unique ids.

All plots have one width, and their time axes lie below each other. Titles, legends and values are in the page beside
them, so nothing lies over the axes. Lines and bars differ by dashes and hatches as well as by colour.

Colours in figures are placeholders, which become variables of the page's style sheet: one drawing serves the light and
the dark mode and paper. Texts stay texts; matplotlib escapes them, and does not interpret them as formulas.
"""

from __future__ import annotations

import datetime
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any
from xml.sax.saxutils import escape

import attrs

from qmf.pipeline.errors import import_extra
from qmf.pipeline.report.model import Anomaly, AvailabilityInterval, Chart, Report, ReportedAlert, Series
from qmf.pipeline.report.texts import GROUPS, abbreviate, scale_texts, severity_mark, value_text
from qmf.pipeline.report.time_range import NS, TimeRange
from qmf.views.events import severity_name
from qmf.views.times import brief_duration
from qmf.views.units import PERCENT

_VARIABLES = (
    "ink", "paper", "muted", "grid", "c1", "c2", "c3", "c4", "c5", "up", "down", "unknown", "bad", "warn", "notice",
    "info",
)  # fmt: skip

#: The variables of the style sheet, and the placeholder colour of each.
MARKS: Mapping[str, str] = MappingProxyType({name: f"#fe{number:02x}01" for number, name in enumerate(_VARIABLES)})

#: Settings of all figures.
SETTINGS: Mapping[str, Any] = MappingProxyType(
    {
        "svg.fonttype": "none",
        "svg.hashsalt": "qmf",
        "text.parse_math": False,
        "font.size": 9,
        "text.color": MARKS["ink"],
        "axes.edgecolor": MARKS["grid"],
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "axes.axisbelow": True,
        "grid.color": MARKS["grid"],
        "grid.linewidth": 0.6,
        "xtick.color": MARKS["grid"],
        "ytick.color": MARKS["grid"],
        "xtick.labelcolor": MARKS["muted"],
        "ytick.labelcolor": MARKS["muted"],
        "xtick.labelsize": 8,
        "ytick.labelsize": 8,
        "lines.linewidth": 1.5,
        "lines.solid_joinstyle": "round",
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
    }
)

#: Inches: width of all plots, and what is left of the axes, right of them, and below them.
_WIDE, _LEFT, _RIGHT, _BELOW, _ABOVE = 10.4, 0.85, 0.15, 0.42, 0.1

#: Inches of a row of bars with its name above it.
_ROW = 0.42

#: Characters of the name of a row at most.
_ROW_NAME = 110

#: The lines of a chart: colour, and lengths of dashes and blanks in points.
LINES: tuple[tuple[str, tuple[float, ...]], ...] = (
    ("c1", ()),
    ("c2", (6, 2)),
    ("c3", (2, 1.5)),
    ("c4", (6, 2, 1.5, 2)),
    ("c5", (10, 3)),
)

#: Hatches of the states of an agent.
_STATE_HATCH = {"up": "", "down": "xx", "unknown": "//"}

_DAY_S = 86_400


class Plots:
    """Draws the plots of one report."""

    def __init__(self, report: Report) -> None:
        self._range = report.time_range
        self._unrecorded = report.unrecorded
        self._marks: list[tuple[float, str]] = []

    def chart(self, chart: Chart, name: str) -> str:
        with _matplotlib() as matplotlib:
            figure, axes = _axes(matplotlib, 1.75)
            for series, (mark, dashes) in zip(chart.series, LINES, strict=False):
                xs, ys = _line(series, self._range)
                style: dict[str, Any] = {"dashes": dashes} if dashes else {}
                axes.plot(xs, ys, color=MARKS[mark], **style)
                _lone_points(axes, xs, ys, mark)
            values = [value for series in chart.series for _, value in series.points]
            lowest, highest = min(values, default=0.0), max(values, default=0.0)
            _value_axis(matplotlib, axes, (lowest, highest), chart.unit, is_rate=chart.is_rate)
            self._time_axis(matplotlib, axes)
            low, high = (value_text(value, chart.unit, is_rate=chart.is_rate) for value in (lowest, highest))
            lines = f"{len(chart.series)} line{'s' * (len(chart.series) > 1)}"
            return inline(figure, name, f"Plot of {chart.title} over time: {lines}, values from {low} to {high}")

    def sparkline(self, series: Series, name: str, anomaly: Anomaly | None = None) -> str:
        """A line without axes, for a table; with the time of an anomaly, or else the middle, marked."""
        with _matplotlib() as matplotlib:
            figure = matplotlib.figure.Figure(figsize=(1.9, 0.34))
            axes = figure.add_axes((0.01, 0.06, 0.98, 0.88))
            axes.set_axis_off()
            xs, ys = _line(series, self._range)
            if anomaly is None:
                axes.axvline((self._first + self._last) / 2, color=MARKS["grid"], linewidth=0.8)
            else:
                least = (self._last - self._first) / 60
                start = anomaly.start / _DAY_S
                axes.axvspan(
                    start, max(anomaly.end / _DAY_S, start + least), color=MARKS["warn"], alpha=0.35, linewidth=0
                )
            axes.plot(xs, ys, color=MARKS["c1"], linewidth=1.2)
            _lone_points(axes, xs, ys, "c1")
            axes.set_xlim(self._first, self._last)
            return inline(figure, name, f"{series.member} over time")

    def availability(self, intervals: Sequence[AvailabilityInterval], name: str) -> str:
        """A bar for each agent."""
        agents = sorted({item.agent for item in intervals})
        bars = [
            _Bar(
                agents.index(item.agent),
                item.start_ns,
                item.end_ns,
                item.state,
                _STATE_HATCH[item.state],
                f"{item.agent}: {item.state}{f', run {item.epoch}' if item.epoch is not None else ''} ({item.cause}), "
                f"{brief_duration(item.end_ns - item.start_ns)}",
            )
            for item in intervals
        ]
        restarts = [
            (agents.index(item.agent), item.start_ns)
            for item in intervals
            if item.state == "up" and item.cause == "restarted"
        ]
        return self._bars(
            agents, bars, name, "Availability of agents over time; the table below has the same", restarts
        )

    def alerts(self, found: Sequence[ReportedAlert], name: str) -> str:
        """A bar for each alert, in the row of its rule."""
        rules = sorted({item.rule for item in found})
        hatches = {mark: hatch for _, mark, hatch, _ in GROUPS}
        bars = []
        for item in found:
            cut = self._range.clip(item.began_ns, item.cleared_ns)
            if cut is not None:
                mark = severity_mark(item.severity)
                hint = f"{item.subject}: {item.message} ({severity_name(item.severity)})"
                bars.append(_Bar(rules.index(item.rule), *cut, mark, hatches[mark], hint))
        return self._bars(rules, bars, name, "Alerts over time, by rule; the table below has the same")

    def _bars(
        self, rows: Sequence[str], bars: Sequence[_Bar], name: str, label: str, ticks: Sequence[tuple[int, int]] = ()
    ) -> str:
        hints: dict[str, str] = {}
        least = (self._last - self._first) / 400
        with _matplotlib() as matplotlib:
            figure, axes = _axes(matplotlib, _ROW * len(rows))
            for number, bar in enumerate(bars):
                start, end = bar.start_ns / NS / _DAY_S, bar.end_ns / NS / _DAY_S
                gid = f"bar{number}"
                for patch in axes.barh(
                    bar.row + 0.22, max(end - start, least), left=start, height=0.36, color=MARKS[bar.mark],
                    edgecolor=MARKS["paper"], hatch=bar.hatch, linewidth=0,
                ):  # fmt: skip
                    patch.set_gid(gid)
                hints[gid] = bar.hint
            for row, time_ns in ticks:
                at = time_ns / NS / _DAY_S
                axes.plot([at, at], [row, row + 0.44], color=MARKS["ink"], linewidth=1.4)
            for row, text in enumerate(rows):
                axes.text(
                    self._first, row - 0.06, abbreviate(text, _ROW_NAME), color=MARKS["ink"], fontsize=8.5, va="bottom"
                )
            axes.set_yticks([])
            axes.spines["left"].set_visible(False)
            axes.grid(visible=False)
            axes.set_ylim(len(rows) - 0.45, -0.5)
            self._time_axis(matplotlib, axes, mark_gaps=False)
            return inline(figure, name, label, hints)

    def events(self, counts: Sequence[tuple[float, int, int]], name: str) -> str:
        """Events of each window, stacked by severity."""
        with _matplotlib() as matplotlib:
            figure, axes = _axes(matplotlib, 1.4)
            floor: dict[float, int] = {}
            for _, mark, hatch, numbers in GROUPS:
                heights: dict[float, int] = {}
                for time, severity, count in counts:
                    if severity in numbers:
                        heights[time] = heights.get(time, 0) + count
                if not heights:
                    continue
                bottom = [floor.get(time, 0) for time in heights]
                self._columns(axes, heights, mark, hatch, bottom)
                for time, height in heights.items():
                    floor[time] = floor.get(time, 0) + height
            _count_axis(matplotlib, axes)
            self._time_axis(matplotlib, axes)
            return inline(figure, name, f"Events over time, {sum(count for *_, count in counts):,} in all")

    def lifetimes(self, counts: Sequence[tuple[float, int, int]], name: str) -> str:
        """Objects created, upwards, and ended, downwards."""
        with _matplotlib() as matplotlib:
            figure, axes = _axes(matplotlib, 1.4)
            self._columns(axes, {time: count for time, count, _ in counts}, "c2", "")
            self._columns(axes, {time: -count for time, _, count in counts}, "c4", "//")
            axes.axhline(0, color=MARKS["muted"], linewidth=0.6)
            _count_axis(matplotlib, axes)
            self._time_axis(matplotlib, axes)
            created, ended = (sum(row[column] for row in counts) for column in (1, 2))
            return inline(figure, name, f"Objects over time: {created:,} created, {ended:,} ended")

    def _columns(
        self, axes: Any, heights: Mapping[float, int], mark: str, hatch: str, bottom: Sequence[int] | None = None
    ) -> None:
        axes.bar(
            [time / _DAY_S for time in heights], list(heights.values()), width=self._range.step / _DAY_S, align="edge",
            bottom=bottom, color=MARKS[mark], edgecolor=MARKS["paper"], hatch=hatch, linewidth=0,
        )  # fmt: skip

    @property
    def _first(self) -> float:
        return self._range.first_ns / NS / _DAY_S

    @property
    def _last(self) -> float:
        return self._range.last_ns / NS / _DAY_S

    def _time_axis(self, matplotlib: Any, axes: Any, *, mark_gaps: bool = True) -> None:
        if mark_gaps:
            for first_ns, last_ns in self._unrecorded:
                axes.axvspan(
                    first_ns / NS / _DAY_S, last_ns / NS / _DAY_S, facecolor="none", edgecolor=MARKS["unknown"],
                    hatch="//", linewidth=0, zorder=0,
                )  # fmt: skip
        axes.set_xlim(self._first, self._last)
        if not self._marks:
            self._marks = _time_marks(matplotlib, self._first, self._last)
        axes.set_xticks([at for at, _ in self._marks], [text for _, text in self._marks])


def _time_marks(matplotlib: Any, first: float, last: float) -> list[tuple[float, str]]:
    """The marks of the time axis, in days since 1970: times, with the date where it changes."""
    locator = matplotlib.dates.AutoDateLocator(tz=datetime.UTC, minticks=4, maxticks=10)
    begin, end = (matplotlib.dates.num2date(day) for day in (first, last))
    marks = [float(mark) for mark in locator.tick_values(begin, end) if first <= mark <= last]
    found: list[tuple[float, str]] = []
    date = ""
    for mark in marks:
        time = matplotlib.dates.num2date(mark)
        day = f"{time:%Y-%m-%d}"
        clock = f"{time:%H:%M:%S}" if time.second else f"{time:%H:%M}"
        whole = all(float(other).is_integer() for other in marks)
        found.append((mark, day if whole else clock if day == date else f"{clock}\n{day}"))
        date = day
    return found


@attrs.frozen
class _Bar:
    row: int
    start_ns: int
    end_ns: int
    mark: str
    hatch: str
    hint: str


def _line(series: Series, time_range: TimeRange) -> tuple[list[float], list[float]]:
    """The points of a line at the middle of their windows, with a break where windows are missing."""
    length = time_range.step
    xs: list[float] = []
    ys: list[float] = []
    before: float | None = None
    for time, value in series.points:
        if before is not None and time - before > length * 1.5:
            xs.append((before + length) / _DAY_S)
            ys.append(float("nan"))
        xs.append((time + length / 2) / _DAY_S)
        ys.append(value)
        before = time
    return xs, ys


def _lone_points(axes: Any, xs: Sequence[float], ys: Sequence[float], mark: str) -> None:
    """Show points without neighbours as dots: lines need two."""
    known = [value == value for value in ys]
    lone = [
        at
        for at, is_known in enumerate(known)
        if is_known and not (at > 0 and known[at - 1]) and not (at + 1 < len(known) and known[at + 1])
    ]
    if lone:
        axes.plot([xs[at] for at in lone], [ys[at] for at in lone], "o", color=MARKS[mark], markersize=2.5)


@contextmanager
def _matplotlib() -> Iterator[Any]:
    matplotlib = import_matplotlib()
    with matplotlib.rc_context(dict(SETTINGS)):
        yield matplotlib


def _axes(matplotlib: Any, height: float) -> tuple[Any, Any]:
    """A figure of the common width, with axes of a height in inches."""
    whole = height + _BELOW + _ABOVE
    figure = matplotlib.figure.Figure(figsize=(_WIDE, whole))
    place = (_LEFT / _WIDE, _BELOW / whole, (_WIDE - _LEFT - _RIGHT) / _WIDE, height / whole)
    return figure, figure.add_axes(place)


def _value_axis(matplotlib: Any, axes: Any, limits: tuple[float, float], unit: str | None, *, is_rate: bool) -> None:
    lowest, highest = limits
    if unit in PERCENT and 50 <= highest <= 100:
        highest = 100.0
    if lowest >= 0 and (is_rate or lowest < 0.7 * highest):
        # A rate is a part of something: its axis begins at 0.
        lowest = 0.0
    if highest <= lowest:
        margin = abs(highest) * 0.1 or 1.0
        lowest, highest = (0.0 if lowest == 0 else lowest - margin), highest + margin
    room = (highest - lowest) * 0.05
    axes.set_ylim(lowest if lowest == 0 else lowest - room, highest + (0 if highest == 100 else room))
    bottom, top = axes.get_ylim()
    marks = matplotlib.ticker.MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]).tick_values(bottom, top)
    shown = [float(mark) for mark in marks if bottom <= mark <= top]
    axes.set_yticks(shown, scale_texts(shown, unit, is_rate=is_rate))


def _count_axis(matplotlib: Any, axes: Any) -> None:
    axes.yaxis.set_major_locator(matplotlib.ticker.MaxNLocator(integer=True, nbins=4))
    axes.yaxis.set_major_formatter(lambda value, _: f"{abs(value):,.0f}")


def import_matplotlib() -> Any:
    """The module `matplotlib`; `MissingExtraError` if it is not installed."""
    for module in ("dates", "figure", "ticker"):
        import_extra(f"matplotlib.{module}")
    return import_extra("matplotlib")


def inline(figure: Any, name: str, label: str, hints: Mapping[str, str] | None = None) -> str:
    """A figure, made with `SETTINGS`, as an `svg` element; `hints` are tooltips by the gid of a part of it.

    `name` is unique in the page, a letter before letters and digits; `label` is for screen readers.
    """
    out = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(out, format="svg", metadata=nothing)
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
    for gid, hint in (hints or {}).items():
        text = text.replace(f'<g id="{gid}">', f'<g id="{gid}"><title>{escape(hint)}</title>')
    for variable, mark in MARKS.items():
        text = text.replace(mark, f"var(--{variable})")
    # All figures use the same ids.
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    text = re.sub(r'\bxlink:href="#', f'href="#{name}-', text)
    head, _, rest = text.partition(">")
    head = re.sub(r'\s(width|height|xmlns:xlink|version)="[^"]*"', "", head)
    return f'{head} role="img" aria-label="{escape(label, {chr(34): "&quot;"})}" class="{name[0]}-plot">{rest}'
