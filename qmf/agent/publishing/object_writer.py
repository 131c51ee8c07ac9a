"""Objects of one agent as items of a message's list, encoded by the encoders of their classes.

For ordinary messages an item is the object's map as bytes, the same bytes that the general encoder would make; its
properties are kept encoded until they change. For bodies in AMQP 1.0's own types, an item is an `ObjectData`, which the
general encoder encodes.

Belongs to the event loop's thread: encodings are dropped there when a change is noted (`object_state`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import PROPERTIES, STATISTICS, ClassLayout, FieldLayout
from qmf.agent.layout.object_state import ENTRIES
from qmf.agent.model.managed_object import ManagedObject
from qmf.agent.model.object_values import value_reader, values_by_name
from qmf.agent.model.value_readers import RawValues
from qmf.agent.objects.object_store import ManagedObjectStore, object_data
from qmf.protocol import BodyForm, ObjectData, ObjectId, ObjectsIndication, ObjectsResponse
from qmf.protocol.objects import Column, Encode, ObjectEncoder, encode_object, entry_encoder, list_body

#: An object in a message: encoded, or for the general encoder.
Item = bytes | ObjectData

#: Content of a message, and its body if that is encoded.
Message = tuple[ObjectsResponse | ObjectsIndication, bytes | None]


class ObjectWriter:
    """Writes the objects of one agent."""

    def __init__(self, store: ManagedObjectStore, form: BodyForm) -> None:
        self._tick = store.changes.tick
        self._empty = store.object_id("")
        self._plain = form is not BodyForm.DATA010
        self._classes: dict[type[ManagedObject], _ClassWriter] = {}

    def whole(self, obj: ManagedObject) -> Item:
        """An object of the store with all of its values.

        Raises:
            EncodeError: it cannot be encoded.
        """
        if self._plain:
            return object_data(obj, obj._qmf_values())
        writer = self._class(obj)
        known = object_state.kept_encoding(obj, ENTRIES, self._tick)
        if known is None:
            known = writer.encoder(PROPERTIES)(writer.read_properties(obj))
            object_state.keep_encoding(obj, ENTRIES, known)
        properties, count = known
        statistics, more = writer.encode_statistics(writer.read_statistics(obj))
        return writer.object(*object_state.id_and_times(obj), (properties + statistics, count + more))

    def part(self, obj: ManagedObject, groups: int, raw: RawValues) -> Item:
        """An object of the store with some values that were read before.

        Raises:
            EncodeError: they cannot be encoded.
        """
        if self._plain:
            return object_data(obj, values_by_name(object_state.layout(obj), groups, raw))
        writer = self._class(obj)
        return writer.object(*object_state.id_and_times(obj), writer.encoder(groups)(raw))

    def name_only(self, obj: ManagedObject) -> Item:
        """An object of the store without values."""
        if self._plain:
            return object_data(obj, {})
        return self._class(obj).object(*object_state.id_and_times(obj), (b"", 0))

    def values(self, layout: ClassLayout, data: ObjectData, names: frozenset[str]) -> Item:  # noqa: ARG002  # see below
        """As `data`; writers of rows need the layout, and the wire names that the values may have."""
        return self.data(data)

    def data(self, data: ObjectData) -> Item:
        """Any object.

        Raises:
            EncodeError: it cannot be encoded.
        """
        return data if self._plain else encode_object(data)

    def content(self, kind: type[ObjectsResponse] | type[ObjectsIndication], items: Sequence[object]) -> Message:
        """Items as the content of a message, and its body if that is encoded."""
        if self._plain:
            return kind([item for item in items if isinstance(item, ObjectData)]), None
        return kind(()), list_body([item for item in items if isinstance(item, bytes)])

    def _class(self, obj: ManagedObject) -> _ClassWriter:
        writer = self._classes.get(type(obj))
        if writer is None:
            writer = self._classes[type(obj)] = _ClassWriter(object_state.layout(obj), self._empty)
        return writer


class _ClassWriter:
    """The functions that read the values of one class's objects, encode them, and put an object together."""

    __slots__ = ("encode_statistics", "encoder", "object", "read_properties", "read_statistics")

    def __init__(self, layout: ClassLayout, empty: ObjectId) -> None:
        self.object = ObjectEncoder(layout.key, empty).object
        self.encoder = functools.partial(_encoder, layout)
        self.encode_statistics = self.encoder(STATISTICS)
        self.read_properties = value_reader(layout, PROPERTIES)
        self.read_statistics = value_reader(layout, STATISTICS)


def _encoder(layout: ClassLayout, groups: int) -> Encode:
    """The function that encodes the values of some groups; made once for a class, for all agents of the program."""
    encoder = layout.encoders.get(groups)
    if encoder is None:
        encoder = layout.encoders[groups] = entry_encoder(columns_of(layout, groups), layout.schema.name)
    return encoder


def columns_of(layout: ClassLayout, groups: int) -> list[Column]:
    """The values of some groups, in wire order."""
    return [Column(name, base, may_be_absent(field)) for field in layout.fields(groups) for name, base in field.wire]


def may_be_absent(field: FieldLayout) -> bool:
    """Whether the values of a field can be None."""
    return field.optional or field.type.base == "objId"
