"""Decoding messages.

Sections come in the order of the specification, each at most once but for data and sequence sections. Anything else is
a `DecodeError`, unknown sections included: the specification leaves no room for them. More lenient in one thing: a
message may end without a body, because brokers make such messages of empty AMQP 0-10 ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from qmf.codec._amqp10_decode import decode_value
from qmf.codec._message import (
    APPLICATION_PROPERTIES,
    DATA,
    DELIVERY_ANNOTATIONS,
    FOOTER,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    SEQUENCE,
    VALUE,
    Message,
    Section,
)
from qmf.codec._section_memory import SectionMemory
from qmf.errors import DecodeError

_BODY = frozenset({DATA, SEQUENCE, VALUE})
_REPEATED = frozenset({DATA, SEQUENCE})

_SECTIONS = {DATA: Section.DATA, SEQUENCE: Section.SEQUENCE, VALUE: Section.VALUE}

#: How sections begin, and the codes of lists and maps of either size.
_SHORT = b"\x00\x53"
_SMALL, _LARGE = frozenset({0xC0, 0xC1}), frozenset({0xD0, 0xD1})

# Attribute of `Message` that each map section becomes.
_MAPS = {
    DELIVERY_ANNOTATIONS: "delivery_annotations",
    MESSAGE_ANNOTATIONS: "message_annotations",
    APPLICATION_PROPERTIES: "application_properties",
    FOOTER: "footer",
}

_NAMES: dict[object, str] = {
    HEADER: "header",
    DELIVERY_ANNOTATIONS: "delivery-annotations",
    MESSAGE_ANNOTATIONS: "message-annotations",
    PROPERTIES: "properties",
    APPLICATION_PROPERTIES: "application-properties",
    DATA: "data",
    SEQUENCE: "amqp-sequence",
    VALUE: "amqp-value",
    FOOTER: "footer",
}
_LISTS = {HEADER: "list", PROPERTIES: "list", DATA: "binary", SEQUENCE: "list", VALUE: "*"}

#: Sections by descriptor: the number, or the long name that a peer may send instead.
_CODES: dict[object, int] = {
    **{code: code for code in (*_MAPS, *_LISTS)},
    **{f"amqp:{_NAMES[code]}:{kind}": code for code, kind in (*dict.fromkeys(_MAPS, "map").items(), *_LISTS.items())},
}

_HEADER = (("durable", bool), ("priority", int), ("ttl", int), ("first_acquirer", bool), ("delivery_count", int))
_PROPERTIES: tuple[tuple[str, type | tuple[type, ...]], ...] = (
    ("message_id", (str, int, UUID, bytes)),
    ("user_id", (bytes, str)),
    ("to", str),
    ("subject", str),
    ("reply_to", str),
    ("correlation_id", (str, int, UUID, bytes)),
    ("content_type", str),
    ("content_encoding", str),
    ("absolute_expiry_time", int),
    ("creation_time", int),
    ("group_id", str),
    ("group_sequence", int),
    ("reply_to_group_id", str),
)


def decode_message(
    data: bytes, *, body: bool = True, text: bool = True, memory: SectionMemory | None = None
) -> Message:
    """Decode a message.

    Args:
        data: all sections, nothing else.
        body: False stops before the body, where messages are only routed: the result then has no body and no footer.
        text: binary that is valid UTF-8 becomes str everywhere but in data sections and `user_id` (QMF2.md 3.2).
        memory: remembers sections, where many messages are decoded; the mappings of the result must then be left as
            they are.

    Raises:
        DecodeError: the bytes are no such message. Never anything else.
    """
    fields = decode_fields(data, body=body, text=text, memory=memory)
    return Message(**fields)  # type: ignore[arg-type]  # `_fields` checked every type


def decode_fields(
    data: bytes, *, body: bool = True, text: bool = True, memory: SectionMemory | None = None
) -> dict[str, object]:
    """What `decode_message` makes a message of: its attributes by name, those that are absent left out."""
    data = bytes(data)  # no copy of bytes, and every slice of it is bytes
    if memory is not None and body and text:
        known = memory.fields(data)
        if known is not None:
            return known
    fields: dict[str, object] = {}
    bodies: list[object] = []
    section = body_at = properties_at = 0
    for code, start, begin, value in _sections(data, body, text):
        if code in _BODY:
            section, body_at = code, body_at or start
            bodies.append(value)
        elif code == HEADER:
            _fields(fields, _HEADER, value, start)
        elif code == PROPERTIES:
            properties_at = begin
            _fields(fields, _PROPERTIES, value, start)
        else:
            fields[_MAPS[code]] = _map(code, value, start)
    if section:
        fields["section"] = _SECTIONS[section]
        fields["body"] = _join(section, bodies)
    _convert(fields)
    if memory is not None and text and section == DATA and len(bodies) == 1:
        memory.learn(data, body_at, properties_at, fields)
    return fields


def _map(code: int, value: object, start: int) -> dict[object, object]:
    if not isinstance(value, dict):
        raise DecodeError(f"{_NAMES[code]} section at offset {start} is no map")
    return value


def split_message(data: bytes) -> tuple[bytes, Section, object] | None:
    """The encoded sections before the body, and the kind and the value of its section, in which binary stays binary.

    None for a message in any but the common layout: with one body section and nothing behind it. Nothing is said about
    whether the sections before it are valid.
    """
    pos = 0
    try:
        while data[pos : pos + 2] == _SHORT and data[pos + 2] < DATA:
            code = data[pos + 3]
            if code in _SMALL:
                pos += 5 + data[pos + 4]
            elif code in _LARGE:
                pos += 8 + int.from_bytes(data[pos + 4 : pos + 8])
            else:
                return None
        code = data[pos + 2]
        if data[pos : pos + 2] != _SHORT or code not in (DATA, VALUE):
            return None
        value, end = decode_value(data, pos + 3, False)
    except IndexError:
        return None
    if end != len(data) or (code == DATA and not isinstance(value, bytes)):
        return None
    return data[:pos], _SECTIONS[code], value


def _sections(data: bytes, body: bool, text: bool) -> Iterator[tuple[int, int, int, object]]:
    """Each section: its descriptor, where it and its value start, and the value; arguments as of `decode_message`."""
    last = pos = 0
    while pos < len(data):
        start = pos
        code, begin = _descriptor(data, pos)
        if (code <= last or (code in _BODY and last in _BODY)) and (code != last or code not in _REPEATED):
            raise DecodeError(f"{_NAMES[code]} section at offset {start} after {_NAMES[last]} section")
        last = code
        if code in _BODY and not body:
            return
        value, pos = decode_value(data, begin, text and code != DATA)
        yield code, start, begin, value


def _descriptor(data: bytes, pos: int) -> tuple[int, int]:
    """The section that starts at `pos`, and where its value starts."""
    if data[pos] != 0x00:
        raise DecodeError(f"no section starts at offset {pos}")
    if data[pos : pos + 2] == b"\x00\x53" and pos + 2 < len(data):  # what everybody sends
        descriptor: object = data[pos + 2]
        end = pos + 3
    else:
        descriptor, end = decode_value(data, pos + 1, False)
    code = _CODES.get(descriptor) if isinstance(descriptor, (int, str)) else None
    if code is None:
        raise DecodeError(f"unknown section {str(descriptor)[:40]!r} at offset {pos}")
    return code, end


def _fields(
    fields: dict[str, object], names: tuple[tuple[str, type | tuple[type, ...]], ...], values: object, start: int
) -> None:
    """Name the values of a list section; absent ones are null or missing at the end."""
    if not isinstance(values, list) or len(values) > len(names):
        raise DecodeError(f"section at offset {start} is no list of at most {len(names)} fields")
    for (name, kind), value in zip(names, values, strict=False):
        if value is None:
            continue
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise DecodeError(f"field {name} of the section at offset {start} has a value of a wrong type")
        fields[name] = value


def _convert(fields: dict[str, object]) -> None:
    """Give fields the units and types of `Message`."""
    ttl, user_id = fields.get("ttl"), fields.get("user_id")
    if isinstance(ttl, int):
        fields["ttl"] = ttl / 1000
    if isinstance(user_id, str):
        fields["user_id"] = user_id.encode()
    properties = fields.get("application_properties")
    if isinstance(properties, dict) and properties and set(map(type, properties)) != {str}:
        raise DecodeError("a key of the application-properties is no string")


def _join(section: int, bodies: list[object]) -> object:
    if section == DATA:
        chunks = [chunk for chunk in bodies if isinstance(chunk, bytes)]
        if len(chunks) != len(bodies):
            raise DecodeError("a data section holds no binary")
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)
    if section == SEQUENCE:
        items: list[object] = []
        for part in bodies:
            if not isinstance(part, list):
                raise DecodeError("a sequence section holds no list")
            items += part
        return items
    return bodies[0]
