"""Values of options on command lines: types for `argparse`, whose errors are one line for people."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable

#: Whole numbers of options are smaller than this.
_TOO_LARGE = 10**12


def seconds_between(least: float, most: float) -> Callable[[str], float]:
    """The type of an option in seconds, from `least` to `most`."""

    def read(text: str) -> float:
        value = _number(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from {least:.15g} to {most:.15g}")
        return value

    return read


def seconds(text: str) -> float:
    """A number of seconds above 0."""
    value = _number(text)
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def positive_number(text: str) -> float:
    """A number above 0."""
    value = _number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def number(text: str) -> float:
    """A number, 0 or more."""
    value = _number(text)
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number, 0 or more")
    return value


def whole_number(text: str) -> int:
    """The value of an option that counts something.

    Raises:
        ArgumentTypeError: it is no whole number, or negative.
    """
    try:
        number = int(text) if text.isascii() else None
    except ValueError:
        number = None
    if number is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative: it must be 0 or more")
    return number


def count(text: str) -> int:
    """A whole number above 0."""
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:20]) < _TOO_LARGE:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def whole_number_between(least: int, most: int) -> Callable[[str], int]:
    """The type of an option that is a whole number from `least` to `most`."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text[:20]) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most}")
        return int(text)

    return read


def port(text: str) -> int:
    """A port of TCP; 0 for any free one."""
    if not text.isascii() or not text.isdigit() or int(text[:6]) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to 65535")
    return int(text)


def regular_expression(text: str) -> re.Pattern[str]:
    """A regular expression."""
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
