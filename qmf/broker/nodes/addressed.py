"""A message with another address and another user in its properties; all other bytes stay as they are."""

from __future__ import annotations

from qmf.codec import amqp10
from qmf.codec.type_codes import AMQP10_BY_NAME
from qmf.errors import DecodeError

_PROPERTIES = b"\x00\x53\x73"
#: Descriptors of the sections, in their short form, that stand before the properties (AMQP 1.0, part 3.2).
_BEFORE = (b"\x00\x53\x70", b"\x00\x53\x71", b"\x00\x53\x72")
_LIST0, _LIST8, _LIST32 = (AMQP10_BY_NAME[name].code for name in ("list0", "list8", "list32"))
_NULL = bytes((AMQP10_BY_NAME["null"].code,))
#: Places of the fields in the properties.
_USER, _TO = 1, 2


def with_sender(data: bytes, user: str, to: str) -> bytes:
    """A message that names a user as its sender, and a node as its destination.

    Args:
        data: the encoded message.
        user: name of the user; empty for none.
        to: address of the node.

    Raises:
        DecodeError: the message is malformed, or its sections have long descriptors.
    """
    start = 0
    while data[start : start + 3] in _BEFORE:
        start = amqp10.decode(data, start + 3)[1]
    fields: list[bytes] = []
    end = start
    if data.startswith(_PROPERTIES, start):
        fields, end = _fields(data, start + 3)
    elif data[start : start + 2] != b"\x00\x53":
        raise DecodeError("a section without a short descriptor of AMQP 1.0")
    fields += [_NULL] * (_TO + 1 - len(fields))
    fields[_USER] = amqp10.encode(user.encode()) if user else _NULL
    fields[_TO] = amqp10.encode(to)
    content = b"".join(fields)
    head = _PROPERTIES + bytes((_LIST32,)) + (len(content) + 4).to_bytes(4) + len(fields).to_bytes(4)
    return data[:start] + head + content + data[end:]


def _fields(data: bytes, start: int) -> tuple[list[bytes], int]:
    """The fields of the properties as they are encoded, and the position behind them."""
    code = data[start]
    if code == _LIST0:
        return [], start + 1
    if code == _LIST8:
        count, position = data[start + 2], start + 3
    elif code == _LIST32:
        count, position = int.from_bytes(data[start + 5 : start + 9]), start + 9
    else:
        raise DecodeError("properties that are no list")
    fields = []
    for _ in range(count):
        end = amqp10.decode(data, position)[1]
        fields.append(data[position:end])
        position = end
    return fields, position
