"""Numbers in units for people: ``1.5 GiB``, ``2m 30s``, ``81 %``. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qmf.pipeline.durations import format_duration

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
    return _FORMATS.get(unit, si)(value)


def si(value: float) -> str:
    """A number with a decimal prefix: ``1.5 M``."""
    return _prefixed(value, 1000.0, ("", " k", " M", " G", " T", " P"))


def size(value: float) -> str:
    """A number of bytes with a binary prefix: ``1.5 GiB``."""
    return _prefixed(value, 1024.0, (" B", " KiB", " MiB", " GiB", " TiB", " PiB"))


def seconds(value: float) -> str:
    """A number of seconds: ``2m 30s``, ``810ms``, ``12µs``."""
    return nanoseconds(value * 1e9)


def nanoseconds(value: float) -> str:
    """A number of nanoseconds, in the same way."""
    sign, ns = ("-", -value) if value < 0 else ("", value)
    if ns >= 1e9:
        # Seconds of long times tell nothing.
        return sign + format_duration(round(ns / 1e6) * 10**6 if ns < 60e9 else round(ns / 1e9) * 10**9)
    for limit, name in ((1e6, "ms"), (1e3, "µs")):
        if ns >= limit:
            return f"{sign}{ns / limit:.3g}{name}"
    return f"{sign}{ns:.3g}ns"


def share(value: float) -> str:
    """A ratio as a percentage: 0.815 is ``81.5 %``."""
    return percent(value * 100)


def percent(value: float) -> str:
    """A percentage."""
    return f"{_digits(value)} %"


def _prefixed(value: float, step: float, prefixes: tuple[str, ...]) -> str:
    size, index = abs(value), 0
    while size >= step and index < len(prefixes) - 1:
        size, index = size / step, index + 1
    return ("-" if value < 0 else "") + _digits(size) + prefixes[index]


def _digits(value: float) -> str:
    """Three digits, without a power of ten."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


_FORMATS: Mapping[str, Callable[[float], str]] = {
    "bytes": size,
    "bytes/s": lambda value: f"{size(value)}/s",
    "ns": nanoseconds,
    "ns/s": lambda value: share(value / 1e9),
    "s": seconds,
    "percent": percent,
    "ratio": share,
    "number": si,
    "per second": lambda value: f"{si(value)}/s",
}

#: Formats in templates besides those of Python; those of Prometheus' templates have their names.
TEMPLATE_FORMATS: Mapping[str, Callable[[float], str]] = {
    "bytes": size,
    "si": si,
    "ns": nanoseconds,
    "seconds": seconds,
    "ratio": share,
    "humanize": si,
    "humanize1024": size,
    "humanizeDuration": seconds,
    "humanizePercentage": share,
}
