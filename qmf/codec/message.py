"""AMQP 1.0 messages: the sections around a body (AMQP 1.0, part 3.2).

Knows what the sections hold, not what QMF means by it, nor how messages are sent. The two directions are in
`_message_encode` and `_message_decode`.
"""

from __future__ import annotations

from qmf.codec._id_form import IdForm, fits_form
from qmf.codec._message import DEFAULT_PRIORITY, Message, Section
from qmf.codec._message_decode import decode_fields, decode_message, split_message
from qmf.codec._message_encode import encode_content, encode_message
from qmf.codec._section_memory import MAX_HEADS, SectionMemory

__all__ = [
    "DEFAULT_PRIORITY",
    "MAX_HEADS",
    "IdForm",
    "Message",
    "Section",
    "SectionMemory",
    "decode_fields",
    "decode_message",
    "encode_content",
    "encode_message",
    "fits_form",
    "split_message",
]
