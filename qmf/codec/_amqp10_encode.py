"""Encoding AMQP 1.0 values (AMQP 1.0, part 1.6), each in its shortest form.

Encoders append to one buffer. They are looked up by the exact type of the value; subclasses and other containers take
the slow way through `_encoder_for`. A container's items are written into a buffer of their own: their size comes first.
"""

# ruff: noqa: ARG001 (all functions of a dispatch table take the same arguments)

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from qmf.codec.decimals import encode_decimal
from qmf.codec.errors import EncodeError, escape, out_of_range
from qmf.codec.limits import MAX_DEPTH
from qmf.codec.type_codes import AMQP10, number_packer
from qmf.codec.types import (
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
)

_Encoder = Callable[[bytearray, Any, int], None]

_pack_u32 = struct.Struct(">I").pack
_pack_long, _pack_ulong = number_packer(AMQP10[0x81]), number_packer(AMQP10[0x80])
_pack_time = number_packer(AMQP10[0x83])
_pack_double, _pack_float = number_packer(AMQP10[0x82]), number_packer(AMQP10[0x72])


def encode_into(out: bytearray, value: object, depth: int = 0) -> None:
    """Append the encoding of `value`; see `qmf.codec.amqp10.encode`."""
    encoder = _ENCODERS.get(type(value)) or _encoder_for(value)
    encoder(out, value, depth)


def _encoder_for(value: object) -> _Encoder:
    """The encoder of a value whose exact type is not in the table."""
    for base, encoder in _ENCODERS.items():
        if isinstance(value, base):
            return encoder
    if isinstance(value, Mapping):
        return _map
    if isinstance(value, (bytearray, memoryview)):  # sequences, too
        return _binary
    if isinstance(value, Sequence):
        return _list
    raise EncodeError(f"cannot encode a {type(value).__name__} in AMQP 1.0")


def _null(out: bytearray, value: None, depth: int) -> None:
    out.append(0x40)


def _boolean(out: bytearray, value: bool, depth: int) -> None:
    out.append(0x41 if value else 0x42)


def _int(out: bytearray, value: int, depth: int) -> None:
    if -128 <= value <= 127:
        out.append(0x55)
        out.append(value & 0xFF)
    elif -(1 << 63) <= value < (1 << 63):
        out += _pack_long(0x81, value)
    elif value < (1 << 64):
        _ulong(out, value, depth)
    else:
        raise out_of_range(value, "long and ulong")


def _ulong(out: bytearray, value: int, depth: int) -> None:
    if value == 0:
        out.append(0x44)
    elif 0 < value <= 0xFF:
        out.append(0x53)
        out.append(value)
    else:
        try:
            out += _pack_ulong(0x80, value)
        except struct.error:
            raise out_of_range(value, "ulong") from None


def _uint(out: bytearray, value: int, depth: int) -> None:
    if value == 0:
        out.append(0x43)
    elif 0 < value <= 0xFF:
        out.append(0x52)
        out.append(value)
    elif 0 < value <= 0xFFFFFFFF:
        out.append(0x70)
        out += _pack_u32(value)
    else:
        raise out_of_range(value, "uint")


def _long(out: bytearray, value: int, depth: int) -> None:
    if not -(1 << 63) <= value < (1 << 63):
        raise out_of_range(value, "long")
    _int(out, value, depth)


def _number(code: int) -> _Encoder:
    """Encoder of a number that is always sent with this type code."""
    name, pack = AMQP10[code].name, number_packer(AMQP10[code])

    def encode(out: bytearray, value: int, depth: int) -> None:
        try:
            out += pack(code, value)
        except struct.error:
            raise out_of_range(value, name) from None

    return encode


_wide_int = _number(0x71)


def _int32(out: bytearray, value: int, depth: int) -> None:
    if -128 <= value <= 127:
        out.append(0x54)
        out.append(value & 0xFF)
    else:
        _wide_int(out, value, depth)


def _double(out: bytearray, value: float, depth: int) -> None:
    out += _pack_double(0x82, value)


def _float(out: bytearray, value: float, depth: int) -> None:
    try:
        out += _pack_float(0x72, value)
    except OverflowError:
        raise out_of_range(value, "float") from None


