"""A class schema prepared for reading objects: names to wire keys and types, made once per schema.

A statistic has one name in the schema and several on the wire (QMF2.md 6), and the names of QMFv1 differ from those of
QMFv2. Scripts use both, so every one of them is found here: `latencyAverage` reads `latencyAvg`.
"""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Iterator, Mapping
from uuid import UUID

import attrs

from qmf.errors import ProtocolError
from qmf.protocol import BROKER, ObjectId, from_wire
from qmf.protocol.objects.lazy_values import LazyValues
from qmf.schema import TYPES, ClassSchema, Property, QmfType, Statistic

#: What Python type a received value of a base type mostly has, and then is what the schema says without conversion.
_PLAIN: Mapping[str, type] = {
    **{kind.base: int for kind in TYPES.values() if kind.is_integer},
    **{"sstr": str, "lstr": str, "bool": bool, "float": float, "double": float, "uuid": UUID},
}

#: Different sets of names that a class remembers the groups of; agents send a handful.
MAX_GROUPS = 100


@attrs.frozen
class ValueField:
    """One value of an object.

    Attributes:
        key: its name in QMFv2 objects.
        type: type of the value: for statistics the base type, e.g. ``uint32`` for a ``hilo32``.
        member: the property or statistic that it belongs to.
        plain: as in `_PLAIN`.
    """

    key: str
    type: QmfType
    member: Property | Statistic
    plain: builtins.type | None = attrs.field(init=False)

    @plain.default
    def _plain_type(self) -> builtins.type | None:
        return _PLAIN.get(self.type.base)

    def read(self, value: object, agent: str) -> object:
        """A value from the wire, see `typed`."""
        return value if value.__class__ is self.plain else typed(self.type, value, agent)


def schema_name(name: str) -> str:
    """The name in the schema for one in a program: Python's keywords are written with ``_`` behind them."""
    return name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name


def typed(slot_type: QmfType, value: object, agent: str) -> object:
    """A value from the wire as its schema type says; references without an agent belong to `agent`.

    What doesn't fit the type is returned as it came: a foreign agent's mistake must not hide the value.
    """
    if value is None or value.__class__ is _PLAIN.get(slot_type.base):
        return value
    try:
        result = from_wire(slot_type, value)
    except ProtocolError:
        return value
    if isinstance(result, ObjectId):
        return with_agent(result, agent)
    return result


def with_agent(object_id: ObjectId, agent: str) -> ObjectId:
    """The id with the name of its agent, which qpidd leaves out and may give as ``broker`` (QMF2.md 5.1)."""
    if object_id.agent_name and object_id.agent_name != BROKER:
        return object_id
    return ObjectId(object_id.object_name, agent, object_id.agent_epoch)


class ClassView:
    """How to read objects of one class.

    Attributes:
        schema: the class.
        properties, statistics: the wire values in schema order, by wire key.
        optional: names of the properties that an object may lack: optional ones, and references that name nothing.
    """

    __slots__ = ("_by_name", "_groups", "optional", "properties", "schema", "statistics")

    def __init__(self, schema: ClassSchema) -> None:
        self.schema = schema
        self._groups: dict[int, tuple[tuple[str, ...], tuple[bool, bool]]] = {}
        self.properties = {item.name: ValueField(item.name, item.type, item) for item in schema.properties}
        self.optional = frozenset(item.name for item in schema.properties if item.optional or item.type.name == "objId")
        self.statistics: dict[str, ValueField] = {}
        self._by_name = dict(self.properties)
        for statistic in schema.statistics:
            base = TYPES[statistic.type.base]
            for index, entry in enumerate(statistic.entries):
                # The count of an mma is a number even where its samples are times.
                kind = TYPES["uint64"] if len(statistic.entries) == 4 and index == 0 else base
                slot = ValueField(entry.name, kind, statistic)
                self.statistics[entry.name] = slot
                self._by_name.setdefault(entry.name, slot)
                self._by_name.setdefault(entry.v1_name, slot)

    def slot(self, name: str) -> ValueField | None:
        """The value that a program calls `name`, by any of its names; None when the class has none."""
        return self._by_name.get(name)

    def names(self) -> Iterator[str]:
        """Every name that `slot` finds."""
        return iter(self._by_name)

    def groups(self, values: Mapping[str, object]) -> tuple[bool, bool]:
        """Whether an update holds properties, and whether it holds statistics."""
        names = values.names if isinstance(values, LazyValues) else tuple(values)
        known = self._groups.get(id(names))
        if known is not None and known[0] is names:
            return known[1]
        found = any(map(self.properties.__contains__, names)), any(map(self.statistics.__contains__, names))
        if isinstance(values, LazyValues):
            if len(self._groups) >= MAX_GROUPS:
                self._groups.clear()
            self._groups[id(names)] = names, found
        return found

    def covers(self, values: Mapping[str, object]) -> bool:
        """True when the class knows all values of an update."""
        return all(name in self.properties or name in self.statistics for name in values)
