"""The fields of definitions as bytes: AMQP 1.0 maps, so that arguments keep their types. Lists of numbers as bytes."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from qmf.codec import amqp10
from qmf.errors import DecodeError


def encode_fields(fields: Mapping[str, object]) -> bytes:
    """Encode names and values.

    Raises:
        EncodeError: a value has no AMQP type.
    """
    return amqp10.encode(dict(fields))


def decode_fields(data: bytes) -> dict[str, object]:
    """Decode names and values.

    Raises:
        DecodeError: the bytes are no map with names as keys.
    """
    value, end = amqp10.decode(data)
    if end != len(data) or not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise DecodeError("not a map with names as keys")
    return value


def encode_numbers(numbers: Sequence[int]) -> bytes:
    """Encode numbers of up to 64 bits."""
    return struct.pack(f">{len(numbers)}Q", *numbers)


def decode_numbers(data: object) -> Sequence[int]:
    """Decode numbers.

    Raises:
        DecodeError: there are no such bytes.
    """
    if not isinstance(data, bytes) or len(data) % 8:
        raise DecodeError("no numbers of eight bytes")
    return struct.unpack(f">{len(data) // 8}Q", data)