def _char(out: bytearray, value: str, depth: int) -> None:
    if len(value) != 1:
        raise EncodeError(f"a char is one character, not {len(value)}")
    number = ord(value)
    if 0xD800 <= number <= 0xDFFF:
        raise EncodeError(f"a char is a Unicode character, not 0x{number:x}")
    out.append(0x73)
    out += _pack_u32(number)


def _append_sized(out: bytearray, code: int, raw: bytes) -> None:
    """A value of variable width: `code` in its short form, with a size of one byte, or its long one."""
    size = len(raw)
    if size <= 0xFF:
        out.append(code)
        out.append(size)
    else:
        out.append(code | 0x10)
        out += _pack_u32(size)
    out += raw


def _string(out: bytearray, value: str, depth: int) -> None:
    try:
        raw = value.encode()
    except UnicodeEncodeError:
        _append_sized(out, 0xA0, escape(value))
        return
    size = len(raw)
    if size <= 0xFF:  # `_append_sized` in line: this is every key
        out.append(0xA1)
        out.append(size)
        out += raw
    else:
        _append_sized(out, 0xA1, raw)


def _symbol(out: bytearray, value: str, depth: int) -> None:
    try:
        _append_sized(out, 0xA3, value.encode("ascii"))
    except UnicodeEncodeError:
        raise EncodeError(f"a symbol is ASCII, not {str(value)[:40]!r}") from None


def _binary(out: bytearray, value: bytes, depth: int) -> None:
    _append_sized(out, 0xA0, bytes(value))


def _uuid(out: bytearray, value: UUID, depth: int) -> None:
    out.append(0x98)
    out += value.bytes


_EPOCH, _MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)


def _datetime(out: bytearray, value: datetime, depth: int) -> None:
    if value.tzinfo is None:
        raise EncodeError(f"a time needs a time zone: {value.isoformat()} has none")
    out += _pack_time(0x83, (value - _EPOCH) // _MILLISECOND)


def _decimal(out: bytearray, value: Decimal, depth: int) -> None:
    out.append(0x94)
    out += encode_decimal(value)


def _compound(out: bytearray, code: int, count: int, items: bytearray) -> None:
    size = len(items)
    if size < 0xFF and count <= 0xFF:
        out.append(code)
        out.append(size + 1)
        out.append(count)
    else:
        out.append(code | 0x10)
        out += _pack_u32(size + 4)
        out += _pack_u32(count)
    out += items


def _deeper(depth: int) -> int:
    if depth >= MAX_DEPTH:
        raise EncodeError(f"more than {MAX_DEPTH} values inside each other")
    return depth + 1


def _map(out: bytearray, value: Mapping[object, object], depth: int) -> None:
    depth = _deeper(depth)
    items = bytearray()
    encoders = _ENCODERS
    for key, item in value.items():
        (encoders.get(type(key)) or _encoder_for(key))(items, key, depth)
        (encoders.get(type(item)) or _encoder_for(item))(items, item, depth)
    _compound(out, 0xC1, 2 * len(value), items)


def _list(out: bytearray, value: Sequence[object], depth: int) -> None:
    if not value:
        out.append(0x45)
        return
    depth = _deeper(depth)
    items = bytearray()
    encoders = _ENCODERS
    for item in value:
        (encoders.get(type(item)) or _encoder_for(item))(items, item, depth)
    _compound(out, 0xC0, len(value), items)


def _encode_described(out: bytearray, value: Described, depth: int) -> None:
    depth = _deeper(depth)
    out.append(0x00)
    encode_into(out, value.descriptor, depth)
    encode_into(out, value.value, depth)


# `_encoder_for` takes the first base that fits, so subclasses stand before their bases.
_ENCODERS: dict[type, _Encoder] = {
    type(None): _null,
    bool: _boolean,
    UInt8: _number(0x50),
    UInt16: _number(0x60),
    UInt32: _uint,
    UInt64: _ulong,
    Int8: _number(0x51),
    Int16: _number(0x61),
    Int32: _int32,
    Int64: _long,
    Timestamp: _number(0x83),
    int: _int,
    Float32: _float,
    float: _double,
    Symbol: _symbol,
    Char: _char,
    str: _string,
    bytes: _binary,
    UUID: _uuid,
    datetime: _datetime,
    Decimal: _decimal,
    dict: _map,
    list: _list,
    tuple: _list,
    Described: _encode_described,
}
