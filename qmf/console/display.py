"""How values of events are printed."""

from __future__ import annotations

import time
from uuid import UUID

from qmf.protocol import ObjectId as CoreId
from qmf.schema import QmfType

_SEVERITIES = ("EMER ", "ALERT", "CRIT ", "ERROR", "WARN ", "NOTIC", "INFO ", "DEBUG")


def value_text(value: object, kind: QmfType | None = None) -> str:
    """A value as text: times as dates in UTC, booleans as T and F."""
    if isinstance(value, bool):
        return "T" if value else "F"
    if kind is not None and kind.name == "absTime" and isinstance(value, int):
        return date(value)
    return str(value) if isinstance(value, (str, int, float, UUID, CoreId)) else repr(value)


def quoted(text: str) -> str:
    """The text, in quotes if it contains a space."""
    return f'"{text}"' if " " in text else text


def date(nanoseconds: int) -> str:
    """A time in UTC as ``Thu Jan 29 19:53:19 2009``."""
    return time.asctime(time.gmtime(nanoseconds // 1_000_000_000))


def severity(number: int) -> str:
    """A severity in five letters; ``INV-n`` for a number that QMF doesn't define."""
    return _SEVERITIES[number] if 0 <= number < len(_SEVERITIES) else f"INV-{number}"
