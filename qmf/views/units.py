"""Makes text for people of numbers with the units of schemas: ``12.5 MB``, ``3.2 k/s``, ``1d 3h``.

There are three forms. *Brief* is for the cells of tables, whose headings name the unit where the cell does not:
``12.5 k`` below ``messages``. *Full* stands alone: ``10,234 messages``, ``1.03 GB``. *Exact* has every digit and the
unit's whole name: ``1,028,243,456 octets``. Prefixes are decimal: 1 kB is 1000 bytes.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeGuard

from qmf.views.text import clean
from qmf.views.times import brief_duration, duration_text, short_number

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
# More digits than any number needs are no number.
_NUMBER = re.compile(r"([+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?)\s*(k|[KkMGTPE]i|[MGTPE]|)", re.ASCII)
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


def is_number(value: object) -> TypeGuard[int | float]:
    """True for a number; a boolean is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def has_symbol(unit: str | None) -> bool:
    """True for units that are written as a symbol with a prefix, or as a duration."""
    return unit in _SYMBOLS or unit in _DURATIONS


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


def parse_number(text: str) -> int | float:
    """A number as users write it, with an optional prefix: ``-3``, ``2.5``, ``10k``, ``1.5M``; ``5Ki`` is 5 * 1024.

    Returns:
        an int without a fraction, exact however large it is; else a float.

    Raises:
        ValueError: the text is not a number.
    """
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"must be a number such as 10, 2.5, 10k or 5Mi, not {text!r}")
    number = Fraction(match[1]) * _factor(match[2])
    return int(number) if number.denominator == 1 else float(number)


def _factor(prefix: str) -> int:
    return int((1024 if prefix.endswith("i") else 1000) ** _PREFIXES.index(prefix[:1].replace("K", "k")))


def scale(value: int | float, symbol: str = "", *, binary: bool = False) -> str:
    """A number of about three digits with an SI prefix: ``12.5 MB`` (symbol ``B``), ``3.2 k``, ``999``.

    With `binary` prefixes are powers of 1024: ``11.9 MiB``, for what is published so.
    """
    if not math.isfinite(value):
        return f"{value} {symbol}".rstrip()
    size, at = abs(value), 0
    # 999.6 would be rounded to 1000.
    step = 1024 if binary else 1000
    while size >= step - 0.5 and at < len(_PREFIXES) - 1:
        size /= step
        at += 1
    if size >= _BEYOND:
        return f"{value:.3g} {symbol}".rstrip()
    number = f"{size:,.0f}" if size >= 1000 else short_number(size) if size >= 1 or not size else f"{size:.3g}"
    prefix = _PREFIXES[at] if not (binary and at) else f"{_PREFIXES[at].upper()}i"
    return f"{'-' if value < 0 else ''}{number} {prefix}{symbol}".rstrip()


def per_second(unit: str | None) -> str:
    """The unit of the growth of a counter with this unit: ``message/second``; ``/second`` for none."""
    return f"{unit or ''}/second"


def rate_text(rate: float, unit: str | None = None, *, exact: bool = False) -> str:
    """The growth of a counter per second, with its sign: ``+54.2 kB/s``, ``+3.2 k/s``, ``+0/s``."""
    sign = "-" if rate < 0 else "+"
    size = abs(rate)
    if exact:
        return f"{sign}{f'{size:,.0f}' if size >= 100 else short_number(size) if size else '0'}/s"
    symbol, factor = _SYMBOLS.get(unit or "", ("", 1))
    if symbol.endswith("/s"):
        symbol, factor = "", 1
    text = scale(size * factor, symbol)
    return f"{sign}{text}/s"


def brief_quantity(value: int | float, unit: str | None) -> str:
    """A number in a table whose heading has `heading_unit`: ``12.5 MB``, ``12.5 k``, ``9,214``, ``1d 3h``, ``98 %``."""
    if unit in PERCENT:
        return f"{value:,.0f} %" if abs(value) >= _LONG_COUNT else f"{_brief_number(value)} %"
    if unit in _DURATIONS:
        return brief_duration(value * _DURATIONS[unit])
    if unit in _SYMBOLS:
        symbol, factor = _SYMBOLS[unit]
        return scale(value * factor, symbol)
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
        return scale(value)
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value) or 0 < size < 0.01:
        return f"{value:.2g}"
    return f"{'-' if value < 0 else ''}{f'{size:,.0f}' if size >= 100 else short_number(size)}"


def full_quantity(value: int | float, unit: str | None) -> str:
    """A number that stands alone: ``10,234 messages``, ``1.03 GB``, ``1d 3h 12m 5s``."""
    if unit in _DURATIONS:
        return duration_text(value * _DURATIONS[unit])
    if unit in _SYMBOLS:
        symbol, factor = _SYMBOLS[unit]
        short = abs(value) * factor >= _LONG_SIZE
        return scale(value * factor, symbol) if short else f"{number_text(value * factor)} {symbol}"
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
