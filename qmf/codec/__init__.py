"""Encodings: AMQP 1.0 values and messages, AMQP 0-10 maps and lists.

Bytes in, Python values out, and back. Knows nothing of QMF's messages (`qmf.protocol`) nor of connections (`qmf.bus`).
Decoders raise `qmf.errors.DecodeError` and nothing else, whatever bytes they get; encoders raise `EncodeError`.
"""

from __future__ import annotations

from qmf.codec import amqp010, amqp10
from qmf.codec.errors import EncodeError
from qmf.codec.message import Message, Section, decode_message, encode_message
from qmf.codec.types import (
    WRAPPERS,
    Char,
    Described,
    Float32,
    Int8,
    Int16,
    Int32,
    Int64,
    Symbol,
    Timestamp,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    wrap_value,
)

__all__ = [
    "WRAPPERS",
    "Char",
    "Described",
    "EncodeError",
    "Float32",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Message",
    "Section",
    "Symbol",
    "Timestamp",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "amqp010",
    "amqp10",
    "decode_message",
    "encode_message",
    "wrap_value",
]
