"""Durations as text: ``90s``, ``1m30s``, ``500ms``, ``2h``, ``1d``, ``10 minutes``. As numbers they are nanoseconds."""

from __future__ import annotations

import re

_UNITS = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86_400 * 10**9}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|seconds?|minutes?|hours?|days?|s|m|h|d)\s*")


def parse_duration(text: str) -> int:
    """The nanoseconds of a duration.

    Raises:
        ValueError: the text is not a duration.
    """
    total, at = 0.0, 0
    text = text.strip()
    while match := _PART.match(text, at):
        unit = "ms" if match[2].startswith(("ms", "milli")) else match[2][0]
        total += float(match[1]) * _UNITS[unit]
        at = match.end()
    if not text or at != len(text):
        raise ValueError(f"must be a time such as 30s, 1m30s or 2h, not {text!r}")
    return round(total)


def format_duration(ns: int) -> str:
    """The reverse, to the millisecond: ``1m 30s``."""
    rest, parts = round(ns / 10**6) * 10**6, []
    for unit in ("d", "h", "m"):
        count, rest = divmod(rest, _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    if rest or not parts:
        parts.append(f"{rest / 10**9:g}s")
    return " ".join(parts)


def spark_duration(text: str) -> str:
    """The same duration as Spark writes it, with one unit: ``90 seconds``.

    Raises:
        ValueError: the text is not a duration, or finer than a millisecond.
    """
    milliseconds, rest = divmod(parse_duration(text), 10**6)
    if rest:
        raise ValueError(f"must be a time of whole milliseconds, not {text!r}")
    return f"{milliseconds} milliseconds" if milliseconds % 1000 else f"{milliseconds // 1000} seconds"
