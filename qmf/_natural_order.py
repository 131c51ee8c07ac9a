"""Natural order of texts: runs of digits are compared as numbers."""

from __future__ import annotations

import re

_DIGITS = re.compile(r"([0-9]+)")


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key for natural order: ``eth2`` before ``eth10``."""
    parts = _DIGITS.split(text)
    return tuple([(at % 2 ^ 1, int(part[:40]) if at % 2 else 0, part) for at, part in enumerate(parts) if part])
