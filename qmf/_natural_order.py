"""Natural order of texts: runs of digits are compared as numbers."""

from __future__ import annotations

import functools
import re
from typing import Any

_digits = re.compile(r"([0-9]+)")
_split = _digits.split

#: Digits of numbers that are too long to be converted.
_DIGITS = 40


def natural_key(text: str) -> tuple[tuple[Any, ...], str]:
    """A sort key for natural order: ``eth2`` before ``eth10``."""
    # Texts and numbers in turn, whatever the text begins with; lists of 100,000 objects are sorted by this, most of
    # which differ in a number at their end.
    stem = text.rstrip("0123456789")
    number = text[len(stem) :]
    if 0 < len(number) <= _DIGITS and _is_without_digits(stem):
        return (stem, int(number), ""), text
    parts: list[Any] = _split(text)
    if len(parts) > 1:
        try:
            parts[1::2] = map(int, parts[1::2])
        except ValueError:
            parts[1::2] = [int(part[:_DIGITS]) for part in parts[1::2]]
    return tuple(parts), text


@functools.lru_cache(256)
def _is_without_digits(stem: str) -> bool:
    return _digits.search(stem) is None
