"""Values of options."""

from __future__ import annotations

import argparse
import math
import re

_YES, _NO = ("yes", "true", "1", "on"), ("no", "false", "0", "off")
_UNITS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

#: Longest interval in seconds that the management schema can express.
MAX_INTERVAL = 65_535


def yes_or_no(text: str) -> bool:
    """``yes`` or ``no``, also as true, 1, on and false, 0, off."""
    if text.lower() in _YES:
        return True
    if text.lower() in _NO:
        return False
    raise argparse.ArgumentTypeError(f"{text!r} is neither yes nor no")


def port(text: str) -> int:
    """A TCP port; 0 for any free one."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a number from 0 to 65535")
    return int(text)


def positive(text: str) -> int:
    """A whole number above 0."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def number(text: str) -> int:
    """A whole number."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def duration(text: str) -> float:
    """Seconds above 0, with an optional unit: s, ms, us, ns."""
    match = re.fullmatch(r"([0-9.]+(?:e[0-9]+)?)\s*([a-z]*)", text.lower())
    try:
        seconds = float(match[1]) * _UNITS[match[2]] if match else math.nan
    except (ValueError, KeyError):
        seconds = math.nan
    if not 0 < seconds <= MAX_INTERVAL:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0, up to {MAX_INTERVAL}")
    return seconds


def regular_expression(text: str) -> str:
    """A regular expression, as it is.

    Raises:
        argparse.ArgumentTypeError: it is none; says why.
    """
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from error
    return text
