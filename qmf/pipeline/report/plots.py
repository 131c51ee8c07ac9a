"""The plots of a report. Pure functions from values to SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from qmf.pipeline.report import svg
from qmf.pipeline.report.model import AlertRow, AvailabilityInterval, Chart, Series
from qmf.pipeline.report.svg import MARKS
from qmf.pipeline.report.time_range import NS, TimeRange
from qmf.schema import Severity

#: Inches.
_WIDE, _HALF = 10.4, 5.1

_LINES = ("c1", "c2", "c3", "c4", "c5")

_DAY_S = 86_400

#: Severities that share a colour, worst first.
GROUPS = (
    ("error and worse", "bad", range(Severity.EMERG, Severity.WARN)),
    ("warn", "warn", range(Severity.WARN, Severity.NOTICE)),
    ("notice", "notice", range(Severity.NOTICE, Severity.INFORM)),
    ("inform, debug", "info", range(Severity.INFORM, Severity.DEBUG + 1)),
)


def severity_mark(severity: int) -> str:
    """The style sheet's variable with the colour of a severity."""
    return next((mark for _, mark, numbers in GROUPS if severity in numbers), "info")


def chart(chart: Chart, time_range: TimeRange, name: str) -> str:
    """The lines of a chart."""
    with _matplotlib() as matplotlib:
        figure, axes = _axes(matplotlib, _HALF, 2.3)
        for series, mark in zip(chart.series, _LINES, strict=False):
            xs, ys = _line(series, time_range)
            axes.plot(xs, ys, color=MARKS[mark], label=abbreviated(_short(series), 34))
            _single_point(axes, xs, ys, mark)
        unit = f"{chart.unit or ''} per second".strip()
        axes.set_title(abbreviated(f"{chart.title}, {unit}", 58))
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(matplotlib.ticker.EngFormatter(sep=""))
        _time_axis(matplotlib, axes, time_range)
        if chart.more:
            axes.plot([], [], linestyle="none", label=f"and {chart.more} more")
        if len(chart.series) > 1 or _short(chart.series[0]):
            axes.legend(
                loc="upper left",
                bbox_to_anchor=(0, -0.13),
                ncols=2,
                handlelength=1.2,
                borderaxespad=0,
                columnspacing=1.2,
            )
        return svg.inline(figure, name, f"{chart.title} over time")


def sparkline(series: Series, time_range: TimeRange, name: str) -> str:
    """A line without axes, for a table."""
    with _matplotlib() as matplotlib:
        figure = matplotlib.figure.Figure(figsize=(1.9, 0.34))
        axes = figure.add_axes((0.01, 0.06, 0.98, 0.88))
        axes.set_axis_off()
        xs, ys = _line(series, time_range)
        axes.plot(xs, ys, color=MARKS["c1"], linewidth=1.2)
        middle = (time_range.first_ns + time_range.last_ns) / 2 / NS / _DAY_S
        axes.axvline(middle, color=MARKS["grid"], linewidth=0.8)
        axes.set_xlim(time_range.first_ns / NS / _DAY_S, time_range.last_ns / NS / _DAY_S)
        return svg.inline(figure, name, f"{series.member} over time")


def availability(intervals: Sequence[AvailabilityInterval], time_range: TimeRange, name: str) -> str:
    """A bar for each agent."""
    agents = sorted({item.agent for item in intervals}, reverse=True)
    hints: dict[str, str] = {}
    with _matplotlib() as matplotlib:
        figure, axes = _axes(matplotlib, _WIDE, 0.55 + 0.3 * len(agents))
        for number, item in enumerate(intervals):
            start, end = (time / NS / _DAY_S for time in (item.start_ns, item.end_ns))
            gid = f"bar{number}"
            bars = axes.barh(
                agents.index(item.agent), end - start, left=start, height=0.62, color=MARKS[item.state],
                linewidth=0, gid=gid,
            )  # fmt: skip
            for bar in bars:
                bar.set_gid(gid)
            if item.state == "up" and item.cause == "restarted":
                axes.plot(
                    [start, start], [agents.index(item.agent) - 0.42, agents.index(item.agent) + 0.42],
                    color=MARKS["ink"], linewidth=1.4,
                )  # fmt: skip
            run = f", run {item.epoch}" if item.epoch is not None else ""
            hints[gid] = (
                f"{item.agent}: {item.state}{run} ({item.cause}), {format_seconds((item.end_ns - item.start_ns) / NS)}"
            )
        axes.set_yticks(range(len(agents)), [abbreviated(agent, 44) for agent in agents])
        axes.tick_params(axis="y", labelcolor=MARKS["ink"], length=0)
        axes.grid(visible=False)
        axes.set_ylim(-0.6, len(agents) - 0.4)
        _time_axis(matplotlib, axes, time_range)
        return svg.inline(figure, name, "Availability of agents over time", hints)


