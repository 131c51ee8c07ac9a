"""Values of remote objects: updates merged over what was known, and compared (QMF2.md 4.7).

Neither unpacks values that stay encoded as they were received.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import attrs

from qmf.console.aio.objects.class_view import ClassView
from qmf.protocol import ObjectData
from qmf.protocol.objects import as_dict, compare_bytes, detached_values, merge_values, shared_names

Values = Mapping[str, object]

#: Different sets of names per class whose groups are remembered; agents send a handful.
MAX_GROUPS = 100


def detached(data: ObjectData) -> ObjectData:
    """The same object without a reference to the message that it was received in, so that it can be kept for long."""
    kept = detached_values(data.values)
    return data if kept is data.values else attrs.evolve(data, values=kept)


def value_groups(view: ClassView, values: Values) -> tuple[bool, bool]:
    """Whether an update holds properties, and whether it holds statistics."""
    names = shared_names(values)
    if names is None:
        return _groups(view, values)
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
    found = compare_bytes(before, after)
    if found is None:
        return None
    equal, update = found
    if equal:
        return False, False
    # Where all values are statistics, so is the one that differs.
    return (False, True) if view and value_groups(view, update) == (False, True) and view.has_all(update) else None
