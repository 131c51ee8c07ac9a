"""The values of managed objects on their way to the wire: reading, taking for a publication, giving back.

Belongs to the event loop's thread but for reading. Other threads may change an object meanwhile: marks are cleared
before values are read, and an accessor takes its interval in one step, so a change shows up now or the next time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qmf.agent.accessors import Interval
from qmf.agent.derived import number
from qmf.agent.layout import PROPERTIES, PROPERTIES_CELL, STATISTICS, STATISTICS_CELL
from qmf.agent.references import Referable, is_pending, resolve

if TYPE_CHECKING:
    from qmf.agent.model import ManagedObject


class Taken:
    """What the publisher took from an object, until it is known to have been sent.

    Attributes:
        object: whose it is.
        groups: the groups of values in it.
        values: for the wire.
    """

    __slots__ = ("_intervals", "groups", "object", "values")

    def __init__(
        self, obj: ManagedObject, groups: int, values: dict[str, object], intervals: list[tuple[str, Interval]]
    ) -> None:
        self.object = obj
        self.groups = groups
        self.values = values
        self._intervals = intervals

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
    if cells[PROPERTIES_CELL]:
        cells[PROPERTIES_CELL] = False
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


def is_dirty(obj: ManagedObject) -> bool:
    """Whether a publication would find something."""
    cells = obj._qmf_cells
    return bool(cells[PROPERTIES_CELL] or cells[STATISTICS_CELL] or obj._qmf_due or obj._qmf_pending)


def take(obj: ManagedObject, tick: int) -> Taken | None:
    """What changed, with a new interval; None if nothing did."""
    note_changes(obj, tick)
    groups = obj._qmf_due
    if not groups:
        return None
    obj._qmf_due = 0
    raw: list[Any] = []
    intervals: list[tuple[str, Interval]] = []
    cells = obj._qmf_cells
    for field in obj._qmf_layout.fields(groups):
        if field.direct:
            raw.append(cells[field.cell])
            continue
        values, interval = getattr(obj, field.slot)._take()
        raw.extend(values)
        if interval is not None:
            intervals.append((field.slot, interval))
    if intervals:
        # High, low and averages that go back to rest are a change: consoles shall not show old ones.
        cells[STATISTICS_CELL] = True
    return Taken(obj, groups, _encoded(obj, groups, raw), intervals)


def read(obj: ManagedObject, groups: int) -> dict[str, object]:
    """Values for the wire, by wire name, typed as in the schema (QMF2.md 6); any thread.

    Optional properties that are unset are absent. So are references that are unset or whose object has no id, optional
    or not: an empty object id on the wire looks like a real one, and consoles would query it.
    """
    if not groups:
        return {}
    raw: list[Any] = []
    cells = obj._qmf_cells
    for field in obj._qmf_layout.fields(groups):
        if field.direct:
            raw.append(cells[field.cell])
        else:
            raw.extend(getattr(obj, field.slot)._read())
    return _encoded(obj, groups, raw)


def _encoded(obj: ManagedObject, groups: int, raw: list[Any]) -> dict[str, object]:
    layout = obj._qmf_layout
    if layout.derived and groups & STATISTICS:
        _derive(obj, groups, raw)
    result: dict[str, object] = {}
    for (name, wrapper), value in zip(layout.wire[groups], raw, strict=True):
        if value is None:
            continue
        if wrapper is not None:
            result[name] = wrapper(value)
        elif isinstance(value, Referable):
            target = resolve(value)
            if target is not None:
                result[name] = target
        else:
            result[name] = value
    return result


def _derive(obj: ManagedObject, groups: int, raw: list[Any]) -> None:
    """Compute formulas from the very values that are sent with them."""
    layout = obj._qmf_layout
    position = layout.positions[groups]
    sources = {
        field.name: raw[position[field]] or 0 if field in position else number(obj, field) for field in layout.sources
    }
    for field in layout.derived:
        start = position[field]
        raw[start : start + len(field.wire)] = [field.derived(sources)] * len(field.wire)