def alerts(found: Sequence[AlertRow], time_range: TimeRange, name: str) -> str:
    """A bar for each alert, in the row of its rule."""
    rules = sorted({item.rule for item in found}, reverse=True)
    hints: dict[str, str] = {}
    with _matplotlib() as matplotlib:
        figure, axes = _axes(matplotlib, _WIDE, 0.55 + 0.3 * len(rules))
        least = (time_range.last_ns - time_range.first_ns) / NS / _DAY_S / 400
        for number, item in enumerate(found):
            cut = time_range.clipped(item.began_ns, item.cleared_ns)
            if cut is None:
                continue
            start, end = (time / NS / _DAY_S for time in cut)
            gid = f"bar{number}"
            for bar in axes.barh(
                rules.index(item.rule), max(end - start, least), left=start, height=0.62,
                color=MARKS[severity_mark(item.severity)], alpha=0.8, linewidth=0,
            ):  # fmt: skip
                bar.set_gid(gid)
            hints[gid] = f"{item.subject}: {item.message}"
        axes.set_yticks(range(len(rules)), [abbreviated(rule, 44) for rule in rules])
        axes.tick_params(axis="y", labelcolor=MARKS["ink"], length=0)
        axes.grid(visible=False)
        axes.set_ylim(-0.6, len(rules) - 0.4)
        _time_axis(matplotlib, axes, time_range)
        return svg.inline(figure, name, "Alerts over time", hints)


def events(counts: Sequence[tuple[float, int, int]], time_range: TimeRange, name: str) -> str:
    """Events of each window, stacked by severity."""
    with _matplotlib() as matplotlib:
        figure, axes = _axes(matplotlib, _WIDE, 1.9)
        width = time_range.step / _DAY_S
        floor: dict[float, int] = {}
        for label, mark, numbers in GROUPS:
            heights: dict[float, int] = {}
            for time, severity, count in counts:
                if severity in numbers:
                    heights[time] = heights.get(time, 0) + count
            if not heights:
                continue
            axes.bar(
                [time / _DAY_S for time in heights], list(heights.values()), width=width, align="edge",
                bottom=[floor.get(time, 0) for time in heights], color=MARKS[mark], label=label, linewidth=0,
            )  # fmt: skip
            for time, height in heights.items():
                floor[time] = floor.get(time, 0) + height
        axes.yaxis.set_major_locator(matplotlib.ticker.MaxNLocator(integer=True, nbins=5))
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=4, handlelength=0.8, borderaxespad=0)
        axes.set_title(f"Events per {time_range.size}")
        _time_axis(matplotlib, axes, time_range)
        return svg.inline(figure, name, "Events over time")


def lifetimes(counts: Sequence[tuple[float, int, int]], time_range: TimeRange, name: str) -> str:
    """Objects created, upwards, and ended, downwards."""
    with _matplotlib() as matplotlib:
        figure, axes = _axes(matplotlib, _WIDE, 1.9)
        times, width = [time / _DAY_S for time, _, _ in counts], time_range.step / _DAY_S
        common: dict[str, Any] = {"width": width, "align": "edge", "linewidth": 0}
        axes.bar(times, [count for _, count, _ in counts], color=MARKS["c2"], label="created", **common)
        axes.bar(times, [-count for _, _, count in counts], color=MARKS["c4"], label="ended", **common)
        axes.axhline(0, color=MARKS["muted"], linewidth=0.6)
        axes.yaxis.set_major_locator(matplotlib.ticker.MaxNLocator(integer=True, nbins=5))
        axes.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, handlelength=0.8, borderaxespad=0)
        axes.set_title(f"Objects created and ended, per {time_range.size}")
        _time_axis(matplotlib, axes, time_range)
        return svg.inline(figure, name, "Objects created and ended over time")


def abbreviated(text: str, limit: int) -> str:
    """A text of limited length: its middle is cut out, since names differ at their ends."""
    text = "".join(sign if sign.isprintable() else " " for sign in text)
    if len(text) <= limit:
        return text
    head = (limit - 1) // 2
    return f"{text[:head]}…{text[-(limit - 1 - head) :]}"


def format_seconds(length: float) -> str:
    """A length in seconds as text, with one unit."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if length >= size:
            return f"{length / size:.1f} {unit}"
    return f"{length:.1f} s" if length >= 0.1 else f"{length * 1000:.0f} ms"


def _short(series: Series) -> str:
    """The name of an object without package and class."""
    return series.object.split(":", 2)[-1]


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


def _single_point(axes: Any, xs: Sequence[float], ys: Sequence[float], mark: str) -> None:
    """Show a single point as a dot."""
    if len(xs) == 1:
        axes.plot(xs, ys, "o", color=MARKS[mark], markersize=3)


@contextmanager
def _matplotlib() -> Iterator[Any]:
    """matplotlib with the report's settings, for a block."""
    matplotlib = svg.import_matplotlib()
    with matplotlib.rc_context({**svg.SETTINGS, "svg.hashsalt": "qmf"}):
        yield matplotlib


def _axes(matplotlib: Any, width: float, height: float) -> tuple[Any, Any]:
    figure = matplotlib.figure.Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def _time_axis(matplotlib: Any, axes: Any, time_range: TimeRange) -> None:
    import datetime

    locator = matplotlib.dates.AutoDateLocator(tz=datetime.UTC, minticks=3, maxticks=7)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(matplotlib.dates.ConciseDateFormatter(locator, tz=datetime.UTC))
    axes.set_xlim(time_range.first_ns / NS / _DAY_S, time_range.last_ns / NS / _DAY_S)
