"""Encoding messages: only sections and fields that say something are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from qmf.codec._amqp10_encode import encode_into
from qmf.codec._message import (
    APPLICATION_PROPERTIES,
    DATA,
    DELIVERY_ANNOTATIONS,
    FOOTER,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    SEQUENCE,
    VALUE,
    Message,
    Section,
)
from qmf.codec.errors import EncodeError
from qmf.codec.types import Symbol, Timestamp, UInt8, UInt32, UInt64


def encode_message(message: Message) -> bytes:
    """Encode a message with all its sections.

    Annotations' keys of type str are sent as symbols, as they must be.

    Raises:
        EncodeError: a value that AMQP cannot hold, or a body that does not go with `section`.
    """
    out = bytearray()
    _fields(out, HEADER, _header(message))
    _annotations(out, DELIVERY_ANNOTATIONS, message.delivery_annotations)
    _annotations(out, MESSAGE_ANNOTATIONS, message.message_annotations)
    _fields(out, PROPERTIES, _properties(message))
    _content(out, message.application_properties, message.section, message.body)
    _annotations(out, FOOTER, message.footer)
    return bytes(out)


def encode_content(properties: Mapping[str, object], section: Section, body: object) -> bytes:
    """Encode the sections that usually differ between messages: application properties and body.

    They follow what `encode_message` makes of a message without them, which senders may keep.

    Raises:
        EncodeError: as of `encode_message`.
    """
    out = bytearray()
    _content(out, properties, section, body)
    return bytes(out)


def _content(out: bytearray, properties: Mapping[str, object], section: Section, body: object) -> None:
    if properties:
        _section(out, APPLICATION_PROPERTIES, properties)
    _body(out, section, body)


def _section(out: bytearray, code: int, value: object) -> None:
    out += bytes((0x00, 0x53, code))
    encode_into(out, value)


def _fields(out: bytearray, code: int, values: list[object]) -> None:
    """A section that is a list, without the nulls at its end; nothing when all are null."""
    while values and values[-1] is None:
        values.pop()
    if values:
        _section(out, code, values)


def _annotations(out: bytearray, code: int, values: Mapping[Any, object]) -> None:
    if values:
        _section(out, code, {Symbol(key) if type(key) is str else key: value for key, value in values.items()})


def _header(message: Message) -> list[object]:
    return [
        message.durable,
        _to_typed(UInt8, message.priority),
        _to_typed(_milliseconds, message.ttl),
        True if message.first_acquirer else None,
        UInt32(message.delivery_count) if message.delivery_count else None,
    ]


def _milliseconds(ttl: float) -> UInt32:
    if not math.isfinite(ttl):
        raise EncodeError(f"ttl of {ttl} s")
    return UInt32(round(ttl * 1000))


def _id(value: object) -> object:
    return UInt64(value) if type(value) is int else value


def _text(value: str | None) -> str | None:
    """Text that must not become binary, as text with lone surrogates would: brokers route by it."""
    if value is not None and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise EncodeError(f"address or key with a lone surrogate: {value[:40]!r}") from None
    return value


def _to_typed(kind: Callable[[Any], object], value: object) -> object:
    return None if value is None else kind(value)


def _properties(message: Message) -> list[object]:
    return [
        _id(message.message_id),
        message.user_id,
        _text(message.to),
        _text(message.subject),
        _text(message.reply_to),
        _id(message.correlation_id),
        _to_typed(Symbol, message.content_type),
        _to_typed(Symbol, message.content_encoding),
        _to_typed(Timestamp, message.absolute_expiry_time),
        _to_typed(Timestamp, message.creation_time),
        message.group_id,
        _to_typed(UInt32, message.group_sequence),
        message.reply_to_group_id,
    ]


def _body(out: bytearray, section: Section, body: object) -> None:
    if section is Section.DATA:
        if not isinstance(body, bytes):
            raise EncodeError(f"a data section holds bytes, not {type(body).__name__}")
        _section(out, DATA, body)
    elif section is Section.VALUE:
        _section(out, VALUE, body)
    elif section is Section.SEQUENCE:
        if not isinstance(body, (list, tuple)):
            raise EncodeError(f"a sequence section holds a list, not {type(body).__name__}")
        _section(out, SEQUENCE, body)
    elif body is not None:
        raise EncodeError("a body without a kind of section")
