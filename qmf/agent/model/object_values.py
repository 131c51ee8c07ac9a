"""The values of managed objects for the wire: read, or taken for a publication and given back if that fails.

Any thread may read; the rest belongs to the event loop's thread. Other threads may change an object meanwhile: marks
are cleared before values are read, and an accessor ends its interval in one step, so a change is in this publication or
in the next one.
"""

from __future__ import annotations

from qmf.agent.accessors.counter import IntervalState
from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import ClassLayout
from qmf.agent.layout.object_state import StatefulObject
from qmf.agent.model.value_readers import RawValues, Reader, make_reader, make_taker


class PendingUpdate:
    """Values that were taken from an object for a publication, until that has been sent.

    Attributes:
        object: the object.
        groups: the groups of values.
        raw: plain values in wire order.
    """

    __slots__ = ("_intervals", "groups", "object", "raw")

    def __init__(
        self, obj: StatefulObject, groups: int, raw: RawValues, intervals: list[tuple[str, IntervalState]]
    ) -> None:
        self.object = obj
        self.groups = groups
        self.raw = raw
        self._intervals = intervals

    @property
    def values(self) -> dict[str, object]:
        """The values for the wire, by wire name."""
        return values_by_name(object_state.layout(self.object), self.groups, self.raw)

    def restore(self) -> None:
        """Give the values back: the groups are due again, and the running interval includes the one taken."""
        object_state.restore_due(self.object, self.groups)
        for slot, interval in self._intervals:
            getattr(self.object, slot)._merge_interval(interval)


def take_update(obj: StatefulObject, tick: int) -> PendingUpdate | None:
    """Take the values of the groups that changed, and begin a new interval; None if nothing changed.

    Args:
        obj: any object.
        tick: as of `object_state.note_changes`.
    """
    object_state.note_changes(obj, tick)
    groups = object_state.take_due(obj)
    if not groups:
        return None
    layout = object_state.layout(obj)
    taker = layout.takers.get(groups)
    if taker is None:
        taker = layout.takers[groups] = make_taker(layout, groups)
    raw, intervals = taker(obj)
    if intervals:
        # High, low and averages of the new interval are a change: consoles must not show old ones.
        object_state.mark_statistics(obj)
    return PendingUpdate(obj, groups, raw, intervals)


def value_reader(layout: ClassLayout, groups: int) -> Reader:
    """The function that reads the plain values of some groups of an object, in wire order; made once for a class."""
    reader = layout.readers.get(groups)
    if reader is None:
        reader = layout.readers[groups] = make_reader(layout, groups)
    return reader


def read_raw_values(obj: StatefulObject, groups: int) -> RawValues:
    """Plain values in wire order, None for those that are absent; any thread."""
    return value_reader(object_state.layout(obj), groups)(obj)


def read(obj: StatefulObject, groups: int) -> dict[str, object]:
    """Values for the wire, by wire name, typed as in the schema (QMF2.md 6); any thread.

    Optional properties that are unset are absent. So are references that are unset or whose object has no id, optional
    or not: an empty object id on the wire looks like a real one, and consoles would query it.
    """
    return values_by_name(object_state.layout(obj), groups, read_raw_values(obj, groups)) if groups else {}


def values_by_name(layout: ClassLayout, groups: int, raw: RawValues) -> dict[str, object]:
    """Plain values by wire name, typed as in the schema; absent ones are left out."""
    return {
        name: value if wrapper is None else wrapper(value)
        for (name, wrapper), value in zip(layout.wire[groups], raw, strict=True)
        if value is not None
    }
