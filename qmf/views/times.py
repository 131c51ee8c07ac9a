"""Durations and points in time as text, and durations as users write them.

A duration is a number of nanoseconds, a point in time one of nanoseconds since 1970.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from fractions import Fraction

_SECOND = 10**9
#: Units of durations as users write them, in nanoseconds.
_UNITS: Mapping[str, int] = {
    "ns": 1,
    "us": 1000,
    "µs": 1000,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
    "d": 86_400 * _SECOND,
    "w": 7 * 86_400 * _SECOND,
}
#: Their names, and the beginnings that tell which unit is meant.
_NAMES = "|".join(f"{name}s?" for name in ("millisecond", "second", "minute", "hour", "day", "week"))
#: More digits than any duration needs are no duration.
_PART = re.compile(rf"([0-9]{{1,20}}(?:\.[0-9]{{1,20}})?)\s*({_NAMES}|min|[nuµm]s|[smhdw])\s*", re.ASCII)
#: From this duration on it has whole seconds: 59.95 s would be 60.0 s.
_MINUTES = 59_950_000_000
#: `datetime` keeps microseconds only.
_FRACTION = re.compile(r"(?<=:[0-9]{2}:[0-9]{2})[.,]([0-9]*)", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_duration(text: str) -> int:
    """The nanoseconds of a duration: ``90s``, ``1m30s``, ``1m 30s``, ``500ms``, ``1.5h``, ``2d``, ``10 minutes``.

    Units are ns, us or µs, ms, s, m or min, h, d and w, and the names of those from milliseconds on.

    Raises:
        ValueError: the text is not a duration.
    """
    total, at = Fraction(0), 0
    text = text.strip()
    while match := _PART.match(text, at):
        name = match[2]
        total += Fraction(match[1]) * _UNITS["ms" if name.startswith("milli") else name if name in _UNITS else name[0]]
        at = match.end()
    if not text or at != len(text):
        raise ValueError(f"must be a time such as 30s, 1m30s or 2h, not {text!r}")
    return round(total)


def duration_text(ns: int | float) -> str:
    """A duration: ``1d 3h 12m 5s``, ``5.21s``, ``12.5ms``, ``80µs``, ``17ns``."""
    if ns < 0:
        return f"-{duration_text(-ns)}"
    if not math.isfinite(ns):
        return str(ns)
    if ns < _MINUTES:
        for size, unit in ((_SECOND, "s"), (10**6, "ms"), (1000, "µs")):
            # 999.6 would be rounded to 1000.
            if ns >= size * 0.9995:
                return f"{short_number(ns / size)}{unit}"
        return f"{short_number(ns)}{'ns' if ns else 's'}"
    seconds = round(ns / _SECOND) if isinstance(ns, float) else (ns + _SECOND // 2) // _SECOND
    parts: list[str] = []
    for unit in ("d", "h", "m", "s"):
        count, seconds = divmod(seconds, _UNITS[unit] // _SECOND)
        if count or parts:
            parts.append(f"{count:,}{unit}")
    while parts[-1].startswith("0"):
        parts.pop()
    return " ".join(parts)


def brief_duration(ns: int | float) -> str:
    """A duration of at most two parts: ``1d 3h``, ``12m 5s``, ``5.21s``."""
    return " ".join(duration_text(ns).split(" ")[:2])


def short_number(value: float) -> str:
    """About three significant digits of a number that is not negative."""
    places = 0 if value >= 100 else 1 if value >= 10 else 2
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def instant_text(ns: int, zone: tzinfo | None = None, *, date: bool = True) -> str:
    """A point in time to the second: ``2030-01-31 14:05:00``; one beyond the calendar's range in nanoseconds.

    Args:
        ns: nanoseconds since 1970.
        zone: time zone; None: that of the machine.
    """
    try:
        text = _moment(ns // _SECOND, zone)
    except (OverflowError, ValueError, OSError):
        return f"{ns} ns"
    return text if date else text[11:]


# Cached, since many objects were created in the same second.
@functools.lru_cache(maxsize=1000)
def _moment(seconds: int, zone: tzinfo | None) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).astimezone(zone).isoformat(" ")[:19]


def instant_ns(moment: datetime, zone: tzinfo | None = None) -> int:
    """The nanoseconds of a moment; one that names no time zone is in `zone`, or None: that of the machine.

    Raises:
        OverflowError, ValueError, OSError: it is beyond what the machine's time zone knows.
    """
    if moment.tzinfo is None:
        moment = moment.astimezone() if zone is None else moment.replace(tzinfo=zone)
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * _SECOND + since.microseconds * 1000


def parse_instant(text: str, zone: tzinfo | None = None) -> int:
    """The nanoseconds of a date, with a time or without: ``2024-05-01``, ``2024-05-01T12:00:30.5Z``; see `instant_ns`.

    Of a fraction of a second, nine digits count.

    Raises:
        ValueError: the text is not a time.
    """
    fraction = _FRACTION.search(text)
    if fraction is not None and not fraction[1]:
        raise ValueError(f"a fraction of a second without digits: {text!r}")
    whole = text if fraction is None else text[: fraction.start()] + text[fraction.end() :]
    try:
        seconds = instant_ns(datetime.fromisoformat(whole), zone)
    except (OverflowError, OSError) as error:
        raise ValueError(str(error)) from None
    return seconds if fraction is None else seconds + int(fraction[1][:9].ljust(9, "0"))


def iso_text(ns: int) -> str | None:
    """A point in time as RFC 3339 in UTC, with all nine digits: ``2030-01-31T14:05:00.000000001Z``.

    None for one that the calendar cannot express with a year of four digits.
    """
    second = _iso_second(ns // _SECOND)
    return None if second is None else f"{second}.{ns % _SECOND:09}Z"


@functools.lru_cache(maxsize=1000)
def _iso_second(seconds: int) -> str | None:
    try:
        moment = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return None
    return f"{moment:%Y-%m-%dT%H:%M:%S}" if moment.year > 999 else None
