"""Objects of one agent as items of the messages to subscribers that read rows (docs/protocol.md).

What does not fit a row is an ordinary object in the same message. The functions are those of `ObjectWriter`.
"""

from __future__ import annotations

from collections.abc import Sequence

from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import ClassLayout
from qmf.agent.model.managed_object import ManagedObject
from qmf.agent.model.object_values import values_by_name
from qmf.agent.model.value_readers import RawValues
from qmf.agent.objects.object_store import object_data
from qmf.agent.publishing.object_writer import Message
from qmf.agent.publishing.row_writer import Row, RowWriter, content
from qmf.codec.errors import EncodeError
from qmf.protocol import ObjectData, ObjectsIndication, ObjectsResponse
from qmf.protocol.objects import encode_block, encode_object, list_body


class RowObjectWriter:
    """Writes the objects of one agent as rows."""

    def __init__(self, rows: RowWriter) -> None:
        self._rows = rows

    def whole(self, obj: ManagedObject) -> Row | ObjectData:
        """An object of the store with all of its values."""
        try:
            return self._rows.whole(obj)
        except EncodeError:
            return object_data(obj, obj._qmf_values())

    def part(self, obj: ManagedObject, groups: int, raw: RawValues) -> Row | ObjectData:
        """An object of the store with some values that were read before."""
        try:
            return self._rows.part(obj, groups, raw)
        except EncodeError:
            return object_data(obj, values_by_name(object_state.layout(obj), groups, raw))

    def values(self, layout: ClassLayout, data: ObjectData, names: frozenset[str]) -> Row | ObjectData:
        """Any object that is not deleted; `names` are the wire names that its values may have."""
        try:
            return self._rows.data(layout, data, names)
        except EncodeError:
            return data

    def data(self, data: ObjectData) -> ObjectData:
        """Any object, as an ordinary one."""
        return data

    def content(self, kind: type[ObjectsResponse] | type[ObjectsIndication], items: Sequence[object]) -> Message:
        """Items as the content of a message, and its body.

        Raises:
            EncodeError: an ordinary object cannot be encoded.
        """
        found = content(kind, [item for item in items if isinstance(item, tuple | ObjectData)])
        blocks = [encode_block(block) for block in found.blocks]
        return kind(()), list_body([*blocks, *map(encode_object, found.objects)])
