"""What comes before the body of messages that have all of it in common but their ids.

Requests and answers differ in their correlation ids, messages of some clients in their message ids: all else is
encoded, and decoded, once.
"""

from __future__ import annotations

from typing import Final, Self

from qmf.codec._amqp10_decode import decode_value
from qmf.codec._message import PROPERTIES
from qmf.errors import DecodeError

#: Codes: how sections begin, lists of either size, text of up to 255 bytes, null.
_BEGIN, _SMALL, _LARGE, _TEXT, _NULL = b"\x00\x53", 0xC0, 0xD0, 0xA1, 0x40
#: Places of the ids in the list of properties.
_MESSAGE_ID, _CORRELATION_ID = 0, 5
_MAX_TEXT, _MAX_SMALL = 0xFF, 0xFF
_SIZES = tuple(bytes((size,)) for size in range(_MAX_SMALL + 1))


def fits_form(value: object) -> bool:
    """Whether an id is absent, or a text that a form can have."""
    return value is None or (type(value) is str and len(value) <= _MAX_TEXT and value.isascii())


class IdForm:
    """The sections of such messages before the body, around the ids, which are text of up to 255 bytes.

    Attributes:
        ids: which there are, in their order: `message_id`, `correlation_id`.
    """

    __slots__ = (
        "_before",
        "_count",
        "_end",
        "_first",
        "_large",
        "_last",
        "_parts",
        "_size",
        "_small",
        "_small_first",
        "_small_size",
        "ids",
    )

    def __init__(self, before: bytes, ids: tuple[str, ...], parts: tuple[bytes, ...], end: bytes, large: bool) -> None:
        """Make a form from the bytes around the ids.

        Args:
            before: the bytes before the code of the list of properties.
            ids: see the attributes.
            parts: what lies in the list around the ids, from the number of fields on; without types and sizes of the
                ids.
            end: the bytes behind the list.
            large: whether the list has the form with sizes of 4 bytes.
        """
        self.ids = ids
        self._before: Final = before
        self._parts: Final = parts
        self._end: Final = end
        self._large: Final = large
        width = 4 if large else 1
        self._count: Final = int.from_bytes(parts[0][:width])
        self._first: Final = parts[0][width:]
        self._last: Final = parts[-1] + end
        #: Of the list without the texts.
        self._size: Final = sum(map(len, parts)) + 2 * len(ids)
        #: Of the short form: its size without the texts, the bytes before that, and those from there to the first text.
        self._small_size: Final = self._size - (width - 1) if self._count <= _MAX_SMALL else _MAX_SMALL + 1
        self._small: Final = before + bytes((_SMALL,))
        self._small_first: Final = bytes((self._count & _MAX_SMALL,)) + self._first + bytes((_TEXT,))

    @classmethod
    def of(cls, head: bytes) -> Self | None:
        """The form of encoded sections; None if there is no text as an id, or if they are not encoded as usual."""
        try:
            start = _properties_at(head)
            if start is None or (code := head[start]) not in (_SMALL, _LARGE):
                return None
            width = 4 if code == _LARGE else 1
            first = start + 1 + width
            stop = first + int.from_bytes(head[start + 1 : first])
            count = int.from_bytes(head[first : first + width])
            return cls._around(head, start, first, stop, count, width)
        except (IndexError, DecodeError):
            return None

    @classmethod
    def _around(cls, head: bytes, start: int, first: int, stop: int, count: int, width: int) -> Self | None:
        ids: list[str] = []
        parts: list[bytes] = []
        begin, pos = first, first + width
        for place in range(min(count, _CORRELATION_ID + 1)):
            if place in (_MESSAGE_ID, _CORRELATION_ID) and head[pos] == _TEXT:
                ids.append("message_id" if place == _MESSAGE_ID else "correlation_id")
                parts.append(head[begin:pos])
                begin = pos + 2 + head[pos + 1]
            elif place in (_MESSAGE_ID, _CORRELATION_ID) and head[pos] != _NULL:
                return None
            pos = decode_value(head, pos, False)[1]
        if not ids or begin > stop or stop > len(head):
            return None
        parts.append(head[begin:stop])
        return cls(head[:start], tuple(ids), tuple(parts), head[stop:], width == 4)

    @property
    def place(self) -> tuple[bytes, tuple[bytes, ...], bytes, int, bool]:
        """What `find` looks for, for `arrivals.c`: the bytes before the list, those before each id, those from the last
        id to the body, the size of the list without the texts, and whether it has the form with sizes of 4 bytes.
        """
        return self._before, self._parts[:-1], self._last, self._size, self._large

    def join(self, *ids: str) -> bytes:
        """Encoded sections, in the shortest form.

        Args:
            ids: as many as the form has; ASCII of up to 255 characters.
        """
        if len(ids) == 1 and (size := self._small_size + len(text := ids[0])) <= _MAX_SMALL:
            return b"".join(
                (self._small, _SIZES[size], self._small_first, _SIZES[len(text)], text.encode(), self._last)
            )
        fields = [self._first]
        for text, part in zip(ids, self._parts[1:], strict=True):
            fields += (bytes((_TEXT, len(text))), text.encode(), part)
        items = b"".join(fields)
        size = len(items) + 1
        if size <= _MAX_SMALL:
            return b"".join((self._small, bytes((size, self._count)), items, self._end))
        sizes = (size + 3).to_bytes(4) + self._count.to_bytes(4)
        return b"".join((self._before, bytes((_LARGE,)), sizes, items, self._end))

    def find(self, data: bytes) -> tuple[list[str], int] | None:
        """The ids of a message of this form, and where its body begins; None if it has another form."""
        pos = len(self._before)
        if not data.startswith(self._before) or len(data) <= pos + 5:
            return None
        if self._large:
            if data[pos] != _LARGE:
                return None
            size = int.from_bytes(data[pos + 1 : pos + 5])
            pos += 5
        else:
            if data[pos] != _SMALL:
                return None
            size = data[pos + 1]
            pos += 2
        left = size - self._size
        texts: list[str] = []
        try:
            for part in self._parts[:-1]:
                if not data.startswith(part, pos):
                    return None
                pos += len(part) + 2
                if data[pos - 2] != _TEXT:
                    return None
                length = data[pos - 1]
                texts.append(data[pos : pos + length].decode())
                pos += length
                left -= length
        except (IndexError, UnicodeDecodeError):
            return None
        return (texts, pos + len(self._last)) if left == 0 and data.startswith(self._last, pos) else None


def _properties_at(head: bytes) -> int | None:
    """Where the list of the properties section begins."""
    pos = 0
    while head[pos : pos + 2] == _BEGIN and head[pos + 2] < PROPERTIES:
        pos = decode_value(head, pos + 3, False)[1]
    return pos + 3 if head[pos : pos + 2] == _BEGIN and head[pos + 2] == PROPERTIES else None
