"""Values of remote objects: updates merged over what was known, and compared, without unpacking either (QMF2.md 4.7).

Agents send the properties of an object, or its statistics, or both; objects are read far less often than they are
updated. So values stay encoded as they were received, and a value is looked up in the newest update that has it. This
is the only module of the console that knows of encoded values; all others see mappings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import attrs

from qmf.console.aio.objects.class_view import ClassView
from qmf.protocol import ObjectData
from qmf.protocol.objects.lazy_values import LazyValues

Values = Mapping[str, object]

#: Different sets of names per class whose groups are remembered; agents send a handful.
MAX_GROUPS = 100


class MergedValues(Mapping[str, object]):
    """Two sets of values, the newer over the older. Read-only.

    Attributes:
        newer, older: the values.
        hidden: names whose older value is no longer valid.
    """

    __slots__ = ("hidden", "newer", "older")

    def __init__(self, newer: LazyValues, older: Values, hidden: frozenset[str]) -> None:
        self.newer = newer
        self.older = older
        self.hidden = hidden

    def __getitem__(self, name: str) -> object:
        if name in self.newer:
            return self.newer[name]
        if name in self.hidden:
            raise KeyError(name)
        return self.older[name]

    def __contains__(self, name: object) -> bool:
        return name in self.newer or (name in self.older and name not in self.hidden)

    def __iter__(self) -> Iterator[str]:
        return iter(self.unpacked())

    def __len__(self) -> int:
        return len(self.unpacked())

    def __repr__(self) -> str:
        return repr(self.unpacked())

    def unpacked(self) -> dict[str, object]:
        """All values, as a new dictionary."""
        kept = as_dict(self.older)
        for name in self.hidden:
            kept.pop(name, None)
        kept.update(self.newer.unpacked())
        return kept


def as_dict(values: Values) -> dict[str, object]:
    """Values of any kind as a new dictionary."""
    return values.unpacked() if isinstance(values, LazyValues | MergedValues) else dict(values)


def detached(data: ObjectData) -> ObjectData:
    """The same object without a reference to the message that it was received in, so that it can be kept for long."""
    values = data.values
    return attrs.evolve(data, values=values.detached()) if isinstance(values, LazyValues) else data


def value_groups(view: ClassView, values: Values) -> tuple[bool, bool]:
    """Whether an update holds properties, and whether it holds statistics."""
    if not isinstance(values, LazyValues):
        return _groups(view, values)
    names = values.names
    known = view.groups.get(id(names))
    if known is not None and known[0] is names:
        return known[1]
    if len(view.groups) >= MAX_GROUPS:
        view.groups.clear()
    found = _groups(view, names)
    view.groups[id(names)] = names, found
    return found


def _groups(view: ClassView, names: Collection[str]) -> tuple[bool, bool]:
    return any(map(view.properties.__contains__, names)), any(map(view.statistics.__contains__, names))


def is_another(known: ObjectData, newer: ObjectData) -> bool:
    """True when two states under one id belong to two objects, created one after the other."""
    old, new = known.create_ts, newer.create_ts
    return bool(old and new and old != new)


def merge(old: ObjectData, new: ObjectData, view: ClassView | None) -> ObjectData:
    """An object with an update merged over it (QMF2.md 4.7).

    An update holds the properties, or the statistics, or both. An optional property that is missing from an update with
    properties is no longer set.
    """
    unset: list[str] = []
    if view is not None and value_groups(view, new.values)[0]:
        unset = [name for name in view.optional if name not in new.values]
    return ObjectData(
        values=merge_values(old.values, new.values, unset),
        object_id=old.object_id,
        class_key=new.class_key or old.class_key,
        update_ts=new.update_ts or old.update_ts,
        create_ts=new.create_ts or old.create_ts,
        delete_ts=new.delete_ts or old.delete_ts,
        subtypes={**old.subtypes, **new.subtypes} if new.subtypes else old.subtypes,
        left=old.left,
    )


def merge_values(older: Values, newer: Values, unset: Collection[str]) -> Values:
    """Merge an update over older values.

    Args:
        older: what was known.
        newer: the update.
        unset: names that the update lacks and whose older value is no longer valid.
    """
    hidden = frozenset(name for name in unset if name in older)
    if not isinstance(newer, LazyValues):
        kept = as_dict(older)
        for name in hidden:
            kept.pop(name, None)
        kept.update(newer)
        return kept
    newer = newer.detached()
    if isinstance(older, MergedValues):
        # Two sets are enough: an update replaces the last one of its group.
        if _has_all(newer, older.newer):
            hidden |= older.hidden
            older = older.older
        else:
            older = as_dict(older)
    if isinstance(older, LazyValues):
        if _has_all(newer, older):
            return newer
        older = older.detached()
    return MergedValues(newer, older, hidden)


def _has_all(newer: LazyValues, older: LazyValues) -> bool:
    """True when an update has every value that an older one has."""
    names, before = newer.names, older.names
    return names is before or (len(names) >= len(before) and set(names).issuperset(before))


def difference(old: ObjectData, new: ObjectData, view: ClassView | None) -> tuple[bool, bool]:
    """Whether properties, and whether statistics, differ between two states of an object.

    Values that are neither, because the schema is not known, count as properties.
    """
    encoded = _encoded_difference(old.values, new.values, view)
    if encoded is not None:
        return encoded
    before, after = as_dict(old.values), as_dict(new.values)
    names = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    if view is None:
        return bool(names), False
    statistics = names & view.statistics.keys()
    return len(names) > len(statistics), bool(statistics)


def _encoded_difference(before: Values, after: Values, view: ClassView | None) -> tuple[bool, bool] | None:
    """The difference where bytes and names are enough to find it; None where values have to be unpacked."""
    if isinstance(after, MergedValues) and not after.hidden:
        if after.older is before:
            return None  # the first update of a group: the same values may have been known
        if not isinstance(before, MergedValues) or before.hidden or after.older is not before.older:
            return None
        before, after = before.newer, after.newer
    if not isinstance(before, LazyValues) or not isinstance(after, LazyValues) or before.layout is not after.layout:
        return None
    if before.raw() == after.raw():
        return False, False
    if view is None or before.names != after.names:
        return None
    # Where all values are statistics, so is the one that differs.
    return (False, True) if value_groups(view, after) == (False, True) and view.has_all(after) else None
