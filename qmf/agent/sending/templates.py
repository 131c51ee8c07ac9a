"""Messages to the same place with the same words around them: encoded once, with the number and body put in later."""

from __future__ import annotations

import struct

from qmf.agent.sending.message_sender import MessageSender
from qmf.protocol import Content

# A number in its longest form, that no properties hold by chance.
_NUMBER = 0xFEDC_BA98_7654_3210
_MARK = struct.pack(">Q", _NUMBER)

#: A data section without bytes, as it ends the encoded message.
_EMPTY = b"\x00\x53\x75\xa0\x00"

_pack_number = struct.Struct(">Q").pack
_pack_head = struct.Struct(">4sI").pack
_DATA = b"\x00\x53\x75\xb0"


class MessageTemplate:
    """Makes messages that differ in number and body only; the body is encoded in AMQP 0-10 already."""

    def __init__(self, sender: MessageSender, content: Content, to: str, subject: str, *, numbered: bool) -> None:
        """Encode what does not change.

        Args:
            sender: of the agent.
            content: of what kind the messages are.
            to, subject: where they go.
            numbered: whether they have a number.
        """
        data = sender.encode(content, to, subject, sequence=_NUMBER if numbered else None, body=b"")
        assert data.endswith(_EMPTY)
        before, mark, after = data.removesuffix(_EMPTY).partition(_MARK)
        assert bool(mark) is numbered
        self._before = before
        self._after = after

    def message(self, number: int | None, body: bytes) -> bytes:
        """One message."""
        count = b"" if number is None else _pack_number(number)
        return b"".join((self._before, count, self._after, _pack_head(_DATA, len(body)), body))
