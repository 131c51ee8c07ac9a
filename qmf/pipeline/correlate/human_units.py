"""Numbers in the units of rules, for people: ``1.61 GB``, ``2m 30s``, ``81 %``. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qmf.views.times import duration_text
from qmf.views.units import brief_quantity, scale

#: The units of values, as rules name them.
UNITS = ("bytes", "bytes/s", "ns", "ns/s", "s", "percent", "ratio", "number", "per second")

#: Units in schemas, and what they are called here.
_SCHEMA_UNITS: Mapping[str, str] = {
    "byte": "bytes",
    "bytes": "bytes",
    "octet": "bytes",
    "octets": "bytes",
    "nanosecond": "ns",
    "nanoseconds": "ns",
    "ns": "ns",
    "second": "s",
    "seconds": "s",
    "s": "s",
    "percent": "percent",
    "%": "percent",
}

#: What a unit becomes per second: time per time is a share of it.
_PER_SECOND: Mapping[str, str] = {"bytes": "bytes/s", "s": "ratio", "ns": "ns/s"}


def unit_of(schema_unit: str | None, *, per_second: bool = False) -> str:
    """The unit of a column, or of its change per second."""
    unit = _SCHEMA_UNITS.get((schema_unit or "").lower(), "number")
    return _PER_SECOND.get(unit, "per second") if per_second else unit


def human(value: float, unit: str = "number") -> str:
    """A value in a unit, with about three digits."""
    return _FORMATS.get(unit, scale)(value)


def _size(value: float) -> str:
    return scale(value, "B")


def _size_1024(value: float) -> str:
    return scale(value, "B", binary=True)


def _seconds(value: float) -> str:
    return duration_text(value * 1e9)


def _share(value: float) -> str:
    return brief_quantity(value * 100, "percent")


_FORMATS: Mapping[str, Callable[[float], str]] = {
    "bytes": _size,
    "bytes/s": lambda value: scale(value, "B/s"),
    "ns": duration_text,
    "ns/s": lambda value: _share(value / 1e9),
    "s": _seconds,
    "percent": lambda value: brief_quantity(value, "percent"),
    "ratio": _share,
    "number": scale,
    "per second": lambda value: f"{scale(value)}/s",
}

#: Formats in templates besides those of Python; those of Prometheus' templates have their names, and mean the same.
TEMPLATE_FORMATS: Mapping[str, Callable[[float], str]] = {
    "bytes": _size,
    "si": scale,
    "ns": duration_text,
    "seconds": _seconds,
    "ratio": _share,
    "humanize": scale,
    "humanize1024": _size_1024,
    "humanizeDuration": _seconds,
    "humanizePercentage": _share,
}
