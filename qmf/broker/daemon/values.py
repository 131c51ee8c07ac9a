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
