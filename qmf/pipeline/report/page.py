"""The page of a report: a template, with every value escaped and every number formatted.

The page loads and runs nothing: plots are inline SVG, and its content security policy forbids all else.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import attrs

from qmf.pipeline.errors import import_extra
from qmf.pipeline.report import texts
from qmf.pipeline.report.model import UNITS, Report, Series
from qmf.pipeline.report.plots import LINES, Plots
from qmf.pipeline.report.time_range import time_text
from qmf.views.events import severity_name


def html(report: Report) -> str:
    """The page; `MissingExtraError` if Jinja2 or matplotlib is not installed."""
    jinja2 = import_extra("jinja2")
    markup = import_extra("markupsafe").Markup
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        time=time_text,
        moment=texts.moment_text,
        duration=texts.seconds_text,
        duration_or_dash=lambda length: "–" if not length else texts.seconds_text(length),
        percent=texts.percent_text,
        value=lambda number, series: texts.value_text(number, series.unit, is_rate=series.is_rate),
        signed=texts.signed_text,
        whole=lambda count: f"{count:,}",
        severity=severity_name,
        mark=texts.severity_mark,
        unit=lambda item: texts.unit_text(item.unit, is_rate=item.is_rate),
        cut=texts.cut_text,
        object_name=texts.object_name,
        compared=_compared_text,
        difference=_difference_text,
    )
    folder = files("qmf.pipeline.report")
    template = environment.from_string((folder / "page.html.j2").read_text(encoding="utf-8"))
    drawings = {
        # matplotlib has escaped their texts.
        name: [markup(one) for one in drawn] if isinstance(drawn, list) else markup(drawn)
        for name, drawn in _drawings(report).items()
    }
    page = template.render(
        report=report,
        tiles=_tiles(report),
        drawings=drawings,
        style=markup((folder / "page.css").read_text(encoding="utf-8").strip()),
        legends=[[_LegendRow.of(series, at) for at, series in enumerate(chart.series)] for chart in report.charts],
        groups=_event_groups(report),
    )
    return f"{page}\n"


@attrs.frozen
class _LegendRow:
    """A line of a chart in its legend; `mark` and `dashes` are those of the drawn line."""

    series: Series
    mark: str
    dashes: str
    low: float
    mean: float
    high: float
    last: float

    @classmethod
    def of(cls, series: Series, number: int) -> _LegendRow:
        mark, dashes = LINES[number % len(LINES)]
        values = [value for _, value in series.points] or [0.0]
        return cls(
            series,
            mark,
            " ".join(f"{length:g}" for length in dashes),
            min(values),
            sum(values) / len(values),
            max(values),
            values[-1],
        )


def _drawings(report: Report) -> dict[str, Any]:
    plots = Plots(report)
    return {
        "alerts": plots.alerts(report.alerts, "alerts") if report.alerts else "",
        "availability": plots.availability(report.presence, "presence") if report.presence else "",
        "anomalies": [
            plots.sparkline(item.series, f"anomaly{n}", item) for n, item in enumerate(report.anomalies or ())
        ],
        "movers": [plots.sparkline(mover.series, f"mover{n}") for n, mover in enumerate(report.movers)],
        "charts": [plots.chart(chart, f"values{n}") for n, chart in enumerate(report.charts)],
        "lifetimes": plots.lifetimes(report.lifetimes, "births") if report.lifetimes else "",
        "events": plots.events(report.events, "events") if report.events else "",
    }


def _event_groups(report: Report) -> list[tuple[str, str, int]]:
    found = []
    for name, mark, _, numbers in texts.GROUPS:
        count = sum(count for _, severity, count in report.events if severity in numbers)
        if count:
            found.append((name, mark, count))
    return found


def _tiles(report: Report) -> list[tuple[str, str, str]]:
    numbers, opened = report.numbers, sum(item.cleared_ns is None for item in report.alerts or ())
    up = numbers["availability"]
    marks = {"availability": "" if up is None else "up" if up > 99.9 else "bad", "alerts": "bad" if opened else ""}
    labels = {"alerts": f"alerts, {opened} open"} if report.alerts else {}
    tiles = [
        (_compared_text(value, UNITS.get(name, "")), labels.get(name, name), marks.get(name, ""))
        for name, value in numbers.items()
        if value is not None or name in UNITS
    ]
    if report.anomalies is not None:
        tiles.append((f"{len(report.anomalies) + report.anomalies_left:,}", "anomalies", ""))
    return tiles


def _compared_text(value: float | None, unit: str) -> str:
    if value is None:
        return "unknown"
    return texts.percent_text(value / 100) if unit == "%" else f"{value:,.0f}"


def _difference_text(before: float | None, after: float | None, unit: str) -> str:
    if before is None or after is None:
        return "–"
    return f"{after - before:+.3g} points" if unit == "%" else f"{after - before:+,.0f}"
