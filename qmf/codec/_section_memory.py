"""Sections of messages that were decoded, remembered: many messages of one sender have the same."""

from __future__ import annotations

from qmf.codec._amqp10_decode import decode_value
from qmf.codec._message import Section

#: Sections remembered: how many, and how long each may be.
MAX_SECTIONS, MAX_SECTION_SIZE = 500, 500

#: Heads of messages remembered, of each of both kinds: a message is compared with each of them, so few.
MAX_HEADS = 8

#: Fields that another message will hardly have the same, and the place of the one that heads may leave open.
_ONCE = frozenset({"message_id", "creation_time", "absolute_expiry_time"})
_CORRELATION_ID = 5

_DATA_SECTION = b"\x00\x53\x75"


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
