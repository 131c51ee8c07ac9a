"""A message on its way through the broker: its bytes, which are never changed, and what routing needs to know.

Routing needs two properties and the time to live. They are picked out of the bytes where a message is laid out as
usual; the codec reads all others, and the application properties when a headers exchange asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from qmf.codec.message import decode_message
from qmf.errors import DecodeError


@attrs.define(eq=False)
class Message:
    """One message. Nothing changes it; it is not frozen because one is made for every message.

    Attributes:
        data: the encoded message as it came, and as it will leave.
        to: node that the message names, or None.
        subject: routing key; empty when the message has none.
        expires: time after which nobody wants the message, on the clock of the broker; None for never.
    """

    data: bytes
    to: str | None
    subject: str
    _headers: Mapping[str, object] | None
    expires: float | None

    @property
    def headers(self) -> Mapping[str, object]:
        """Application properties, which headers exchanges match.

        Raises:
            DecodeError: they are broken; only when they were not read before.
        """
        if self._headers is None:
            self._headers = decode_message(self.data, body=False).application_properties
        return self._headers

    def expired(self, now: float) -> bool:
        """True when its time to live is over."""
        return self.expires is not None and now >= self.expires


def read_message(data: bytes, now: float) -> Message:
    """Look at a message that arrived at `now`. Sections behind the properties are only checked for their sizes.

    Raises:
        DecodeError: it is none.
    """
    try:
        return _glance(data, now)
    except (_UnusualError, IndexError, UnicodeDecodeError):
        message = decode_message(data, body=False)
        return Message(
            data=data,
            to=message.to,
            subject=message.subject or "",
            headers=message.application_properties,
            expires=None if message.ttl is None else now + message.ttl,
        )


class _UnusualError(DecodeError):
    """Perhaps a message, but not one that is laid out as usual."""


#: Bytes after the code of each fixed-width encoding that may stand in header or properties (AMQP 1.0, part 1.6).
_WIDTHS = {
    **dict.fromkeys((0x40, 0x41, 0x42, 0x43, 0x44), 0),
    **dict.fromkeys((0x50, 0x52, 0x53, 0x56), 1),
    **dict.fromkeys((0x70,), 4),
    **dict.fromkeys((0x80, 0x83), 8),
    0x98: 16,
}
_VARIABLE8, _VARIABLE32 = frozenset({0xA0, 0xA1}), frozenset({0xB0, 0xB1})
_STRING8, _STRING32 = 0xA1, 0xB1
_NULL = 0x40
#: Starts of sections, in their usual form (part 3.2).
_HEADER, _PROPERTIES, _APPLICATION = b"\x00\x53\x70", b"\x00\x53\x73", b"\x00\x53\x74"
_BODY = (b"\x00\x53\x75", b"\x00\x53\x76", b"\x00\x53\x77")


def _glance(data: bytes, now: float) -> Message:
    pos = 0
    expires = to = subject = None
    if data.startswith(_HEADER):
        count, pos, end = _compound(data, 3, 0xC0, 0xD0)
        if count > 2:
            pos = _after(data, _after(data, pos))
            ttl = _number(data, pos)
            expires = None if ttl is None else now + ttl / 1000
        pos = end
    if data.startswith(_PROPERTIES, pos):
        count, pos, end = _compound(data, pos + 3, 0xC0, 0xD0)
        if count > 2:
            to, pos = _text(data, _after(data, _after(data, pos)))
        if count > 3:
            subject, pos = _text(data, pos)
        if pos > end:
            raise _UnusualError("a field longer than its section")
        pos = end
    if data.startswith(_APPLICATION, pos):
        _, _, pos = _compound(data, pos + 3, 0xC1, 0xD1)
    if not data.startswith(_BODY, pos):
        raise _UnusualError("another section than expected")
    return Message(data, to, subject or "", None, expires)


def _compound(data: bytes, pos: int, short: int, long: int) -> tuple[int, int, int]:
    """Of the list or map at `pos`: number of values, start of the first one, end."""
    code = data[pos]
    if code == short:
        return data[pos + 2], pos + 3, pos + 2 + data[pos + 1]
    if code == long:
        size = int.from_bytes(data[pos + 1 : pos + 5])
        return int.from_bytes(data[pos + 5 : pos + 9]), pos + 9, pos + 5 + size
    raise _UnusualError("another type than expected")


def _after(data: bytes, pos: int) -> int:
    """Where the value at `pos` ends."""
    code = data[pos]
    if (width := _WIDTHS.get(code)) is not None:
        return pos + 1 + width
    if code in _VARIABLE8:
        return pos + 2 + data[pos + 1]
    if code in _VARIABLE32:
        return pos + 5 + int.from_bytes(data[pos + 1 : pos + 5])
    raise _UnusualError("another type than expected")


def _text(data: bytes, pos: int) -> tuple[str | None, int]:
    """The string at `pos`, or None for null, and where it ends."""
    code = data[pos]
    end = _after(data, pos)
    if code == _STRING8:
        return data[pos + 2 : end].decode(), end
    if code == _STRING32:
        return data[pos + 5 : end].decode(), end
    if code == _NULL:
        return None, end
    raise _UnusualError("another type than expected")


def _number(data: bytes, pos: int) -> int | None:
    """The unsigned number at `pos`, or None for null."""
    code = data[pos]
    if code == _NULL:
        return None
    if code == 0x43:
        return 0
    if code == 0x52:
        return data[pos + 1]
    if code == 0x70:
        return int.from_bytes(data[pos + 1 : pos + 5])
    raise _UnusualError("another type than expected")
