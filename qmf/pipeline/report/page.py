"""The page of a report: a template, with every value escaped and every number formatted.

The page loads and runs nothing: plots are inline SVG, and its content security policy forbids all else.
"""

from __future__ import annotations

import datetime
from importlib.resources import files
from typing import Any

from qmf.pipeline.errors import MissingExtraError
from qmf.pipeline.report import plots
from qmf.pipeline.report.model import Report, Series
from qmf.pipeline.report.time_range import NS
from qmf.schema import Severity

#: Characters of a property's value at most.
_VALUE_LENGTH = 120

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def html(report: Report) -> str:
    """The page.

    Raises:
        MissingExtraError: Jinja2 or matplotlib is not installed.
    """
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ModuleNotFoundError as error:
        raise MissingExtraError("jinja2") from error

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(
        time=_time,
        duration=plots.format_seconds,
        duration_or_dash=lambda length: "–" if not length else plots.format_seconds(length),
        percent=_percent,
        number=number,
        signed=lambda part: f"{part * 100:+.1f} %",
        whole=lambda count: f"{count:,}",
        severity=_severity,
        mark=plots.severity_mark,
        unit=_unit,
        cut=lambda text: "–" if text is None else text if len(text) <= _VALUE_LENGTH else f"{text[:_VALUE_LENGTH]}…",
    )
    folder = files("qmf.pipeline.report")
    template = environment.from_string((folder / "page.html.j2").read_text(encoding="utf-8"))
    drawings = {
        # matplotlib has escaped their texts.
        name: [Markup(one) for one in drawn] if isinstance(drawn, list) else Markup(drawn)
        for name, drawn in _drawings(report).items()
    }
    style = Markup((folder / "page.css").read_text(encoding="utf-8").strip())
    return template.render(report=report, tiles=_tiles(report), drawings=drawings, style=style) + "\n"


def number(value: float) -> str:
    """A number with three digits, and a unit prefix where it is large."""
    for size, prefix in _PREFIXES:
        if abs(value) >= size:
            return f"{value / size:.3g}{prefix}"
    return f"{value:.3g}"


def _drawings(report: Report) -> dict[str, Any]:
    time_range = report.time_range
    return {
        "alerts": plots.alerts(report.alerts, time_range, "alerts") if report.alerts else "",
        "availability": plots.availability(report.presence, time_range, "presence") if report.presence else "",
        "movers": [plots.sparkline(mover.series, time_range, f"mover{n}") for n, mover in enumerate(report.movers)],
        "charts": [plots.chart(chart, time_range, f"rate{n}") for n, chart in enumerate(report.charts)],
        "lifetimes": plots.lifetimes(report.lifetimes, time_range, "births") if report.lifetimes else "",
        "events": plots.events(report.events, time_range, "events") if report.events else "",
    }


def _tiles(report: Report) -> list[tuple[str, str, str]]:
    """Value, label and colour of the numbers at the top."""
    known = sum(line.up + line.down for line in report.agents)
    up = sum(line.up for line in report.agents) / known if known else None
    still_open = [item for item in report.alerts or () if item.cleared_ns is None]
    tiles = [
        (f"{len(report.agents):,}", "agents", ""),
        (_percent(up), "availability", "" if up is None else "up" if up > 0.999 else "bad"),
        (f"{sum(line.restarts for line in report.agents):,}", "restarts", ""),
        (f"{report.objects:,}", "objects", ""),
        (f"{report.samples:,}", "samples", ""),
        (f"{sum(count for _, _, count in report.events):,}", "events", ""),
    ]
    if report.alerts is not None:
        label = f"alerts, {len(still_open)} open" if report.alerts else "alerts"
        tiles.append((f"{len(report.alerts):,}", label, "bad" if still_open else ""))
    return tiles


def _time(time_ns: int) -> str:
    """A time in UTC, to the second."""
    try:
        time = datetime.datetime.fromtimestamp(time_ns // NS, datetime.UTC)
    except (OverflowError, ValueError, OSError):
        return f"{time_ns} ns"
    return time.strftime("%Y-%m-%d %H:%M:%S")


def _percent(part: float | None) -> str:
    if part is None:
        return "unknown"
    # Never 100 % for an agent that was down.
    text = f"{part * 100:.3f}" if part > 0.99 else f"{part * 100:.1f}"
    return f"{'99.999' if text == '100.000' and part < 1 else text.removesuffix('.000')} %"


def _severity(severity: int) -> str:
    try:
        return Severity(severity).name.lower()
    except ValueError:
        return str(severity)


def _unit(series: Series) -> str:
    return f"{series.unit or ''} per second".strip() if series.is_rate else series.unit or ""
