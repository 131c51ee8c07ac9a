"""Values as text for people, by their schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from qmf.console.aio import ObjectId
from qmf.schema import QmfType
from qmf.views.names import NO_NAME
from qmf.views.objects import ObjectView
from qmf.views.records import collection_text
from qmf.views.text import clean
from qmf.views.times import brief_duration, duration_text
from qmf.views.times import instant_text as moment_text
from qmf.views.units import brief_quantity, full_quantity, shortest_float32

#: Shown in place of a missing value.
ABSENT = "–"


def value_text(
    kind: QmfType | None, value: object, unit: str | None = None, *, measured: bool = False, brief: bool = False
) -> str:
    """A value on one line.

    Args:
        kind: its type in the schema; None if unknown.
        value: as the console reads it.
        unit: as in the schema, or None.
        measured: it is a measurement, which has separators; other numbers may be names, such as ports.
        brief: for a table whose heading has the unit.
    """
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        if kind is not None and kind.base == "absTime":
            return instant_text(int(value))
        if kind is not None and kind.base == "deltaTime":
            return brief_duration(value) if brief else duration_text(value)
        if kind is not None and kind.name == "float":
            value = shortest_float32(value)
        if not measured and not unit:
            return str(value)
        return brief_quantity(value, unit) if brief else full_quantity(value, unit)
    return plain_text(value)


def plain_text(value: object) -> str:
    """A value without a schema on one line."""
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, ObjectId):
        return clean(value.object_name) or ABSENT
    if isinstance(value, str | int | float | UUID):
        return clean(str(value))
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex(" ")
    if isinstance(value, Mapping | Sequence):
        return collection_text(value, "…")
    return clean(str(value))


def instant_text(ns: int) -> str:
    """A time in nanoseconds since 1970, to the second; 0 means never."""
    return moment_text(ns) if ns else ABSENT


def age_text(seconds: float) -> str:
    """How long ago something was: ``now``, ``5s``, ``3m 12s``."""
    if seconds < 1:
        return "now"
    return brief_duration(int(seconds) * 1_000_000_000)


def ago_text(seconds: float) -> str:
    """How long ago something was, for a sentence: ``just now``, ``5s ago``."""
    return "just now" if seconds < 1 else f"{age_text(seconds)} ago"


def heard_text(seconds: float, *, stale: bool) -> str:
    """How old what is shown is; `stale` if nothing newer can come at present."""
    return f"{age_text(seconds)}, stale" if stale else age_text(seconds)


def some_of(texts: Sequence[str], most: int = 5) -> str:
    """The first of some texts, and how many more there are."""
    left = len(texts) - most
    return "; ".join([*texts[:most], *([f"and {left:,} more"] if left > 0 else [])])


def class_title(obj: ObjectView) -> str:
    """The name of an object's class; never empty."""
    return clean(obj.schema.name) or "object"


def object_title(obj: ObjectView) -> str:
    """What an object is called among those of its class; never empty."""
    identity = obj.identity
    index, title = clean(identity.index), clean(identity.title)
    return f"{index} ({title})" if index and title else index or title or clean(identity.key.object_name) or NO_NAME
