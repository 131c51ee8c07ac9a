"""Class fields: schemas prepared for reading objects, and updates of objects merged and compared by them.

A statistic has one name in the schema and several on the wire (QMF2.md 6), and the names of QMFv1 differ from those of
QMFv2. Scripts use both, so class fields know them all: `latencyAverage` reads `latencyAvg`. Merging and comparing does
not unpack values that stay encoded as they were received (QMF2.md 4.7).
"""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterator, Mapping

import attrs

from qmf.console.aio.objects.values import PreparedMethod, convert_value, plain_type
from qmf.protocol import ObjectData
from qmf.protocol.objects import as_dict, compare_bytes, detached_values, make_object, merge_values, shared_names
from qmf.schema import TYPES, ClassSchema, Property, QmfType, Statistic

Values = Mapping[str, object]

#: Different sets of names per class whose groups are remembered; agents send a handful.
MAX_GROUPS = 100


@attrs.frozen
class ValueField:
    """How to read one value of an object.

    Attributes:
        key: its name in QMFv2 objects.
        type: type of the value: for statistics the base type, e.g. ``uint32`` for a ``hilo32``.
        member: the property or statistic that it belongs to.
        plain: Python type of values that need no conversion, or None.
    """

    key: str
    type: QmfType
    member: Property | Statistic
    plain: builtins.type | None = attrs.field(init=False)

    @plain.default
    def _plain_type(self) -> builtins.type | None:
        return plain_type(self.type)

    def read(self, value: object, agent: str) -> object:
        """A value from the wire, see `convert_value`."""
        return value if value.__class__ is self.plain else convert_value(self.type, value, agent)


class ClassFields:
    """How to read objects of one class and call their methods.

    Attributes:
        schema: the class.
        properties, statistics: the wire values in schema order, by wire key.
        methods: its methods by name.
        optional: names of the properties that an object may lack: optional ones, and references that are not set.
        groups: for `value_groups`, by the identity of the names of an update.
    """

    __slots__ = ("_by_name", "groups", "methods", "optional", "properties", "schema", "statistics")

    def __init__(self, schema: ClassSchema) -> None:
        self.schema = schema
        self.groups: dict[int, tuple[tuple[str, ...], tuple[bool, bool, bool]]] = {}
        self.methods = {item.name: PreparedMethod(schema, item) for item in schema.methods}
        self.properties = {item.name: ValueField(item.name, item.type, item) for item in schema.properties}
        self.optional = frozenset(item.name for item in schema.properties if item.optional or item.type.name == "objId")
        self.statistics: dict[str, ValueField] = {}
        self._by_name = dict(self.properties)
        for statistic in schema.statistics:
            base = TYPES[statistic.type.base]
            for index, entry in enumerate(statistic.entries):
                # The count of an mma is a number even where its samples are times.
                kind = TYPES["uint64"] if len(statistic.entries) == 4 and index == 0 else base
                field = ValueField(entry.name, kind, statistic)
                self.statistics[entry.name] = field
                self._by_name.setdefault(entry.name, field)
                self._by_name.setdefault(entry.v1_name, field)

    def field(self, name: str) -> ValueField | None:
        """The value with this name, in any version of QMF; None when the class has no such value."""
        return self._by_name.get(name)

    def names(self) -> Iterator[str]:
        """Every name that `field` finds."""
        return iter(self._by_name)


def detach_data(data: ObjectData) -> ObjectData:
    """The same object without a reference to the message that it was received in, so that it can be kept for long."""
    kept = detached_values(data.values)
    if kept is data.values:
        return data
    return make_object(
        kept,
        data.object_id,
        data.class_key,
        data.update_ts,
        data.create_ts,
        data.delete_ts,
        data.subtypes,
        data.left,
    )


def value_groups(fields: ClassFields, values: Values) -> tuple[bool, bool]:
    """Whether an update holds properties, and whether it holds statistics."""
    return _value_groups(fields, values)[:2]


def _value_groups(fields: ClassFields, values: Values) -> tuple[bool, bool, bool]:
    """As `value_groups`, and whether it holds values that the class does not have."""
    names = shared_names(values)
    if names is None:
        return _groups(fields, values)
    known = fields.groups.get(id(names))
    if known is not None and known[0] is names:
        return known[1]
    if len(fields.groups) >= MAX_GROUPS:
        fields.groups.clear()
    found = _groups(fields, names)
    fields.groups[id(names)] = names, found
    return found


def _groups(fields: ClassFields, names: Collection[str]) -> tuple[bool, bool, bool]:
    has_property, has_statistic = fields.properties.__contains__, fields.statistics.__contains__
    others = any(not (has_property(name) or has_statistic(name)) for name in names)
    return any(map(has_property, names)), any(map(has_statistic, names)), others


def is_another(known: ObjectData, newer: ObjectData) -> bool:
    """True when two states under one id belong to two objects, created one after the other."""
    old, new = known.create_ts, newer.create_ts
    return bool(old and new and old != new)


def merge(old: ObjectData, new: ObjectData, fields: ClassFields | None) -> ObjectData:
    """An object with an update merged over it (QMF2.md 4.7).

    An update holds the properties, or the statistics, or both. An optional property that is missing from an update with
    properties is no longer set.
    """
    unset: list[str] = []
    if fields is not None and value_groups(fields, new.values)[0]:
        unset = [name for name in fields.optional if name not in new.values]
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


def difference(old: ObjectData, new: ObjectData, fields: ClassFields | None) -> tuple[bool, bool]:
    """Whether properties, and whether statistics, differ between two states of an object.

    Values that are neither, because the schema is not known, count as properties.
    """
    encoded = _encoded_difference(old.values, new.values, fields)
    if encoded is not None:
        return encoded
    before, after = as_dict(old.values), as_dict(new.values)
    names = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    if fields is None:
        return bool(names), False
    statistics = names & fields.statistics.keys()
    return len(names) > len(statistics), bool(statistics)


def _encoded_difference(before: Values, after: Values, fields: ClassFields | None) -> tuple[bool, bool] | None:
    """The difference where bytes and names are enough to find it; None where values have to be unpacked."""
    found = compare_bytes(before, after)
    if found is None:
        return None
    equal, update = found
    if equal:
        return False, False
    # Where all values are statistics, so is the one that differs.
    return (False, True) if fields and _value_groups(fields, update) == (False, True, False) else None
