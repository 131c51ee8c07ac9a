"""The drawings of a report. Pure: values in, SVG out; the same values give the same text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qmf.pipeline.report import svg
from qmf.pipeline.report.model import AlertLine, Chart, Presence, Series
from qmf.pipeline.report.svg import MARKS
from qmf.pipeline.report.time_range import NS, Span
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
    """The variable with a severity's colour."""
    return next((mark for _, mark, numbers in GROUPS if severity in numbers), "info")


def chart(chart: Chart, span: Span, name: str) -> str:
    """Lines of one member."""
    with _style() as matplotlib:
        figure, axes = _axes(matplotlib, _HALF, 2.3)
        for series, mark in zip(chart.series, _LINES, strict=False):
            xs, ys = _line(series, span)
            axes.plot(xs, ys, color=MARKS[mark], label=shortened(_short(series), 34))
            _ends(axes, xs, ys, mark)
        unit = f"{chart.unit or ''} per second".strip()
        axes.set_title(shortened(f"{chart.title}, {unit}", 58))
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(matplotlib.ticker.EngFormatter(sep=""))
        _time_axis(matplotlib, axes, span)
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


def sparkline(series: Series, span: Span, name: str) -> str:
    """A line without axes, for a table."""
    with _style() as matplotlib:
        figure = matplotlib.figure.Figure(figsize=(1.9, 0.34))
        axes = figure.add_axes((0.01, 0.06, 0.98, 0.88))
        axes.set_axis_off()
        xs, ys = _line(series, span)
        axes.plot(xs, ys, color=MARKS["c1"], linewidth=1.2)
        middle = (span.first_ns + span.last_ns) / 2 / NS / _DAY_S
        axes.axvline(middle, color=MARKS["grid"], linewidth=0.8)
        axes.set_xlim(span.first_ns / NS / _DAY_S, span.last_ns / NS / _DAY_S)
        return svg.inline(figure, name, f"{series.member} over time")


def availability(intervals: Sequence[Presence], span: Span, name: str) -> str:
    """A bar for each agent."""
    agents = sorted({item.agent for item in intervals}, reverse=True)
    hints: dict[str, str] = {}
    with _style() as matplotlib:
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
                f"{item.agent}: {item.state}{run} ({item.cause}), {lasting((item.end_ns - item.start_ns) / NS)}"
            )
        axes.set_yticks(range(len(agents)), [shortened(agent, 44) for agent in agents])
        axes.tick_params(axis="y", labelcolor=MARKS["ink"], length=0)
        axes.grid(visible=False)
        axes.set_ylim(-0.6, len(agents) - 0.4)
        _time_axis(matplotlib, axes, span)
        return svg.inline(figure, name, "Availability of agents over time", hints)


def alerts(found: Sequence[AlertLine], span: Span, name: str) -> str:
    """A bar for each alert, in the row of its rule."""
    rules = sorted({item.rule for item in found}, reverse=True)
    hints: dict[str, str] = {}
    with _style() as matplotlib:
        figure, axes = _axes(matplotlib, _WIDE, 0.55 + 0.3 * len(rules))
        least = (span.last_ns - span.first_ns) / NS / _DAY_S / 400
        for number, item in enumerate(found):
            cut = span.clipped(item.began_ns, item.cleared_ns)
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
        axes.set_yticks(range(len(rules)), [shortened(rule, 44) for rule in rules])
        axes.tick_params(axis="y", labelcolor=MARKS["ink"], length=0)
        axes.grid(visible=False)
        axes.set_ylim(-0.6, len(rules) - 0.4)
        _time_axis(matplotlib, axes, span)
        return svg.inline(figure, name, "Alerts over time", hints)


def events(counts: Sequence[tuple[float, int, int]], span: Span, name: str) -> str:
    """Events of each window, stacked by severity."""
    with _style() as matplotlib:
        figure, axes = _axes(matplotlib, _WIDE, 1.9)
        width = span.step / _DAY_S
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
        axes.set_title(f"Events per {span.size}")
        _time_axis(matplotlib, axes, span)
        return svg.inline(figure, name, "Events over time")


def births(counts: Sequence[tuple[float, int, int]], span: Span, name: str) -> str:
    """Objects that came, upwards, and that went, downwards."""
    with _style() as matplotlib:
        figure, axes = _axes(matplotlib, _WIDE, 1.9)
        times, width = [time / _DAY_S for time, _, _ in counts], span.step / _DAY_S
        common: dict[str, Any] = {"width": width, "align": "edge", "linewidth": 0}
        axes.bar(times, [count for _, count, _ in counts], color=MARKS["c2"], label="created", **common)
        axes.bar(times, [-count for _, _, count in counts], color=MARKS["c4"], label="ended", **common)
        axes.axhline(0, color=MARKS["muted"], linewidth=0.6)
        axes.yaxis.set_major_locator(matplotlib.ticker.MaxNLocator(integer=True, nbins=5))
        axes.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, handlelength=0.8, borderaxespad=0)
        axes.set_title(f"Objects that came and went, per {span.size}")
        _time_axis(matplotlib, axes, span)
        return svg.inline(figure, name, "Objects created and ended over time")


def shortened(text: str, most: int) -> str:
    """A text that fits: its middle goes first, since names differ at their ends."""
    text = "".join(sign if sign.isprintable() else " " for sign in text)
    if len(text) <= most:
        return text
    head = (most - 1) // 2
    return f"{text[:head]}…{text[-(most - 1 - head) :]}"


def lasting(length: float) -> str:
    """Seconds in words."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if length >= size:
            return f"{length / size:.1f} {unit}"
    return f"{length:.1f} s" if length >= 0.1 else f"{length * 1000:.0f} ms"


def _short(series: Series) -> str:
    """The object's own part of its name, which begins with package and class."""
    return series.object.split(":", 2)[-1]


def _line(series: Series, span: Span) -> tuple[list[float], list[float]]:
    """Points of a line at the middle of their windows, with a break where windows are missing."""
    length = span.step
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


def _ends(axes: Any, xs: Sequence[float], ys: Sequence[float], mark: str) -> None:
    """A single point is no line: show it as a dot."""
    if len(xs) == 1:
        axes.plot(xs, ys, "o", color=MARKS[mark], markersize=3)


class _style:
    """matplotlib with our settings, for the time of a block."""

    def __enter__(self) -> Any:
        matplotlib = svg.library()
        self._context = matplotlib.rc_context({**svg.SETTINGS, "svg.hashsalt": "qmf"})
        self._context.__enter__()
        return matplotlib

    def __exit__(self, *given: Any) -> None:
        self._context.__exit__(*given)


def _axes(matplotlib: Any, width: float, height: float) -> tuple[Any, Any]:
    figure = matplotlib.figure.Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def _time_axis(matplotlib: Any, axes: Any, span: Span) -> None:
    import datetime

    locator = matplotlib.dates.AutoDateLocator(tz=datetime.UTC, minticks=3, maxticks=7)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(matplotlib.dates.ConciseDateFormatter(locator, tz=datetime.UTC))
    axes.set_xlim(span.first_ns / NS / _DAY_S, span.last_ns / NS / _DAY_S)
