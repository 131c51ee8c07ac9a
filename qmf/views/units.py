"""Makes text for people of numbers with the units of schemas: ``12.5 MB``, ``3.2 k/s``, ``1d 3h``.

There are three forms. *Brief* is for the cells of tables, whose headings name the unit where the cell does not:
``12.5 k`` below ``messages``. *Full* stands alone: ``10,234 messages``, ``1.03 GB``. *Exact* has every digit and the
unit's whole name: ``1,028,243,456 octets``. Prefixes are decimal: 1 kB is 1000 bytes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from qmf.views.text import clean

_FLOAT32 = struct.Struct("<f")
#: Units that are written as a symbol, with SI prefixes: the symbol, and how many of it one is.
_SYMBOLS = {
    "octet": ("B", 1),
    "byte": ("B", 1),
    "octet/second": ("B/s", 1),
    "byte/second": ("B/s", 1),
    "bit/second": ("bit/s", 1),
    "hertz": ("Hz", 1),
    "megahertz": ("Hz", 1_000_000),
}
#: Units of durations, in nanoseconds.
_DURATIONS = {"nanosecond": 1, "microsecond": 1000, "millisecond": 1_000_000, "second": 1_000_000_000}
#: Names of the unit of a share of a hundred.
PERCENT = ("percent", "%")
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")
# Units that need a plural; others, such as "megahertz" or "octet/second", are shown as in the schema.
_COUNTED = frozenset(
    {"byte", "octet", "message", "packet", "file", "thread", "process", "session", "switch", "interrupt", "operation"}
    | {"inode", "core", "cpu", "descriptor", "sample", "reading", "object", "second", "minute", "hour", "day"}
    | {"connection", "queue", "consumer", "transaction", "subscription", "binding", "exchange", "alert", "row", "rule"}
    | {"request", "step"}
)
#: From so many of the largest prefix on, a power of ten is written instead.
_BEYOND = 1_000_000
#: From this number on, counts are shortened in tables.
_LONG_COUNT = 10_000
#: From this number on, values with a symbol are shortened where they stand alone.
_LONG_SIZE = 100_000


def has_symbol(unit: str | None) -> bool:
    """True for units that are written as a symbol with a prefix, or as a duration."""
    return unit in _SYMBOLS or unit in _DURATIONS


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


def brief_duration(ns: int | float) -> str:
    """A duration of at most two parts: ``1d 3h``, ``12m 5s``, ``5.21s``."""
    return " ".join(duration_text(ns).split(" ")[:2])


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


def scaled(value: int | float, symbol: str = "") -> str:
    """A number of about three digits with an SI prefix: ``12.5 MB`` (symbol ``B``), ``3.2 k``, ``999``."""
    if not math.isfinite(value):
        return f"{value} {symbol}".rstrip()
    size, at = abs(value), 0
    # 999.6 would be rounded to 1000.
    while size >= 999.5 and at < len(_PREFIXES) - 1:
        size /= 1000
        at += 1
    if size >= _BEYOND:
        return f"{value:.3g} {symbol}".rstrip()
    number = f"{size:,.0f}" if size >= 1000 else _short(size) if size >= 1 or not size else f"{size:.3g}"
    return f"{'-' if value < 0 else ''}{number} {_PREFIXES[at]}{symbol}".rstrip()


def per_second(unit: str | None) -> str:
    """The unit of the growth of a counter with this unit: ``message/second``; ``/second`` for none."""
    return f"{unit or ''}/second"


def rate_text(rate: float, unit: str | None = None, *, exact: bool = False) -> str:
    """The growth of a counter per second, with its sign: ``+54.2 kB/s``, ``+3.2 k/s``, ``+0/s``."""
    sign = "-" if rate < 0 else "+"
    size = abs(rate)
    if exact:
        return f"{sign}{f'{size:,.0f}' if size >= 100 else _short(size) if size else '0'}/s"
    symbol, factor = _SYMBOLS.get(unit or "", ("", 1))
    if symbol.endswith("/s"):
        symbol, factor = "", 1
    text = scaled(size * factor, symbol)
    return f"{sign}{text}/s"


def brief_quantity(value: int | float, unit: str | None) -> str:
    """A number in a table whose heading has `heading_unit`: ``12.5 MB``, ``12.5 k``, ``9,214``, ``1d 3h``, ``98 %``."""
    if unit in PERCENT:
        return f"{_brief_number(value)} %"
    if unit in _DURATIONS:
        return brief_duration(value * _DURATIONS[unit])
    if unit in _SYMBOLS:
        symbol, factor = _SYMBOLS[unit]
        return scaled(value * factor, symbol)
    return _brief_number(value)


def brief_scale(values: Sequence[int | float], unit: str | None) -> list[str]:
    """The marks of a scale as `brief_quantity`; with more digits if some would be the same otherwise."""
    texts = [brief_quantity(value, unit) for value in values]
    if len(set(texts)) == len(texts):
        return texts
    symbol, factor = ("%", 1) if unit in PERCENT else _SYMBOLS.get(unit or "", ("", 1))
    return [f"{number_text(value * factor)} {symbol}".rstrip() for value in values]


def _brief_number(value: int | float) -> str:
    size = abs(value)
    if size >= _LONG_COUNT:
        return scaled(value)
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value) or 0 < size < 0.01:
        return f"{value:.2g}"
    return f"{'-' if value < 0 else ''}{f'{size:,.0f}' if size >= 100 else _short(size)}"


def full_quantity(value: int | float, unit: str | None) -> str:
    """A number that stands alone: ``10,234 messages``, ``1.03 GB``, ``1d 3h 12m 5s``."""
    if unit in _DURATIONS:
        return duration_text(value * _DURATIONS[unit])
    if unit in _SYMBOLS:
        symbol, factor = _SYMBOLS[unit]
        short = abs(value) * factor >= _LONG_SIZE
        return scaled(value * factor, symbol) if short else f"{number_text(value * factor)} {symbol}"
    return quantity_text(value, unit)


def quantity_text(value: int | float, unit: str | None) -> str:
    """A number with every digit and its unit: ``1,234 octets``, ``12.5 %``."""
    number = number_text(value)
    if not unit:
        return number
    if unit in PERCENT:
        return f"{number} %"
    return clean(f"{number} {unit if value == 1 else plural_unit(unit)}")


def plural_unit(unit: str) -> str:
    """The unit of several: ``messages``, ``switches``; ``%`` for percent."""
    if unit in PERCENT:
        return "%"
    if unit.endswith("/second") and unit.removesuffix("/second").lower() in _COUNTED:
        return f"{plural_unit(unit.removesuffix('/second'))}/s"
    if unit == "/second":
        return "per second"
    if unit.lower() in _COUNTED:
        return clean(unit + ("es" if unit.endswith(("s", "ch")) else "s"))
    return clean(unit)


def heading_unit(unit: str | None, *, exact: bool = False) -> str:
    """What the heading of a column says of the unit: empty if the cells say it.

    Args:
        unit: as in the schema, or None.
        exact: the cells have every digit and no unit.
    """
    if not unit or unit in PERCENT or (not exact and (unit in _SYMBOLS or unit in _DURATIONS)):
        return ""
    return plural_unit(unit)


def shortest_float32(value: int | float) -> int | float:
    """The number with the fewest digits that is the same 32-bit float: 0.1 for 0.10000000149011612."""
    try:
        packed = _FLOAT32.pack(value)
    except (OverflowError, struct.error):
        return value  # more than its type can hold, from a foreign agent
    for digits in range(6, 10):
        shorter = float(f"{value:.{digits}g}")
        if _FLOAT32.pack(shorter) == packed:
            return shorter
    return value
