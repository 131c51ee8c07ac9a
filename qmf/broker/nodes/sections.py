"""What the broker changes in the sections of a message; all other bytes stay as they are."""

from __future__ import annotations

from collections.abc import Mapping

from qmf.codec import amqp10
from qmf.codec.type_codes import AMQP10_BY_NAME
from qmf.codec.types import Symbol
from qmf.errors import DecodeError

#: Descriptors of the sections that are maps, and of those before each (AMQP 1.0, part 3.2).
MESSAGE_ANNOTATIONS, APPLICATION_PROPERTIES = 0x72, 0x74
_HEAD = b"\x00\x53"
#: Beginnings of headers: of each, of those in a short list, and of one without fields.
HEADER, _USUAL_HEADER, _EMPTY_HEADER = b"\x00\x53\x70", b"\x00\x53\x70\xc0", b"\x00\x53\x70\x45"
#: Beginnings of the sections behind the message annotations.
_BEHIND_ANNOTATIONS = frozenset(_HEAD + bytes((section,)) for section in range(MESSAGE_ANNOTATIONS + 1, 0x79))
_MAP8, _MAP32 = b"\xc1", b"\xd1"
#: Above the descriptors of all sections.
_END = 0x100
#: Descriptors as symbols.
_NAMES = {
    "amqp:header:list": 0x70,
    "amqp:delivery-annotations:map": 0x71,
    "amqp:message-annotations:map": MESSAGE_ANNOTATIONS,
    "amqp:properties:list": 0x73,
    "amqp:application-properties:map": APPLICATION_PROPERTIES,
    "amqp:data:binary": 0x75,
    "amqp:amqp-sequence:list": 0x76,
    "amqp:amqp-value:*": 0x77,
    "amqp:footer:map": 0x78,
}


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
    key: object = Symbol(name) if section == MESSAGE_ANNOTATIONS else name
    return _add_pairs(data, section, {name: amqp10.encode(key) + amqp10.encode(value)})


def merge_annotations(data: bytes, annotations: bytes) -> bytes:
    """A message with more message annotations; those with a key that it has already replace these.

    Args:
        data: the encoded message.
        annotations: an encoded map.

    Raises:
        DecodeError: the message is malformed, or the annotations are no map with keys.
    """
    pairs, _ = _pairs(annotations, 0)
    return _add_pairs(data, MESSAGE_ANNOTATIONS, pairs) if pairs else data


def end_of_header(data: bytes) -> int:
    """Where the sections behind the header begin; -1 if the header is written in a rare form, or cut off."""
    if data[:4] == _USUAL_HEADER and len(data) > 4:
        return 5 + data[4]
    if not data.startswith(HEADER):
        return 0
    return 4 if data.startswith(_EMPTY_HEADER) else -1


def place_for_annotations(data: bytes) -> int:
    """Where message annotations belong in a message that has none; -1 if it has some, or must be decoded to know."""
    if data[:3] in _BEHIND_ANNOTATIONS:  # no header
        return 0
    place = 5 + data[4] if data[:4] == _USUAL_HEADER and len(data) > 4 else end_of_header(data)
    return place if data[place : place + 3] in _BEHIND_ANNOTATIONS else -1


def read_annotation(data: bytes, name: str) -> object:
    """A message annotation, or None; see `read_value`."""
    return read_value(data, MESSAGE_ANNOTATIONS, name)


def read_value(data: bytes, section: int, name: str) -> object:
    """A value of a map, or None; binary that is UTF-8 comes as text.

    Args:
        data: the encoded message.
        section: `MESSAGE_ANNOTATIONS` or `APPLICATION_PROPERTIES`.
        name: key of the value.

    Raises:
        DecodeError: the message is malformed.
    """
    _, descriptor, value = _section(data, section)
    if descriptor != section:
        return None
    pair = _pairs(data, value)[0].get(name)
    return None if pair is None else amqp10.decode(pair, amqp10.decode(pair)[1], text=True)[0]


def remove_value(data: bytes, section: int, name: str) -> bytes:
    """A message without a value of a map; without the section, if there is no other value in it.

    Raises:
        DecodeError: the message is malformed.
    """
    start, descriptor, value = _section(data, section)
    if descriptor != section:
        return data
    kept, end = _pairs(data, value)
    if kept.pop(name, None) is None:
        return data
    return data[:start] + (_encode_map(section, kept) if kept else b"") + data[end:]


def _add_pairs(data: bytes, section: int, pairs: Mapping[object, bytes]) -> bytes:
    """A message with more pairs in a map: keys, and the pairs as they are encoded."""
    start, descriptor, value = _section(data, section)
    end = start
    kept: dict[object, bytes] = {}
    if descriptor == section:
        kept, end = _pairs(data, value)
        for key in pairs:
            kept.pop(key, None)
    kept.update(pairs)
    return data[:start] + _encode_map(section, kept) + data[end:]


def _section(data: bytes, wanted: int) -> tuple[int, int, int]:
    """Where a section begins, or belongs; the number of the one that is there, and the position of its value."""
    start = 0
    descriptor, value = _descriptor(data, 0)
    while descriptor < wanted:
        _, start = amqp10.decode(data, value)
        descriptor, value = _descriptor(data, start)
    return start, descriptor, value


def _encode_map(section: int, pairs: Mapping[object, bytes]) -> bytes:
    """A section with pairs that are encoded."""
    content = b"".join(pairs.values())
    head = _HEAD + bytes((section,)) + _MAP32 + (len(content) + 4).to_bytes(4) + (2 * len(pairs)).to_bytes(4)
    return head + content


def _descriptor(data: bytes, start: int) -> tuple[int, int]:
    """The number of the section at `start`, and the position of its value; a number above all others at the end."""
    if data[start : start + 2] == _HEAD and len(data) > start + 2:
        return data[start + 2], start + 3
    if start >= len(data):
        return _END, start
    descriptor, value = amqp10.decode(data, start + 1)
    if isinstance(descriptor, str):
        descriptor = _NAMES.get(descriptor)
    if data[start] or not isinstance(descriptor, int):
        raise DecodeError("a section without a descriptor of AMQP 1.0")
    return descriptor, value


def _pairs(data: bytes, start: int) -> tuple[dict[object, bytes], int]:
    """The pairs of an encoded map, with key and value as they are encoded, by key; and the position behind the map."""
    code = data[start : start + 1]
    if len(data) < start + (3 if code == _MAP8 else 9):
        raise DecodeError("a section that ends before its first value")
    if code == _MAP8:
        count, position = data[start + 2], start + 3
    elif code == _MAP32:
        count, position = int.from_bytes(data[start + 5 : start + 9]), start + 9
    else:
        raise DecodeError("a section that must be a map is none")
    pairs: dict[object, bytes] = {}
    for _ in range(count // 2):
        key, middle = amqp10.decode(data, position, text=True)
        if not isinstance(key, str | int | bytes):
            raise DecodeError("a key that is neither a text nor a number")
        _, end = amqp10.decode(data, middle)
        pairs[key] = data[position:end]
        position = end
    return pairs, position


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
