"""The bytes before the bodies of messages, remembered: many messages of one sender have the same.

They may differ in the correlation id, or in numbers among the application properties.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import attrs

from qmf.codec._amqp10_decode import decode_value
from qmf.codec._message import Section

#: Bytes of a head, and heads remembered: a message is compared with each of them, so few.
MAX_HEAD_SIZE, MAX_HEADS = 500, 16

#: Fields that another message will hardly have the same, and the place of the one that heads may leave open.
_ONCE = frozenset({"message_id", "creation_time", "absolute_expiry_time"})
_CORRELATION_ID = 5

_DATA_SECTION = b"\x00\x53\x75"

#: Codes of a short text and of a number of eight bytes, and this.
_STR8, _ULONG = 0xA1, 0x80
_u64 = struct.Struct(">Q")
#: When so many messages with numbers have come since that none of the heads fits, the one that was not used for longest
#: is replaced: senders that take turns, and are more than there are heads, must not drive each other out.
_REPLACE_AFTER = 50


@attrs.define(eq=False)
class Head:
    """What messages of one kind have before their one data section.

    Attributes:
        before: the bytes before the text of the correlation id; all of them where there is none.
        size: bytes of the correlation id, since the sizes before it depend on that; 0 for none.
        behind: the bytes behind it.
        fields: what all this means, without the correlation id.
        kind: what a user of the memory makes of the fields, once it has looked.
    """

    before: bytes
    size: int
    behind: bytes
    fields: dict[str, object]
    kind: object = None


@attrs.frozen(eq=False)
class NumberedHead:
    """The same of messages without a correlation id that have numbers among their application properties.

    Attributes:
        pieces: the bytes before, between and behind the numbers, with their offsets.
        size: bytes of all of it.
        numbers: names and offsets of the numbers.
        fields: what all this means; the numbers are those of the first message.
        properties: the application properties in it.
    """

    pieces: Sequence[tuple[int, bytes]]
    size: int
    numbers: Sequence[tuple[str, int]]
    fields: dict[str, object]
    properties: Mapping[object, object]

    def fields_of(self, data: bytes, body: bytes) -> dict[str, object]:
        """The fields of a message that has these pieces."""
        properties = dict(self.properties)
        for name, at in self.numbers:
            properties[name] = _u64.unpack_from(data, at)[0]
        return {**self.fields, "application_properties": properties, "section": Section.DATA, "body": body}


class SectionMemory:
    """Remembers what is before the bodies of messages. Whoever decodes with it must not change what it gets.

    Attributes:
        heads: the last ones used first.
        numbered: the same of messages with numbers among their properties.
    """

    __slots__ = ("_unknown", "heads", "numbered")

    def __init__(self) -> None:
        self.heads: list[Head] = []
        self.numbered: list[NumberedHead] = []
        self._unknown = 0

    def split(self, data: bytes) -> tuple[Head, bytes, bytes] | None:
        """Head, correlation id and body of a message that has the head of an earlier one; None for others."""
        heads = self.heads
        for head in heads:
            before, behind = head.before, head.behind
            if not data.startswith(before):
                continue
            begin = len(before)
            end = begin + head.size
            if not data.startswith(behind, end):
                continue
            body = _only_data(data, end + len(behind))
            if body is None:
                return None
            if head is not heads[0]:
                heads.remove(head)
                heads.insert(0, head)
            return head, data[begin:end], body
        return None

    def fields(self, data: bytes) -> dict[str, object] | None:
        """The fields of a message that differs from an earlier one only in what heads leave open; None for others."""
        found = self.split(data)
        if found is None:
            return self._numbered_fields(data)
        head, correlation_id, body = found
        fields = {**head.fields, "section": Section.DATA, "body": body}
        if correlation_id:
            try:
                fields["correlation_id"] = correlation_id.decode()
            except UnicodeDecodeError:
                return None
        return fields

    def _numbered_fields(self, data: bytes) -> dict[str, object] | None:
        heads = self.numbered
        for head in heads:
            if all(data.startswith(piece, at) for at, piece in head.pieces):
                body = _only_data(data, head.size)
                if head is not heads[0]:
                    heads.remove(head)
                    heads.insert(0, head)
                return None if body is None else head.fields_of(data, body)
        return None

    def learn(self, data: bytes, start: int, properties_at: int, fields: dict[str, object]) -> None:
        """Remember what was before the data section of a message, unless no other message will have it.

        Args:
            data: the message.
            start: where the data section starts.
            properties_at: where the list of the properties starts; 0 for none.
            fields: what the message was decoded to.
        """
        if start > MAX_HEAD_SIZE or _only_data(data, start) is None:  # a footer, say, belongs to this message alone
            return
        properties = fields.get("application_properties", {})
        if not _ONCE.isdisjoint(fields):
            return
        # Numbers among the properties differ from message to message.
        if isinstance(properties, dict) and int in map(type, properties.values()):
            self._learn_numbered(data[:start], fields, properties)
            return
        begin, size = start, 0
        if "correlation_id" in fields:
            begin = _short_id(data, properties_at)
            size = data[begin - 1]
            if not begin or not size:
                return
        kept = {name: value for name, value in fields.items() if name not in ("correlation_id", "section", "body")}
        self.heads.insert(0, Head(data[:begin], size, data[begin + size : start], kept))
        del self.heads[MAX_HEADS:]

    def _learn_numbered(self, before: bytes, fields: dict[str, object], properties: dict[object, object]) -> None:
        self._unknown += 1
        if "correlation_id" in fields or (len(self.numbered) >= MAX_HEADS and self._unknown < _REPLACE_AFTER):
            return
        numbers = _places(before, properties)
        if numbers is None:
            return
        pieces, begin = [], 0
        for _, at in numbers:
            pieces.append((begin, before[begin:at]))
            begin = at + _u64.size
        pieces.append((begin, before[begin:]))
        kept = {name: value for name, value in fields.items() if name not in ("section", "body")}
        self.numbered.insert(0, NumberedHead(pieces, len(before), numbers, kept, properties))
        del self.numbered[MAX_HEADS:]
        self._unknown = 0


def _places(before: bytes, properties: Mapping[object, object]) -> list[tuple[str, int]] | None:
    """Names and offsets of the numbers among application properties, in order of the offsets.

    None unless all have eight bytes, and are found in one place only.
    """
    found = []
    for name, value in properties.items():
        if type(value) is not int:
            continue
        raw = str(name).encode()
        if not 0 <= value < 1 << 64 or len(raw) > 255:
            return None
        known = bytes((_STR8, len(raw), *raw, _ULONG)) + _u64.pack(value)
        if before.count(known) != 1:
            return None
        found.append((str(name), before.index(known) + len(known) - _u64.size))
    return sorted(found, key=lambda item: item[1])


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
