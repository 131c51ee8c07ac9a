"""Fields of a few performatives (AMQP 1.0, part 2.7), read from and written to the bytes of frames."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import attrs

#: Descriptors.
BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION = 0x11, 0x12, 0x13, 0x14, 0x15

#: Fields of a flow up to the credit of a link.
_LINK_FIELDS = 7

#: Bytes of our delivery tags, which are numbers on links that can be resumed, the most significant byte first; and of
#: the tags that proton gets for messages with a format: it follows in four bytes.
TAG, PADDED_TAG = 8, 12

_FRAME = struct.Struct(">IBBH")
_UINT0, _SMALLUINT, _UINT, _NULL, _TRUE, _FALSE, _BOOLEAN = 0x43, 0x52, 0x70, 0x40, 0x41, 0x42, 0x56
_SMALLULONG, _ULONG = 0x53, 0x80
_LIST8, _LIST32 = 0xC0, 0xD0
#: Bytes after the code, by its upper half; of 0xa and above, bytes of the size that follows.
_WIDTHS = {4: 0, 5: 1, 6: 2, 7: 4, 8: 8, 9: 16}
_SIZES = {0xA: 1, 0xB: 4, 0xC: 1, 0xD: 4, 0xE: 1, 0xF: 4}

Buffer = bytes | bytearray | memoryview


@attrs.frozen
class Attach:
    """Of an attach frame.

    Attributes:
        channel: of the session.
        name, handle: of the link.
        is_sender: the role of the side that sends the frame.
    """

    channel: int
    name: str
    handle: int
    is_sender: bool


def read_performative(frame: Buffer, end: int) -> tuple[int, int, int]:
    """The descriptor of a frame's performative, the channel, and the position of its list; (-1, 0, 0) if it has none.

    Args:
        frame: a buffer that begins with a frame.
        end: of what is there of the frame.
    """
    position = 4 * frame[4]
    if frame[5] == 0 and 8 <= position <= end - 4 and frame[position] == 0:
        channel = frame[6] << 8 | frame[7]
        code = frame[position + 1]
        if code == _SMALLULONG:
            return frame[position + 2], channel, position + 3
        if code == _ULONG and position + 10 <= end:
            return int.from_bytes(frame[position + 2 : position + 10]), channel, position + 10
    return -1, 0, 0


def read_fields(frame: Buffer, position: int, end: int, most: int) -> list[int]:
    """Positions of the fields of the list at `position`.

    Args:
        frame: with the list.
        position: of the list.
        end: of what is there.
        most: fields that are wanted.

    Returns:
        position of each field that is there whole; of a described field, and those behind it, none.
    """
    if position + 3 <= end and frame[position] == _LIST8:
        count, position = frame[position + 2], position + 3
    elif position + 9 <= end and frame[position] == _LIST32:
        count, position = int.from_bytes(frame[position + 5 : position + 9]), position + 9
    else:
        return []
    found: list[int] = []
    while len(found) < min(most, count) and position < end:
        kind = frame[position] >> 4
        width = _WIDTHS.get(kind)
        if width is None:
            if kind not in _SIZES or position + 1 + _SIZES[kind] > end:
                break
            width = _SIZES[kind] + int.from_bytes(frame[position + 1 : position + 1 + _SIZES[kind]])
        if position + 1 + width > end:
            break
        found.append(position)
        position += 1 + width
    return found


def read_number(frame: Buffer, position: int) -> int:
    """An unsigned number of up to 32 bits; 0 for anything else."""
    code = frame[position]
    if code == _UINT:
        return int.from_bytes(frame[position + 1 : position + 5])
    return frame[position + 1] if code == _SMALLUINT else 0


def read_flag(frame: Buffer, position: int) -> bool:
    """A boolean; False for anything else."""
    return frame[position] == _TRUE or (frame[position] == _BOOLEAN and frame[position + 1] == 1)


def is_null(frame: Buffer, position: int) -> bool:
    """True for a field without a value."""
    return frame[position] == _NULL


def read_attach(frame: Buffer) -> Attach | None:
    """What an attach frame, which is there whole, says; None if it is malformed."""
    _, channel, position = read_performative(frame, len(frame))
    fields = read_fields(frame, position, len(frame), 3)
    if len(fields) < 3:
        return None
    size = _SIZES.get(frame[fields[0]] >> 4, 0)
    name = bytes(frame[fields[0] + 1 + size : fields[1]]).decode("utf-8", "replace")
    return Attach(channel, name, read_number(frame, fields[1]), not read_flag(frame, fields[2]))


def has_padded_tag(frame: Buffer, fields: Sequence[int]) -> bool:
    """True for a transfer of a message with a format, as proton writes it."""
    tag = fields[2]
    return frame[tag] == 0xA0 and frame[tag + 1] == PADDED_TAG and frame[fields[3]] == _UINT0


def set_message_format(frame: bytearray, tag: int) -> None:
    """Put the message format into its field: it is at the end of the delivery tag, so that the frame keeps its size.

    Args:
        frame: holds the transfer.
        tag: position of the delivery tag, of a transfer of which `has_padded_tag` is true.
    """
    end = tag + 2 + PADDED_TAG
    number = frame[end - 4 : end]
    frame[tag + 1] = TAG
    frame[tag + 2 + TAG : end + 1] = bytes((_UINT,)) + number


def link_flow(
    session_flow: Buffer, *, handle: int, delivery_count: int, credit: int, available: int | None, drain: bool
) -> bytes:
    """A flow frame with the state of a link of which we are the sender.

    Args:
        session_flow: a flow frame of its session, for the fields of that.
        handle, delivery_count, credit, available, drain: fields of the frame.
    """
    size = len(session_flow)
    _, channel, position = read_performative(session_flow, size)
    fields = read_fields(session_flow, position, size, 5)
    window = bytes(session_flow[fields[0] : fields[4] if len(fields) > 4 else size])
    body = window + b"".join(map(_number, [handle, delivery_count & 0xFFFFFFFF, credit, available]))
    body += bytes((_TRUE if drain else _FALSE,))
    performative = bytes((0, _SMALLULONG, FLOW, _LIST8, len(body) + 1, 9)) + body
    return _FRAME.pack(8 + len(performative), 2, 0, channel) + performative


def asking_flow(flow: Buffer) -> bytes | None:
    """A flow frame that asks the peer for the state of a link, made of one that does not.

    Args:
        flow: of a link on which we receive, as proton writes it; may have other frames after it.

    Returns:
        None if it is no flow frame of a link.
    """
    size = int.from_bytes(flow[:4])
    code, channel, position = read_performative(flow, size)
    if code != FLOW:
        return None
    fields = read_fields(flow, position, size, 10)
    if len(fields) < _LINK_FIELDS or is_null(flow, fields[4]):
        return None
    state = bytes(flow[fields[0] : fields[7] if len(fields) > 7 else size])
    drain = _TRUE if len(fields) > 8 and read_flag(flow, fields[8]) else _FALSE
    body = state + bytes((_NULL, drain, _TRUE))
    performative = bytes((0, _SMALLULONG, FLOW, _LIST8, len(body) + 1, 10)) + body
    return _FRAME.pack(8 + len(performative), 2, 0, channel) + performative + bytes(flow[size:])


def _number(value: int | None) -> bytes:
    return bytes((_NULL,)) if value is None else bytes((_UINT,)) + value.to_bytes(4)
