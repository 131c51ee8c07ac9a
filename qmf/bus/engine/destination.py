"""Reads `to` and `subject` of an encoded message, which is all that senders need, without decoding the rest.

This package does not depend on the project's codec: proton's decoder reads the sections up to the properties.
"""

from __future__ import annotations

import proton

from qmf.bus.engine.terminus import PROTON_DECODE_ERRORS
from qmf.errors import DecodeError

#: Descriptors of the properties section, and of the sections that may precede it (AMQP 1.0, part 3.2).
_PROPERTIES = 0x73
_BEFORE = frozenset({0x70, 0x71, 0x72})
_NAMES = {
    "amqp:header:list": 0x70,
    "amqp:delivery-annotations:map": 0x71,
    "amqp:message-annotations:map": 0x72,
    "amqp:properties:list": 0x73,
}
_TO = 2
_SUBJECT = 3


def read_destination(data: bytes) -> tuple[str | None, str | None]:
    """`to` and `subject` of an encoded message; None for each that it does not have.

    Raises:
        DecodeError: the bytes up to and including the properties section are malformed.
    """
    offset = 0
    while offset < len(data):
        try:
            section = proton.Data()
            offset += section.decode(data[offset:] if offset else data)
            section.rewind()
            section.next()
            value = section.get_object()
        except PROTON_DECODE_ERRORS as error:
            raise DecodeError(f"not an AMQP message: section at offset {offset}: {error}") from error
        if not isinstance(value, proton.Described):
            raise DecodeError("not an AMQP message: a value without section descriptor")
        descriptor = _NAMES.get(value.descriptor) if isinstance(value.descriptor, str) else value.descriptor
        if descriptor == _PROPERTIES:
            return _text(value.value, _TO), _text(value.value, _SUBJECT)
        if descriptor not in _BEFORE:
            break
    return None, None


def _text(fields: object, index: int) -> str | None:
    if not isinstance(fields, list) or len(fields) <= index:
        return None
    value = fields[index]
    return str(value) if isinstance(value, str) else None
