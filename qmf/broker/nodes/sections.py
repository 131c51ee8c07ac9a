"""Values that the broker adds to the maps of a message; all other bytes stay as they are."""

from __future__ import annotations

from qmf.codec import amqp10
from qmf.codec.types import Symbol
from qmf.errors import DecodeError

#: Descriptors of the sections that are maps, and of those before each (AMQP 1.0, part 3.2).
MESSAGE_ANNOTATIONS, APPLICATION_PROPERTIES = 0x72, 0x74
_HEAD = b"\x00\x53"
_MAP8, _MAP32 = 0xC1, 0xD1


def add_value(data: bytes, section: int, name: str, value: object) -> bytes:
    """A message with one more value in a map, or another one for that name.

    Args:
        data: the encoded message.
        section: `MESSAGE_ANNOTATIONS` or `APPLICATION_PROPERTIES`.
        name: key of the value.
        value: any value that AMQP 1.0 has a type for.

    Raises:
        DecodeError: the message is malformed.
    """
    start = 0
    while data[start : start + 2] == _HEAD and data[start + 2] < section:
        _, start = amqp10.decode(data, start + 3)
    key: object = Symbol(name) if section == MESSAGE_ANNOTATIONS else name
    pairs, count, end = b"", 0, start
    if data[start : start + 2] == _HEAD and data[start + 2] == section:
        pairs, count, end = _other_pairs(data, start + 3, name)
    pairs += amqp10.encode(key) + amqp10.encode(value)
    head = _HEAD + bytes((section, _MAP32)) + (len(pairs) + 4).to_bytes(4) + (count + 2).to_bytes(4)
    return data[:start] + head + pairs + data[end:]


def _other_pairs(data: bytes, start: int, name: str) -> tuple[bytes, int, int]:
    """The encoded pairs of a map without that of a name, twice their number, and the position behind the map."""
    if data[start] == _MAP8:
        count, position = data[start + 2], start + 3
    elif data[start] == _MAP32:
        count, position = int.from_bytes(data[start + 5 : start + 9]), start + 9
    else:
        raise DecodeError("a section that must be a map is none")
    kept: list[bytes] = []
    for _ in range(count // 2):
        key, middle = amqp10.decode(data, position, text=True)
        _, end = amqp10.decode(data, middle)
        if key != name:
            kept.append(data[position:end])
        position = end
    return b"".join(kept), 2 * len(kept), position
