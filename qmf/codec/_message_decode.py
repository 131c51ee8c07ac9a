"""Decoding messages.

Sections come in the order of the specification, each at most once but for data and sequence sections. Anything else is
a `DecodeError`, unknown sections included: the specification leaves no room for them. More lenient in one thing: a
message may end without a body, because brokers make such messages of empty AMQP 0-10 ones.
"""

from __future__ import annotations

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
from qmf.errors import DecodeError

_BODY = frozenset({DATA, SEQUENCE, VALUE})
_REPEATED = frozenset({DATA, SEQUENCE})
_REMEMBERED = frozenset({PROPERTIES, APPLICATION_PROPERTIES})

#: Sections remembered: how many, and how long each may be.
MAX_SECTIONS, MAX_SECTION_SIZE = 500, 500

#: Heads of messages remembered, of each of both kinds: a message is compared with each of them, so few.
MAX_HEADS = 8

#: Fields that another message will hardly have the same, and the place of the one that heads may leave open.
_ONCE = frozenset({"message_id", "creation_time", "absolute_expiry_time"})
_CORRELATION_ID = 5

_DATA_SECTION = b"\x00\x53\x75"
_SECTIONS = {DATA: Section.DATA, SEQUENCE: Section.SEQUENCE, VALUE: Section.VALUE}

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


class SectionMemory:
    """Properties and application properties that were decoded: many messages of one sender have the same.

    Attributes:
        values: what the sections' bytes mean. Whoever decodes with this must not change what it gets.
        heads: the last messages' bytes before their one data section, with their fields; the newest first.
        answers: the same of messages with a correlation id: the bytes before it, its length, the bytes behind it, and
            the other fields. The length is part of it, because the sizes before it depend on that.
    """

    __slots__ = ("answers", "heads", "values")

    def __init__(self) -> None:
        self.values: dict[bytes, object] = {}
        self.heads: list[tuple[bytes, dict[str, object]]] = []
        self.answers: list[tuple[bytes, int, bytes, dict[str, object]]] = []

    def fields(self, data: bytes) -> dict[str, object] | None:
        """The fields of a message that differs from an earlier one only in body and correlation id; None for others."""
        heads = self.heads
        for item in heads:
            head, fields = item
            if data.startswith(head):
                start = len(head)
                body = _only_data(data, start)
                if body is None:
                    return None
                if item is not heads[0]:
                    heads.remove(item)
                    heads.insert(0, item)
                return {**fields, "section": Section.DATA, "body": body}
        answers = self.answers
        for answer in answers:
            head, size, behind, fields = answer
            if data.startswith(head):
                begin = len(head)
                end = begin + size
                if not data.startswith(behind, end):
                    continue
                body = _only_data(data, end + len(behind))
                if body is None:
                    return None
                if answer is not answers[0]:
                    answers.remove(answer)
                    answers.insert(0, answer)
                try:
                    number = data[begin:end].decode()
                except UnicodeDecodeError:
                    return None
                return {**fields, "correlation_id": number, "section": Section.DATA, "body": body}
        return None

    def learn(self, data: bytes, start: int, properties_at: int, fields: dict[str, object]) -> None:
        """Remember what stood before the data section of a message, unless no other message will have it.

        Args:
            data: the message.
            start: where the data section starts.
            properties_at: where the list of the properties starts; 0 for none.
            fields: what the message was decoded to.
        """
        if _only_data(data, start) is None:
            return  # a footer, say, belongs to this message alone
        properties = fields.get("application_properties", {})
        if (
            start > MAX_SECTION_SIZE
            or not _ONCE.isdisjoint(fields)
            or (isinstance(properties, dict) and _is_unique(properties))
        ):
            return
        kept = {name: value for name, value in fields.items() if name not in ("correlation_id", "section", "body")}
        if "correlation_id" not in fields:
            self.heads.insert(0, (data[:start], kept))
            del self.heads[MAX_HEADS:]
        elif begin := _short_id(data, properties_at):
            size = data[begin - 1]
            self.answers.insert(0, (data[:begin], size, data[begin + size : start], kept))
            del self.answers[MAX_HEADS:]

    def decode(self, data: bytes, pos: int, text: bool) -> tuple[object, int]:
        """Decode the list or map at `pos`, which all messages of this memory must have decoded with the same `text`."""
        code = data[pos]
        if code in (0xC0, 0xC1):
            end = pos + 2 + int.from_bytes(data[pos + 1 : pos + 2], "big")
        elif code in (0xD0, 0xD1):
            end = pos + 5 + int.from_bytes(data[pos + 1 : pos + 5], "big")
        else:
            return decode_value(data, pos, text)
        raw = data[pos:end]
        if raw in self.values:
            return self.values[raw], end
        value, end = decode_value(data, pos, text)
        if len(raw) <= MAX_SECTION_SIZE and not _is_unique(value):
            if len(self.values) >= MAX_SECTIONS:
                self.values.clear()
            self.values[raw] = value
        return value, end


