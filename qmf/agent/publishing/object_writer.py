"""Objects of one agent as items of a message's list: encoded with what their class knows.

For ordinary messages an item is the object's map as bytes, the same bytes that the general encoder would make; its
properties are kept encoded until they change. Where bodies are written in AMQP 1.0's own types, an item is an
`ObjectData`, and the general encoder does it all.

Belongs to the event loop's thread: what is kept is dropped there when a change is noted (`qmf.agent.model.values`).
"""

from __future__ import annotations

from collections.abc import Sequence

from qmf.agent.layout.class_layout import PROPERTIES, PROPERTIES_CELL, STATISTICS, ClassLayout, FieldLayout
from qmf.agent.layout.references import Referable
from qmf.agent.model.managed_object import ManagedObject
from qmf.agent.model.value_readers import RawValues
from qmf.agent.model.values import note_changes, read_raw_values, values_by_name
from qmf.agent.objects.object_store import ManagedObjectStore, object_data
from qmf.protocol import BodyForm, ObjectData, ObjectsIndication, ObjectsResponse
from qmf.protocol.objects import Column, Entries, ObjectEncoder, encode_object, list_body

#: An object on its way into a message.
Item = bytes | ObjectData

#: Content of a message, and its body if that is encoded already.
Message = tuple[ObjectsResponse | ObjectsIndication, bytes | None]


class ObjectWriter:
    """Writes the objects of one agent."""

    def __init__(self, store: ManagedObjectStore, form: BodyForm) -> None:
        self.store = store
        self._plain = form is not BodyForm.DATA010
        self._encoders: dict[ClassLayout, ObjectEncoder] = {}

    def whole(self, obj: ManagedObject) -> Item:
        """An object of the store with all of its values.

        Raises:
            EncodeError: it cannot be encoded.
        """
        if obj._qmf_cells[PROPERTIES_CELL]:
            note_changes(obj, self.store.tick())
        if self._plain:
            return object_data(obj, obj._qmf_values())
        encoder = self._encoder(obj._qmf_layout)
        properties, count = _properties(obj, encoder)
        statistics, more = encoder.entries(STATISTICS, read_raw_values(obj, STATISTICS))
        return _item(obj, encoder, (properties + statistics, count + more))

    def part(self, obj: ManagedObject, groups: int, raw: RawValues) -> Item:
        """Some values of an object of the store, as they were read.

        Raises:
            EncodeError: they cannot be encoded.
        """
        if self._plain:
            return object_data(obj, values_by_name(obj._qmf_layout, groups, raw))
        encoder = self._encoder(obj._qmf_layout)
        return _item(obj, encoder, encoder.entries(groups, raw))

    def name_only(self, obj: ManagedObject) -> Item:
        """An object of the store without values."""
        return object_data(obj, {}) if self._plain else _item(obj, self._encoder(obj._qmf_layout), (b"", 0))

    def data(self, data: ObjectData) -> Item:
        """Any object.

        Raises:
            EncodeError: it cannot be encoded.
        """
        return data if self._plain else encode_object(data)

    def content(self, kind: type[ObjectsResponse] | type[ObjectsIndication], items: Sequence[Item]) -> Message:
        """Items as the content of a message, and its body where that is encoded already."""
        if self._plain:
            return kind([item for item in items if isinstance(item, ObjectData)]), None
        return kind(()), list_body([item for item in items if isinstance(item, bytes)])

    def _encoder(self, layout: ClassLayout) -> ObjectEncoder:
        encoder = self._encoders.get(layout)
        if encoder is None:
            parts = {groups: columns_of(layout, groups) for groups in layout.wire}
            encoder = self._encoders[layout] = ObjectEncoder(layout.key, self.store.object_id(""), parts)
        return encoder


def _properties(obj: ManagedObject, encoder: ObjectEncoder) -> Entries:
    """The properties of an object, encoded."""
    known = obj._qmf_encoded
    if known is not None and not obj._qmf_cells[PROPERTIES_CELL]:
        return known
    found = encoder.entries(PROPERTIES, read_raw_values(obj, PROPERTIES))
    if may_be_kept(obj):
        obj._qmf_encoded = found
    return found


def _item(obj: ManagedObject, encoder: ObjectEncoder, entries: Entries) -> bytes:
    assert obj._qmf_id is not None
    return encoder.object(obj._qmf_id, obj._qmf_update_ts, obj._qmf_create_ts, *entries)


def columns_of(layout: ClassLayout, groups: int) -> list[Column]:
    """The values of some groups, in wire order."""
    return [Column(name, base, may_be_absent(field)) for field in layout.fields(groups) for name, base in field.wire]


def may_be_absent(field: FieldLayout) -> bool:
    """Whether the values of a field can be None."""
    return field.optional or field.type.base == "objId"


def may_be_kept(obj: ManagedObject) -> bool:
    """Whether properties that were just encoded may be used again, until a change is noted.

    Not while one changed meanwhile, nor while a reference is held as an object: its id may come or change unnoticed.
    """
    cells = obj._qmf_cells
    if cells[PROPERTIES_CELL] or obj._qmf_pending:
        return False
    return not any(isinstance(cells[field.cell], Referable) for field in obj._qmf_layout.references)
