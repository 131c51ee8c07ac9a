"""Objects of one agent as items of a message's list: encoded with what their class knows.

For ordinary messages an item is the object's map as bytes, the same bytes that the general encoder would make; its
properties are kept encoded until they change. Where bodies are written in AMQP 1.0's own types, an item is an
`ObjectData`, and the general encoder does it all.

Belongs to the event loop's thread: what is kept is dropped there when a change is noted (`qmf.agent.model.values`).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from qmf.agent.layout.class_layout import BOTH, PROPERTIES, PROPERTIES_CELL, STATISTICS, ClassLayout, FieldLayout
from qmf.agent.layout.references import Referable
from qmf.agent.model.collecting import RawValues
from qmf.agent.model.managed_object import ManagedObject
from qmf.agent.model.values import note_changes, read_raw_values, values_by_name
from qmf.agent.objects.object_store import ManagedObjectStore, object_data
from qmf.codec.errors import EncodeError
from qmf.protocol import BodyForm, ObjectData, ObjectId, ObjectsIndication, ObjectsResponse
from qmf.protocol.maps import class_key_to_map, object_id_to_map, object_to_map, wire_value
from qmf.protocol.objects.keyed_encoding import (
    ANY,
    FIXED_CODES,
    TEXT,
    Column,
    Encode,
    entry_encoder,
    key,
    list_body,
    map_value,
    value_bytes,
)
from qmf.schema import QmfType

#: An object on its way into a message.
Item = bytes | ObjectData

#: Content of a message, and its body if that is encoded already.
Message = tuple[ObjectsResponse | ObjectsIndication, bytes | None]

#: Levels around the values of an object: the list of a message, the object, its values.
_DEPTH = 2

#: Names with fewer characters fit a str16 whatever they are.
_SHORT = 1 << 14

_HEAD = struct.Struct(">BII8sBII").pack
_ID = struct.Struct(">11sBII14sH").pack
_TIMES = struct.Struct(">12sQ12sQ12sQ").pack
_VALUES_KEY = key("_values")
_ID_KEY = key("_object_id")
_NAME_KEY = key("_object_name") + b"\x95"
_TIME_KEYS = tuple(key(name) + b"\x32" for name in ("_update_ts", "_create_ts", "_delete_ts"))
_UPDATE_KEY, _CREATE_KEY, _DELETE_KEY = _TIME_KEYS

#: Bytes of an object's map behind its size field that are always there: its count, key and head of the values, key and
#: head of the id, key and head of the name.
_FIXED = 4 + (8 + 9) + (11 + 9) + (14 + 2)
_ID_FIXED = 4 + (14 + 2)
_TIMES_SIZE = 60


def code_of(base: QmfType) -> int:
    """The type code of a column for values of a direct type."""
    return TEXT if base.is_string else FIXED_CODES.get(base.name, ANY)


def nested(layout: ClassLayout, groups: int) -> tuple[int, ...]:
    """Positions of references, maps and lists: object ids in them must become maps."""
    bases = [base for field in layout.fields(groups) for _, base in field.wire]
    return tuple(number for number, base in enumerate(bases) if code_of(base) == ANY)


class ObjectWriter:
    """Writes the objects of one agent."""

    def __init__(self, store: ManagedObjectStore, form: BodyForm) -> None:
        self.store = store
        self._plain = form is not BodyForm.DATA010
        self._classes: dict[ClassLayout, _ClassWriter] = {}

    def whole(self, obj: ManagedObject) -> Item:
        """An object of the store with all of its values.

        Raises:
            EncodeError: it cannot be encoded.
        """
        if obj._qmf_cells[PROPERTIES_CELL]:
            note_changes(obj, self.store.tick())
        if self._plain:
            return object_data(obj, obj._qmf_values())
        writer = self._class(obj._qmf_layout)
        properties, count = writer.properties(obj)
        statistics, more = writer.entries(STATISTICS, read_raw_values(obj, STATISTICS))
        return writer.item(obj, properties + statistics, count + more)

    def part(self, obj: ManagedObject, groups: int, raw: RawValues) -> Item:
        """Some values of an object of the store, as they were read.

        Raises:
            EncodeError: they cannot be encoded.
        """
        if self._plain:
            return object_data(obj, values_by_name(obj._qmf_layout, groups, raw))
        writer = self._class(obj._qmf_layout)
        return writer.item(obj, *writer.entries(groups, raw))

    def name_only(self, obj: ManagedObject) -> Item:
        """An object of the store without values."""
        return object_data(obj, {}) if self._plain else self._class(obj._qmf_layout).item(obj, b"", 0)

    def data(self, data: ObjectData) -> Item:
        """Any object.

        Raises:
            EncodeError: it cannot be encoded.
        """
        return data if self._plain else value_bytes(object_to_map(data))

    def content(self, kind: type[ObjectsResponse] | type[ObjectsIndication], items: Sequence[Item]) -> Message:
        """Items as what a message says, and its body where that is encoded already."""
        if self._plain:
            return kind([item for item in items if isinstance(item, ObjectData)]), None
        return kind(()), list_body([item for item in items if isinstance(item, bytes)])

    def _class(self, layout: ClassLayout) -> _ClassWriter:
        writer = self._classes.get(layout)
        if writer is None:
            writer = self._classes[layout] = _ClassWriter(layout, self.store.object_id(""))
        return writer


class _ClassWriter:
    """What is constant in the maps of one class's objects."""

    def __init__(self, layout: ClassLayout, empty: ObjectId) -> None:
        """Make one.

        Args:
            layout: of the class.
            empty: the id of an object of the agent that has no name.
        """
        self._layout = layout
        self._references = tuple(field.cell for field in layout.references)
        self._encoders: dict[int, Encode] = {}
        self._nested = {groups: nested(layout, groups) for groups in (PROPERTIES, STATISTICS, BOTH)}
        others = object_id_to_map(empty)
        del others["_object_name"]
        self._id_count = 1 + len(others)
        self._id_rest = b"".join(key(name) + value_bytes(value) for name, value in others.items())
        self._schema = key("_schema_id") + value_bytes(class_key_to_map(layout.key))
        self._rest = self._id_rest + self._schema

    def entries(self, groups: int, raw: RawValues) -> tuple[bytes, int]:
        """Values as entries of a map, and their number."""
        positions = self._nested[groups]
        values: Any = raw
        if positions:
            values = list(raw)
            for position in positions:
                values[position] = wire_value(values[position])
        encode = self._encoders.get(groups)
        if encode is None:
            encode = self._encoders[groups] = self._make_encoder(groups)
        return encode(values)

    def properties(self, obj: ManagedObject) -> tuple[bytes, int]:
        """The properties of an object as entries of a map, and their number."""
        known = obj._qmf_encoded
        if known is not None and not obj._qmf_cells[PROPERTIES_CELL]:
            return known
        found = self.entries(PROPERTIES, read_raw_values(obj, PROPERTIES))
        if may_be_kept(obj, self._references):
            obj._qmf_encoded = found
        return found

    def item(self, obj: ManagedObject, entries: bytes, count: int) -> bytes:
        """The map of an object, type code included."""
        assert obj._qmf_id is not None
        name = obj._qmf_id.object_name
        update, create = obj._qmf_update_ts, obj._qmf_create_ts
        if not name.isascii() or len(name) >= _SHORT or not (update or create):
            return self._general(obj, entries, count)
        size = len(entries)
        rest = self._rest
        length = len(name)
        try:
            times = _TIMES(_UPDATE_KEY, update, _CREATE_KEY, create, _DELETE_KEY, 0)
        except struct.error as error:
            raise EncodeError(f"a time of {name} cannot be encoded: {error}") from None
        return b"".join(
            (
                _HEAD(
                    0xA8,
                    _FIXED + size + length + len(rest) + _TIMES_SIZE,
                    6,
                    _VALUES_KEY,
                    0xA8,
                    size + 4,
                    count,
                ),
                entries,
                _ID(_ID_KEY, 0xA8, _ID_FIXED + length + len(self._id_rest), self._id_count, _NAME_KEY, length),
                name.encode(),
                rest,
                times,
            )
        )

    def _general(self, obj: ManagedObject, entries: bytes, count: int) -> bytes:
        """As `item`, for names and times that are out of the ordinary."""
        fields = object_to_map(object_data(obj, {}))
        del fields["_values"]
        others = b"".join(key(name) + value_bytes(value) for name, value in fields.items())
        return map_value(_VALUES_KEY + map_value(entries, count) + others, 1 + len(fields))

    def _make_encoder(self, groups: int) -> Encode:
        columns = [
            Column(name, code_of(base), optional=may_be_absent(field))
            for field in self._layout.fields(groups)
            for name, base in field.wire
        ]
        return entry_encoder(columns, _DEPTH, f"{self._layout.schema.name} {groups}")


def may_be_absent(field: FieldLayout) -> bool:
    """Whether the values of a field can be None."""
    return field.optional or field.type.base == "objId"


def may_be_kept(obj: ManagedObject, references: tuple[int, ...]) -> bool:
    """Whether properties that were just encoded may be used again, until a change is noted.

    Not while one changed meanwhile, nor while a reference is held as an object: its id may come or change unnoticed.
    """
    cells = obj._qmf_cells
    if cells[PROPERTIES_CELL] or obj._qmf_pending:
        return False
    return not any(isinstance(cells[cell], Referable) for cell in references)
