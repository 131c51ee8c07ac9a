"""Texts as values: numbers with prefixes, durations, times and booleans."""

from __future__ import annotations

import contextlib
import re
import time
from fractions import Fraction

import attrs

from qmf.schema import TYPES, parse_value
from qmf.views.conditions.fields import Field
from qmf.views.conditions.tree import ConditionError
from qmf.views.times import parse_duration, parse_instant
from qmf.views.units import PERCENT, parse_number

_HEXADECIMAL = re.compile(r"[+-]?0[xX][0-9a-fA-F]+")
_EXPONENTIAL = re.compile(r"[+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?[eE][+-]?[0-9]{1,3}")


def number(field: Field, text: str) -> int | float:
    """The number that a text stands for: ``10``, ``1.5``, ``1e3``, ``0xA``, ``10k``, ``5Mi``; of durations ``5m``, of
    shares ``80%``.

    Raises:
        ConditionError: it is not a number.
    """
    wanted = text.strip()
    if field.unit in PERCENT:
        wanted = wanted.removesuffix("%")
    if field.is_duration:
        with contextlib.suppress(ValueError):
            return parse_duration(wanted)
    if _HEXADECIMAL.fullmatch(wanted):
        return int(wanted, 16)
    if _EXPONENTIAL.fullmatch(wanted):
        exact = Fraction(wanted)
        return exact.numerator if exact.denominator == 1 else float(exact)
    try:
        return parse_number(wanted)
    except ValueError:
        raise ConditionError(f"{text!r} is not a value of {field.name}: not a number") from None


@attrs.frozen
class Ago:
    """A time that goes on: so many nanoseconds before now."""

    nanoseconds: int

    def now(self) -> int:
        """The time at this moment, in nanoseconds since 1970."""
        return time.time_ns() - self.nanoseconds


def moment(field: Field, text: str) -> int | Ago:
    """The time, in nanoseconds since 1970, that a text stands for: a date, with a time or without, or a duration before
    now: ``2024-05-01``, ``2024-05-01T12:00``, ``5m``, ``1h30m``.

    Raises:
        ConditionError: it is not a time.
    """
    with contextlib.suppress(ValueError):
        return Ago(parse_duration(text))
    try:
        if re.fullmatch("-?[0-9]{1,40}", text):
            return int(text)
        return parse_instant(text)
    except ValueError:
        reason = "not a time, such as 2024-05-01, 2024-05-01T12:00 or 5m (ago)"
        raise ConditionError(f"{text!r} is not a value of {field.name}: {reason}") from None


def boolean(field: Field, text: str) -> bool:
    """The boolean that a text stands for: true, yes, y, 1; false, no, n, 0.

    Raises:
        ConditionError: it is none of them.
    """
    try:
        return bool(parse_value(TYPES["bool"], text))
    except ValueError as error:
        raise ConditionError(f"{text!r} is not a value of {field.name}: {error}") from None
