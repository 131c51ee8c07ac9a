"""Reading object ids: those of one agent's objects differ in the name only."""

from __future__ import annotations

import struct
from typing import NamedTuple

from qmf.codec.amqp010 import decode_map_at
from qmf.codec.type_codes import BINARY16, TEXT16
from qmf.errors import DecodeError
from qmf.protocol.maps import object_id_from_map
from qmf.protocol.objects.row_objects import make_id
from qmf.protocol.objects.shapes import map_entries
from qmf.protocol.values import ObjectId

#: Frames remembered, and bytes that each may have. Of a full list the last one goes, not used for longest.
MAX_FRAMES, MAX_FRAME_SIZE = 32, 1000

_ERRORS = {TEXT16: "strict", BINARY16: "surrogateescape"}

#: How deep an id is inside the list of a message.
_DEPTH = 2


class _IdFrame(NamedTuple):
    """What the ids of one agent's objects have in common.

    Attributes:
        head, tail: the bytes before and behind the name.
        errors: how the name is decoded, which is sent as text or as binary.
        agent_name, agent_epoch: what they mean.
    """

    head: bytes
    tail: bytes
    errors: str
    agent_name: str | None
    agent_epoch: int


class ObjectIdDecoder:
    """Reads object ids, and remembers what surrounds their names.

    Attributes:
        frames: those that are known, the last one used first.
    """

    def __init__(self) -> None:
        self.frames: list[_IdFrame] = []

    def decode(self, data: bytes, pos: int, end: int) -> ObjectId:
        """The object id between two offsets, of which the first is that of its size field.

        Raises:
            DecodeError, ProtocolError: the bytes are no object id.
        """
        frames = self.frames
        for frame in frames:
            head, tail, errors, agent_name, agent_epoch = frame
            if not data.startswith(head, pos + 4):
                continue
            at, stop = pos + 4 + len(head), end - len(tail)
            if at + 2 > stop or at + 2 + (data[at] << 8) + data[at + 1] != stop or not data.startswith(tail, stop):
                continue
            if frame is not frames[0]:
                frames.remove(frame)
                frames.insert(0, frame)
            try:
                return make_id(data[at + 2 : stop].decode("utf-8", errors), agent_name, agent_epoch)
            except UnicodeDecodeError:
                break
        object_id = object_id_from_map(decoded_map(data, pos, end, _DEPTH))
        self._learn(data, pos, end, object_id)
        return object_id

    def _learn(self, data: bytes, pos: int, end: int, object_id: ObjectId) -> None:
        entries = map_entries(data, pos + 4) or ()
        name = next((entry for entry in entries if entry.name == "_object_name"), None)
        if name is None or name.code not in _ERRORS or end - pos - (name.end - name.begin) > MAX_FRAME_SIZE:
            return
        head, tail = data[pos + 4 : name.begin], data[name.end : end]
        frame = _IdFrame(head, tail, _ERRORS[name.code], object_id.agent_name, object_id.agent_epoch)
        self.frames.insert(0, frame)
        del self.frames[MAX_FRAMES:]


def decoded_map(data: bytes, pos: int, end: int, depth: int) -> dict[str, object]:
    """The map between two offsets, read in full; `depth` as for the general decoder.

    Raises:
        DecodeError: the bytes are no map, or it ends elsewhere.
    """
    try:
        fields, stop = decode_map_at(data, pos, True, depth)
    except (IndexError, struct.error):
        raise DecodeError(f"map at offset {pos}: the data ends at {len(data)}, inside the map") from None
    if stop != end:
        raise DecodeError(f"map at offset {pos} ends at {stop}, not at {end}")
    return fields
