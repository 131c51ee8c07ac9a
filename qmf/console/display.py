"""How values are printed in events and object indexes."""

from __future__ import annotations

import time
from uuid import UUID

from qmf.protocol import ObjectId as CoreId
from qmf.schema import QmfType

_SEVERITIES = ("EMER ", "ALERT", "CRIT ", "ERROR", "WARN ", "NOTIC", "INFO ", "DEBUG")


def shown(value: object, kind: QmfType | None = None) -> str:
    """One value as text: times as dates in UTC, booleans as T and F."""
    if isinstance(value, bool):
        return "T" if value else "F"
    if kind is not None and kind.name == "absTime" and isinstance(value, int):
        return date(value)
    return str(value) if isinstance(value, (str, int, float, UUID, CoreId)) else repr(value)


def quoted(text: str) -> str:
    """The text, in quotes when it holds a space."""
    return f'"{text}"' if " " in text else text


def date(nanoseconds: int) -> str:
    """A time in UTC as ``Thu Jan 29 19:53:19 2009``."""
    return time.asctime(time.gmtime(nanoseconds // 1_000_000_000))


def severity(number: int) -> str:
    """Five letters for a severity; ``INV-n`` for a number that QMF doesn't define."""
    return _SEVERITIES[number] if 0 <= number < len(_SEVERITIES) else f"INV-{number}"
