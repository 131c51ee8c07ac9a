"""The values of managed objects on their way to the wire: reading, taking for a publication, giving back.

Belongs to the event loop's thread but for reading. Other threads may change an object meanwhile: marks are cleared
before values are read, and an accessor takes its interval in one step, so a change shows up now or the next time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmf.agent.accessors.accessors import Interval
from qmf.agent.layout.class_layout import PROPERTIES, PROPERTIES_CELL, STATISTICS, STATISTICS_CELL, ClassLayout
from qmf.agent.layout.references import is_pending
from qmf.agent.model.value_readers import RawValues, make_reader, make_taker

if TYPE_CHECKING:
    from qmf.agent.model.managed_object import ManagedObject


class PendingUpdate:
    """What the publisher took from an object, until it is known to have been sent.

    Attributes:
        object: whose it is.
        groups: the groups of values in it.
        raw: plain values in wire order.
    """

    __slots__ = ("_intervals", "groups", "object", "raw")

    def __init__(self, obj: ManagedObject, groups: int, raw: RawValues, intervals: list[tuple[str, Interval]]) -> None:
        self.object = obj
        self.groups = groups
        self.raw = raw
        self._intervals = intervals

    @property
    def values(self) -> dict[str, object]:
        """The values for the wire, by wire name."""
        return values_by_name(self.object._qmf_layout, self.groups, self.raw)

    def restore(self) -> None:
        """Give it back: the groups are due again, and the running interval includes the one taken."""
        self.object._qmf_due |= self.groups
        for slot, interval in self._intervals:
            getattr(self.object, slot)._restore(interval)


def note_changes(obj: ManagedObject, tick: int) -> None:
    """Turn marks into groups that are due for the publisher, and remember when that was for subscriptions.

    Args:
        obj: any object.
        tick: a number that only grows.
    """
    cells = obj._qmf_cells
    if obj._qmf_pending:
        # In this order, since another thread may just be setting a reference.
        obj._qmf_pending = False
        if any(is_pending(cells[field.cell]) for field in obj._qmf_layout.references):
            obj._qmf_pending = True
        else:
            # A reference became valid without anybody setting it; which group it is in is not worth knowing.
            cells[PROPERTIES_CELL] = cells[STATISTICS_CELL] = True
    for slot in obj._qmf_layout.mmas:
        if getattr(obj, slot)._note():
            cells[STATISTICS_CELL] = True
    if cells[PROPERTIES_CELL]:
        cells[PROPERTIES_CELL] = False
        obj._qmf_encoded = obj._qmf_lead = None
        obj._qmf_due |= PROPERTIES
        obj._qmf_properties_tick = tick
    if cells[STATISTICS_CELL]:
        cells[STATISTICS_CELL] = False
        obj._qmf_due |= STATISTICS
        obj._qmf_statistics_tick = tick


def changed_since(obj: ManagedObject, tick: int) -> int:
    """The groups whose changes were noted after `tick`."""
    return (PROPERTIES if obj._qmf_properties_tick > tick else 0) | (
        STATISTICS if obj._qmf_statistics_tick > tick else 0
    )


def take(obj: ManagedObject, tick: int) -> PendingUpdate | None:
    """What changed, with a new interval; None if nothing did."""
    note_changes(obj, tick)
    groups = obj._qmf_due
    if not groups:
        return None
    obj._qmf_due = 0
    layout = obj._qmf_layout
    taker = layout.takers.get(groups)
    if taker is None:
        taker = layout.takers[groups] = make_taker(layout, groups)
    raw, intervals = taker(obj)
    if intervals:
        # High, low and averages that go back to rest are a change: consoles shall not show old ones.
        obj._qmf_cells[STATISTICS_CELL] = True
    return PendingUpdate(obj, groups, raw, intervals)


def read_raw_values(obj: ManagedObject, groups: int) -> RawValues:
    """Plain values in wire order, None for those that are absent; any thread."""
    layout = obj._qmf_layout
    reader = layout.readers.get(groups)
    if reader is None:
        reader = layout.readers[groups] = make_reader(layout, groups)
    raw: RawValues = reader(obj)
    return raw


def read(obj: ManagedObject, groups: int) -> dict[str, object]:
    """Values for the wire, by wire name, typed as in the schema (QMF2.md 6); any thread.

    Optional properties that are unset are absent. So are references that are unset or whose object has no id, optional
    or not: an empty object id on the wire looks like a real one, and consoles would query it.
    """
    return values_by_name(obj._qmf_layout, groups, read_raw_values(obj, groups)) if groups else {}


def values_by_name(layout: ClassLayout, groups: int, raw: RawValues) -> dict[str, object]:
    """Plain values by wire name, typed as in the schema; absent ones are left out."""
    return {
        name: value if wrapper is None else wrapper(value)
        for (name, wrapper), value in zip(layout.wire[groups], raw, strict=True)
        if value is not None
    }
