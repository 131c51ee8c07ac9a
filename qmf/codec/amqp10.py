"""AMQP 1.0's type system (AMQP 1.0, part 1): values to bytes and back.

Knows nothing of messages (`qmf.codec.message`) nor of QMF. The directions are in `_amqp10_encode` and `_amqp10_decode`.
"""

from __future__ import annotations

from qmf.codec._amqp10_decode import decode_value
from qmf.codec._amqp10_encode import encode_into


def encode(value: object) -> bytes:
    """Encode one value, in the shortest form of its type.

    Args:
        value: None, bool, int (long; ulong if it only fits there), float (double), str, bytes, `UUID`, `datetime` with
            a zone (timestamp: milliseconds, rounded down), `Decimal` (decimal128), mapping, list, tuple, or one of
            `qmf.codec.types`. Containers may hold all of these, 32 deep. A str with lone surrogates
            that stand for bytes (``surrogateescape``) is sent as binary.

    Raises:
        EncodeError: a type that AMQP does not have, a number out of its width's range, too deep.
    """
    out = bytearray()
    encode_into(out, value)
    return bytes(out)


def decode(data: bytes, offset: int = 0, *, text: bool = False) -> tuple[object, int]:
    """Decode the value that starts at `offset`.

    Args:
        data: bytes that hold the whole value; more may follow.
        offset: where the value starts.
        text: return binary that is valid UTF-8 as str, in keys, too (QMF2.md 3.2); other binary stays bytes.

    Returns:
        the value and the offset after it. Integers of all widths come as int, symbols and chars as str, timestamps as
        `Timestamp`, arrays as lists, decimals as `Decimal`, described values as `Described`.

    Raises:
        DecodeError: the bytes are no such value. Never anything else.
    """
    return decode_value(bytes(data), offset, text)  # `bytes` copies only what is not bytes yet
