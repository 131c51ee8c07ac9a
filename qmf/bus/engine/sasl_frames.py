"""The frames of AMQP's SASL layer (AMQP 1.0, part 5.3), of both sides: bytes in and out, nothing about mechanisms."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import attrs
import proton

from qmf.bus.engine.terminus import PROTON_DECODE_ERRORS

#: First bytes of both sides.
SASL_HEADER = b"AMQP\x03\x01\x00\x00"
#: Descriptors (AMQP 1.0, part 5.3.3).
MECHANISMS, INIT, CHALLENGE, RESPONSE, OUTCOME = 0x40, 0x41, 0x42, 0x43, 0x44
#: Codes of outcomes.
OUTCOME_OK, OUTCOME_AUTH = 0, 1

#: Part 5.3.1 limits SASL frames to 512 bytes, which is too small for access tokens: peers that have none stay below.
MAX_SASL_FRAME = 64 * 1024

_NAMES = {
    "amqp:sasl-mechanisms:list": MECHANISMS,
    "amqp:sasl-init:list": INIT,
    "amqp:sasl-challenge:list": CHALLENGE,
    "amqp:sasl-response:list": RESPONSE,
    "amqp:sasl-outcome:list": OUTCOME,
}


class SaslFrameError(Exception):
    """What the peer sent is no SASL frame."""


@attrs.frozen
class SaslFrame:
    """A frame that was received.

    Attributes:
        code: descriptor.
        fields: as proton decodes them.
    """

    code: int
    fields: tuple[Any, ...]

    def binary(self, index: int) -> bytes | None:
        """A field of bytes; None if it is missing.

        Raises:
            SaslFrameError: it has another type.
        """
        value = self.fields[index] if index < len(self.fields) else None
        if value is None:
            return None
        if not isinstance(value, bytes):
            raise SaslFrameError("a field has the wrong type")
        return value

    def symbols(self, index: int) -> tuple[str, ...]:
        """A field with one symbol, an array of them, or none."""
        value = self.fields[index] if index < len(self.fields) else None
        if value is None:
            return ()
        if isinstance(value, str):
            return (str(value),)
        return tuple(str(name) for name in getattr(value, "elements", ()))


class SaslFrameReader:
    """Makes frames of the bytes of a peer.

    Attributes:
        buffer: what was not read yet; behind the last frame, bytes of AMQP.
    """

    def __init__(self) -> None:
        self.buffer = b""

    def has_header(self) -> bool:
        """Take the header; False while it is incomplete.

        Raises:
            SaslFrameError: the peer begins with something else; the buffer has it.
        """
        size = len(SASL_HEADER)
        if not SASL_HEADER.startswith(self.buffer[:size]):
            raise SaslFrameError("it does not start with SASL")
        if len(self.buffer) < size:
            return False
        self.buffer = self.buffer[size:]
        return True

    def next_frame(self) -> SaslFrame | None:
        """Take a frame; None while it is incomplete.

        Raises:
            SaslFrameError: it is malformed.
        """
        buffer = self.buffer
        if len(buffer) < 8:
            return None
        size, offset, kind = struct.unpack_from(">IBB", buffer)
        if not 8 <= size <= MAX_SASL_FRAME or kind != 1 or not 8 <= offset * 4 <= size:
            raise SaslFrameError("malformed SASL frame")
        if len(buffer) < size:
            return None
        self.buffer = buffer[size:]
        return _decode(buffer[offset * 4 : size])


def mechanisms_frame(names: Sequence[str]) -> bytes:
    """What a server offers."""
    undescribed: Any = proton.UNDESCRIBED
    return _frame(MECHANISMS, proton.Array(undescribed, proton.Data.SYMBOL, *names))


def init_frame(mechanism: str, response: bytes | None, hostname: str | None) -> bytes:
    """The mechanism that a client uses."""
    return _frame(INIT, proton.symbol(mechanism), response, hostname)


def challenge_frame(data: bytes) -> bytes:
    """A challenge of a server."""
    return _frame(CHALLENGE, data)


def response_frame(data: bytes) -> bytes:
    """A response of a client."""
    return _frame(RESPONSE, data)


def outcome_frame(code: int, data: bytes | None = None) -> bytes:
    """The end of an exchange."""
    return _frame(OUTCOME, proton.ubyte(code), *(() if data is None else (data,)))


def _frame(code: int, *fields: Any) -> bytes:
    data = proton.Data()
    data.put_object(proton.Described(proton.ulong(code), list(fields)))
    body = data.encode()
    return struct.pack(">IBBH", 8 + len(body), 2, 1, 0) + body


def _decode(body: bytes) -> SaslFrame:
    data = proton.Data()
    try:
        data.decode(body)
        data.rewind()
        data.next()
        value = data.get_object()
    except (*PROTON_DECODE_ERRORS, KeyError, AttributeError) as error:
        raise SaslFrameError("malformed SASL frame") from error
    if not isinstance(value, proton.Described) or not isinstance(value.value, list):
        raise SaslFrameError("malformed SASL frame")
    descriptor = value.descriptor
    code = _NAMES.get(str(descriptor)) if isinstance(descriptor, str) else descriptor
    if not isinstance(code, int):
        raise SaslFrameError("unknown SASL frame")
    # Views of proton's memory, which is gone with `data`.
    fields = (bytes(field) if isinstance(field, memoryview) else field for field in value.value)
    return SaslFrame(int(code), tuple(fields))
