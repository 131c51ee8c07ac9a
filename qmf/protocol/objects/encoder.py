"""Encoding objects and events of one class as items of a message's list.

The bytes are those that the general encoder makes of the map of an object or event (QMF2.md 5.1, 5.2).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from qmf.codec.errors import EncodeError
from qmf.codec.type_codes import MAP, UINT8, UINT64
from qmf.protocol.maps import class_key_to_map, object_id_to_map
from qmf.protocol.objects.columns import Column
from qmf.protocol.objects.general import block_to_map, event_to_map, object_to_map
from qmf.protocol.objects.keyed_encoding import Entries, entry_encoder, key, text_bytes, value_bytes
from qmf.protocol.values import EventData, ObjectBlock, ObjectData, ObjectId
from qmf.schema import ClassKey

_VALUES_KEY, _ID_KEY, _NAME_KEY = key("_values"), key("_object_id"), key("_object_name")
_UPDATE_KEY, _CREATE_KEY, _DELETE_KEY, _TIMESTAMP_KEY = (
    key(name) + bytes((UINT64,)) for name in ("_update_ts", "_create_ts", "_delete_ts", "_timestamp")
)
_SEVERITY_KEY = key("_severity") + bytes((UINT8,))

#: Type code, size and count of a map, key of the values, and type code, size and count of theirs.
_HEAD = struct.Struct(f">BII{len(_VALUES_KEY)}sBII")
#: Key, type code, size and count of an id, and key of its name.
_ID = struct.Struct(f">{len(_ID_KEY)}sBII{len(_NAME_KEY)}s")
_OBJECT_TIMES = struct.Struct(f">{len(_UPDATE_KEY)}sQ{len(_CREATE_KEY)}sQ{len(_DELETE_KEY)}sQ")
_EVENT_TIME = struct.Struct(f">{len(_TIMESTAMP_KEY)}sQ{len(_SEVERITY_KEY)}sB")

_pack_head, _pack_id, _pack_object_times, _pack_event_time = (
    item.pack for item in (_HEAD, _ID, _OBJECT_TIMES, _EVENT_TIME)
)

#: Bytes of a map's type code and size, which the size does not count.
_UNCOUNTED = 5
_WHOLE_SIZE, _ID_SIZE = _HEAD.size - _UNCOUNTED, _ID.size - len(_ID_KEY) - _UNCOUNTED


def _with_fields(entries: Entries, fields: bytes, count: int) -> bytes:
    """The map around values, with so many other fields."""
    values, number = entries
    size = len(values)
    whole = _WHOLE_SIZE + size + len(fields)
    head = _pack_head(MAP, whole, count + 1, _VALUES_KEY, MAP, size + 4, number)
    return b"".join((head, values, fields))


class ObjectEncoder:
    """Encodes the objects of one class at one agent, keyed."""

    __slots__ = ("_id_count", "_id_size", "_rest")

    def __init__(self, class_key: ClassKey, agent: ObjectId) -> None:
        """Make one; `agent` is any id of the agent that has the objects: its name and epoch count."""
        others = object_id_to_map(agent)
        del others["_object_name"]
        id_rest = b"".join(key(name) + value_bytes(value) for name, value in others.items())
        self._id_count = 1 + len(others)
        self._id_size = _ID_SIZE + len(id_rest)
        self._rest = id_rest + key("_schema_id") + value_bytes(class_key_to_map(class_key))

    def object(self, object_id: ObjectId, update_ts: int, create_ts: int, entries: Entries) -> bytes:
        """An object that is not deleted, as an item of a message's list.

        Args:
            object_id: of the agent.
            update_ts, create_ts: nanoseconds since 1970.
            entries: its values.

        Raises:
            EncodeError: a time is out of range, or the name cannot be encoded.
        """
        name = text_bytes(object_id.object_name)
        fields = _pack_id(_ID_KEY, MAP, self._id_size + len(name), self._id_count, _NAME_KEY) + name + self._rest
        if not (update_ts or create_ts):
            return _with_fields(entries, fields, 2)
        try:
            times = _pack_object_times(_UPDATE_KEY, update_ts, _CREATE_KEY, create_ts, _DELETE_KEY, 0)
        except struct.error as error:
            raise EncodeError(f"a time of {object_id} cannot be encoded: {error}") from None
        return _with_fields(entries, fields + times, 5)


class EventEncoder:
    """Encodes the events of one class."""

    __slots__ = ("_encode", "_schema_id")

    def __init__(self, class_key: ClassKey, arguments: Sequence[Column]) -> None:
        """Make one; `arguments` are the columns of the events' values."""
        self._schema_id = key("_schema_id") + value_bytes(class_key_to_map(class_key))
        self._encode = entry_encoder(arguments, class_key.name)

    def event(self, values: Sequence[Any], timestamp: int, severity: int) -> bytes:
        """An event as an item of a message's list.

        Args:
            values: in the order of the arguments; what is None is left out.
            timestamp: nanoseconds since 1970.
            severity: 0 to 7.

        Raises:
            EncodeError: a value cannot be encoded.
        """
        time = _pack_event_time(_TIMESTAMP_KEY, timestamp, _SEVERITY_KEY, severity)
        return _with_fields(self._encode(values), time + self._schema_id, 3)


def encode_object(data: ObjectData) -> bytes:
    """Any object as an item of a message's list, by the general encoder.

    Raises:
        EncodeError: it cannot be encoded.
    """
    return value_bytes(object_to_map(data))


def encode_block(block: ObjectBlock) -> bytes:
    """A block of rows as an item of a message's list; raises as `encode_object`."""
    return value_bytes(block_to_map(block))


def encode_event(event: EventData) -> bytes:
    """Any event as an item of a message's list, by the general encoder; raises as `encode_object`."""
    return value_bytes(event_to_map(event))
