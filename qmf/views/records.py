"""Values as JSON: one walk over what QMF has, and for each face how it writes what JSON has no form for.

The faces differ on purpose, see docs/design.md: each has a `JsonForm`, and functions of its own around it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence

import attrs

from qmf.protocol import ObjectId
from qmf.views.text import clean
from qmf.views.times import iso_text

#: Characters of a map or list that people are shown at most.
_LONGEST = 4000


def _no_number(_value: float) -> None:
    """JSON has neither NaN nor infinity."""


@attrs.frozen(kw_only=True)
class JsonForm:
    """How one face writes values as JSON.

    Attributes:
        text: makes a text that the face can write, of one that may not have been UTF-8.
        integer: writes a whole number, which readers with doubles would round beyond 2**53.
        special: writes NaN and the infinities.
        binary: writes bytes.
        reference: writes an object id.
        other: makes the text of everything else, such as a UUID.
    """

    text: Callable[[str], str] = lambda value: value
    integer: Callable[[int], object] = int
    special: Callable[[float], object] = _no_number
    binary: Callable[[bytes], object] = str
    reference: Callable[[ObjectId], object] = str
    other: Callable[[object], str] = str

    def plain(self, value: object) -> object:
        """A value as JSON has it, with all that it holds."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return self.integer(value)
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else self.special(value)
        if isinstance(value, ObjectId):
            return self.reference(value)
        if isinstance(value, Mapping):
            return {self.text(str(name)): self.plain(item) for name, item in value.items()}
        if isinstance(value, bytes | bytearray | memoryview):
            return self.binary(bytes(value))
        if isinstance(value, Sequence):
            return [self.plain(item) for item in value]
        return self.text(self.other(value))

    def instant(self, ns: int) -> object:
        """A point in time as RFC 3339 in UTC with all nine digits; None for 0, which stands for no time.

        One that the calendar cannot express with a year of four digits is the number.
        """
        return (iso_text(ns) or self.integer(ns)) if ns else None


def collection_text(value: object, more: str) -> str:
    """A map or list as people are shown it: JSON on one line, cut if it is very long.

    Args:
        value: to show; what JSON does not have is its `str`.
        more: stands for what was cut off.
    """
    text = clean(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= _LONGEST else text[:_LONGEST] + more
