"""Values as text for people, by their schema."""

from __future__ import annotations

from collections.abc import Sequence

from qmf.schema import QmfType
from qmf.views.cells import CellForm, Instant
from qmf.views.formatting import Formatter
from qmf.views.names import NO_NAME
from qmf.views.objects import ObjectView
from qmf.views.text import clean
from qmf.views.times import brief_duration
from qmf.views.value_cells import free_cell, value_cell

#: Shown in place of a missing value.
ABSENT = "–"
_FORMATTER = Formatter(absent=ABSENT, more="…")


def value_text(
    kind: QmfType | None, value: object, unit: str | None = None, *, measured: bool = False, brief: bool = False
) -> str:
    """A value on one line; `brief` is for a table whose heading has the unit, all else is as of `value_cell`."""
    cell = value_cell(kind, value, unit, measured=measured)
    # A page stays open for days: the time of a day needs its date.
    is_brief = brief and not isinstance(cell, Instant)
    return _FORMATTER.text_as(cell, CellForm.BRIEF if is_brief else CellForm.FULL)


def plain_text(value: object) -> str:
    """A value without a schema on one line."""
    return _FORMATTER.text(free_cell(value))


def instant_text(ns: int) -> str:
    """A time in nanoseconds since 1970, to the second; 0 means never."""
    return _FORMATTER.instant(ns)


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
