"""Values, times and lengths as texts of a report. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from qmf.pipeline.report.time_range import NS, time_text
from qmf.schema import Severity
from qmf.views.times import brief_duration
from qmf.views.units import brief_quantity, brief_scale, heading_unit, per_second

#: Characters of a property's value at most.
_VALUE_LENGTH = 120

#: Severities that share a mark, worst first: name, variable of the style sheet, hatch of bars, numbers.
GROUPS = (
    ("error and worse", "bad", "", range(Severity.EMERG, Severity.WARN)),
    ("warn", "warn", "//", range(Severity.WARN, Severity.NOTICE)),
    ("notice", "notice", "..", range(Severity.NOTICE, Severity.INFORM)),
    ("inform, debug", "info", "", range(Severity.INFORM, Severity.DEBUG + 1)),
)


def severity_mark(severity: int) -> str:
    """The style sheet's variable with the colour of a severity."""
    return next((mark for _, mark, _, numbers in GROUPS if severity in numbers), "info")


def value_text(value: float | None, unit: str | None = None, *, is_rate: bool = False) -> str:
    """A value with about three digits, e.g. ``12.5 MB/s``; a dash for none."""
    if value is None:
        return "–"
    return f"{brief_quantity(_plain(value), unit)}{'/s' if is_rate else ''}"


def scale_texts(values: Sequence[float], unit: str | None, *, is_rate: bool = False) -> list[str]:
    """The marks of an axis: different ones for different values."""
    return [f"{text}{'/s' if is_rate else ''}" for text in brief_scale([_plain(value) for value in values], unit)]


def _plain(value: float) -> float:
    """Without the noise of sums: a scale has 0 and not 1e-17."""
    return 0.0 if abs(value) < 1e-12 else float(value)


def unit_text(unit: str | None, *, is_rate: bool = False) -> str:
    """What a heading says of the unit; empty if the values say it."""
    shown = heading_unit(unit)
    if is_rate and shown:
        return heading_unit(per_second(unit)) or f"{shown} per second"
    return shown


def seconds_text(length: float) -> str:
    """A length in seconds as text."""
    return brief_duration(length * NS)


def percent_text(part: float | None) -> str:
    """A share; never 100 % for an agent that was down."""
    if part is None:
        return "unknown"
    text = f"{part * 100:.3f}" if part > 0.99 else f"{part * 100:.1f}"
    return f"{'99.999' if text == '100.000' and part < 1 else text.removesuffix('.000')} %"


def signed_text(part: float | None) -> str:
    """A relative change with its sign; a dash for none."""
    return "–" if part is None else f"{part * 100:+.1f} %"


def moment_text(seconds: float) -> str:
    """A time in seconds since 1970, in UTC."""
    return time_text(round(seconds * NS))


def cut_text(text: str | None) -> str:
    """The beginning of a long value."""
    if text is None:
        return "–"
    return text if len(text) <= _VALUE_LENGTH else f"{text[:_VALUE_LENGTH]}…"
