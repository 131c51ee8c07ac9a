"""Natural order of texts: runs of digits are compared as numbers."""

from __future__ import annotations

import re
from typing import Any

_split = re.compile(r"([0-9]+)").split

#: Digits of numbers that are too long to be converted.
_DIGITS = 40


def natural_key(text: str) -> tuple[tuple[Any, ...], str]:
    """A sort key for natural order: ``eth2`` before ``eth10``."""
    # Texts and numbers in turn, whatever the text begins with; lists of 100,000 objects are sorted by this.
    parts: list[Any] = _split(text)
    if len(parts) > 1:
        try:
            parts[1::2] = map(int, parts[1::2])
        except ValueError:
            parts[1::2] = [int(part[:_DIGITS]) for part in parts[1::2]]
    return tuple(parts), text
