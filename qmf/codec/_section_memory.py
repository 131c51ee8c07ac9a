"""The bytes before the bodies of messages, remembered: many messages of one sender have the same."""

from __future__ import annotations

import attrs

from qmf.codec._amqp10_decode import decode_value
from qmf.codec._message import Section

#: Bytes of a head, and heads remembered: a message is compared with each of them, so few.
MAX_HEAD_SIZE, MAX_HEADS = 500, 16

#: Fields that another message will hardly have the same, and the place of the one that heads may leave open.
_ONCE = frozenset({"message_id", "creation_time", "absolute_expiry_time"})
_CORRELATION_ID = 5

_DATA_SECTION = b"\x00\x53\x75"


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


class SectionMemory:
    """Remembers what is before the bodies of messages. Whoever decodes with it must not change what it gets.

    Attributes:
        heads: the last ones used first.
    """

    __slots__ = ("heads",)

    def __init__(self) -> None:
        self.heads: list[Head] = []

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
        """The fields of a message that differs from an earlier one only in body and correlation id; None for others."""
        found = self.split(data)
        if found is None:
            return None
        head, correlation_id, body = found
        fields = {**head.fields, "section": Section.DATA, "body": body}
        if correlation_id:
            try:
                fields["correlation_id"] = correlation_id.decode()
            except UnicodeDecodeError:
                return None
        return fields

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
        # Numbers among the properties differ from message to message.
        if not _ONCE.isdisjoint(fields) or (isinstance(properties, dict) and int in map(type, properties.values())):
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
