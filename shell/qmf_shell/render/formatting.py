"""Makes text for people of cells: times, durations, numbers, maps. The text is always clean, see `text.clean`."""

from __future__ import annotations

import functools
import json
import math
from datetime import UTC, datetime, timedelta, tzinfo

import attrs

from qmf_shell.results.cells import (
    Cell,
    Collection,
    Duration,
    HiLoCell,
    Instant,
    MinMaxMeanCell,
    NamedValues,
    Quantity,
    ReferenceCell,
    WatchedValue,
)
from qmf_shell.text import clean

#: Shown in place of a missing value.
ABSENT = "-"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST = 4000
# Units that need a plural; others, such as "megahertz" or "octet/second", are shown as in the schema.
_COUNTED = frozenset(
    {"byte", "octet", "message", "packet", "file", "thread", "process", "session", "switch", "interrupt", "operation"}
    | {"inode", "core", "cpu", "descriptor", "sample", "reading", "object", "second", "minute", "hour", "day"}
    | {"connection", "queue", "consumer", "transaction", "subscription", "binding", "exchange"}
)


@attrs.frozen
class Formatter:
    """Makes text of cells.

    Attributes:
        zone: time zone of times; None: that of the machine.
        short: times without their date.
    """

    zone: tzinfo | None = None
    short: bool = False

    def text(self, cell: Cell) -> str:
        """A cell as one line of clean text."""
        match cell:
            case None:
                return ABSENT
            case bool():
                return "true" if cell else "false"
            case int():
                return str(cell)
            case float():
                return number_text(cell)
            case str():
                return clean(cell)
            case Instant(ns):
                return self.instant(ns)
            case Duration(ns):
                return duration_text(ns)
            case Quantity(value, unit):
                return quantity_text(value, unit)
            case HiLoCell():
                return _hilo_text(cell)
            case MinMaxMeanCell():
                return _min_max_mean_text(cell)
            case ReferenceCell(number, name):
                return clean(f"{number} ({name})")
            case Collection(value):
                return collection_text(value)
            case WatchedValue(inner, _, rate):
                return self.text(inner) + (f" ({rate_text(rate)}/s)" if rate is not None else "")
            case NamedValues(values):
                return " ".join(f"{clean(name)}={self._field(value)}" for name, value in values.items())

    def _field(self, cell: Cell) -> str:
        text = self.text(cell)
        if isinstance(cell, str) and (not text or " " in text):
            return f'"{text}"'
        return text

    def instant(self, ns: int) -> str:
        """A time to the second in the formatter's zone; one beyond the calendar's range in nanoseconds."""
        if ns == 0:
            return ABSENT
        try:
            return _moment(ns // 1_000_000_000, self.zone, self.short)
        except (OverflowError, ValueError, OSError):
            return f"{ns} ns"


# Cached, since many objects were created in the same second.
@functools.lru_cache(maxsize=1000)
def _moment(seconds: int, zone: tzinfo | None, short: bool) -> str:
    moment = (_EPOCH + timedelta(seconds=seconds)).astimezone(zone)
    return f"{moment:%H:%M:%S}" if short else f"{moment:%Y-%m-%d %H:%M:%S}"


def duration_text(ns: int | float) -> str:
    """A duration: ``1d 3h 12m 5s``, ``5.21s``, ``12.5ms``, ``80µs``, ``17ns``."""
    if ns < 0:
        return f"-{duration_text(-ns)}"
    if not math.isfinite(ns):
        return str(ns)
    if ns < 60_000_000_000:
        for size, unit in ((1_000_000_000, "s"), (1_000_000, "ms"), (1000, "µs")):
            if ns >= size:
                return f"{_short(ns / size)}{unit}"
        return f"{_short(ns)}{'ns' if ns else 's'}"
    seconds = int(ns) // 1_000_000_000
    parts: list[str] = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        count, seconds = divmod(seconds, size)
        if count or parts:
            parts.append(f"{count:,}{unit}")
    while parts[-1].startswith("0"):
        parts.pop()
    return " ".join(parts)


def _short(value: float) -> str:
    """About three significant digits."""
    places = 0 if value >= 100 else 1 if value >= 10 else 2
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def number_text(value: int | float) -> str:
    """A measured number with separators, with three decimal places, or with four digits if it is smaller than one."""
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    if abs(value) >= 1e15 or abs(value) < 1e-4:
        return f"{value:.4g}"
    text = f"{value:,.3f}" if abs(value) >= 1 else f"{value:.4g}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def rate_text(rate: float) -> str:
    """The rate of a counter, with its sign and about three significant digits."""
    size = abs(rate)
    sign = "-" if rate < 0 else "+"
    return sign + (f"{size:,.0f}" if size >= 100 else _short(size) if size else "0")


def quantity_text(value: int | float, unit: str | None) -> str:
    """A number with its unit: ``1,234 octets``, ``12.5 %``."""
    number = number_text(value)
    if not unit:
        return number
    if unit in ("percent", "%"):
        return f"{number} %"
    if value != 1 and unit.lower() in _COUNTED:
        unit += "es" if unit.endswith(("s", "ch")) else "s"
    return clean(f"{number} {unit}")


def _hilo_text(cell: HiLoCell) -> str:
    known = [(name, value) for name, value in (("high", cell.high), ("low", cell.low)) if value is not None]
    text = ABSENT if cell.value is None else quantity_text(cell.value, cell.unit)
    return f"{text} ({', '.join(f'{name} {number_text(value)}' for name, value in known)})" if known else text


def _min_max_mean_text(cell: MinMaxMeanCell) -> str:
    if not cell.count:
        return "no samples"

    def text(value: int | float | None, unit: str | None = None) -> str:
        if value is None:
            return ABSENT
        return duration_text(value) if cell.duration else quantity_text(value, unit)

    samples = "1 sample" if cell.count == 1 else f"{cell.count:,} samples"
    return f"{text(cell.mean, cell.unit)} (min {text(cell.low)}, max {text(cell.high)}, {samples})"


def collection_text(value: object) -> str:
    """A map or list as JSON, cut if it is very long; values that JSON does not have as their `str`."""
    text = clean(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