def _only_data(data: bytes, start: int) -> bytes | None:
    """What a data section at `start` holds, if that is one binary, and nothing follows."""
    if data[start : start + 3] != _DATA_SECTION or start + 4 >= len(data):
        return None
    code = data[start + 3]
    if code == 0xA0:
        begin, size = start + 5, data[start + 4]
    elif code == 0xB0:
        begin, size = start + 8, int.from_bytes(data[start + 4 : start + 8], "big")
    else:
        return None
    return data[begin:] if begin + size == len(data) else None


def _short_id(data: bytes, pos: int) -> int:
    """Where the text of the correlation id starts, in the properties at `pos`; 0 when it isn't a short string."""
    pos += 3 if data[pos] == 0xC0 else 9
    for _ in range(_CORRELATION_ID):
        _, pos = decode_value(data, pos, False)
    return pos + 2 if data[pos] == 0xA1 else 0


def _is_unique(value: object) -> bool:
    """True for what differs from message to message: properties with ids, application properties with numbers."""
    if isinstance(value, dict):
        return any(map(_is_number, value.values()))
    return isinstance(value, list) and (value[:1] not in ([], [None]) or value[5:6] not in ([], [None]))


def _is_number(value: object) -> bool:
    return type(value) is int


def decode_message(
    data: bytes, *, body: bool = True, text: bool = True, memory: SectionMemory | None = None
) -> Message:
    """Decode a message.

    Args:
        data: all sections, nothing else.
        body: False stops before the body, for those who only route: the result then has no body and no footer.
        text: binary that is valid UTF-8 becomes str everywhere but in data sections and `user_id` (QMF2.md 3.2).
        memory: remembers sections, for who decodes many messages; the mappings of the result must then be left as they
            are.

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
    head = properties = 0
    bodies: list[object] = []
    last = section = 0
    pos, size = 0, len(data)
    while pos < size:
        start = pos
        code, pos = _descriptor(data, pos)
        if (code <= last or (code in _BODY and last in _BODY)) and (code != last or code not in _REPEATED):
            raise DecodeError(f"{_NAMES[code]} section at offset {start} after {_NAMES[last]} section")
        last = code
        if code in _BODY:
            if not body:
                break
            section, head = code, head or start
            value, pos = decode_value(data, pos, text and code != DATA)
            bodies.append(value)
            continue
        begin = pos
        if memory is not None and code in _REMEMBERED and pos < size:
            value, pos = memory.decode(data, pos, text)
        else:
            value, pos = decode_value(data, pos, text)
        if code == HEADER:
            _fields(fields, _HEADER, value, start)
        elif code == PROPERTIES:
            properties = begin
            _fields(fields, _PROPERTIES, value, start)
        elif not isinstance(value, dict):
            raise DecodeError(f"{_NAMES[code]} section at offset {start} is no map")
        else:
            fields[_MAPS[code]] = value
    if section:
        fields["section"] = _SECTIONS[section]
        fields["body"] = _joined(section, bodies)
    _convert(fields)
    if memory is not None and text and section == DATA and len(bodies) == 1:
        memory.learn(data, head, properties, fields)
    return fields


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


def _joined(section: int, bodies: list[object]) -> object:
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
