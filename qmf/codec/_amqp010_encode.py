"""Encoding AMQP 0-10 typed values (AMQP 0-10, chapter 3; QMF2.md 3.3).

Text goes out as str16 and, where it is longer than 65535 bytes, as vbin32: the longest string that AMQP 0-10 has is a
str16, and peers read binary as text anyway (QMF2.md 3.2). Numbers have no short forms.
"""

# ruff: noqa: ARG001 (all functions of a dispatch table take the same arguments)

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from qmf.codec.errors import EncodeError, escape, out_of_range
from qmf.codec.limits import MAX_DEPTH
from qmf.codec.plain_maps import plain_maps
from qmf.codec.type_codes import (
    AMQP010,
    BINARY16,
    BINARY32,
    BOOLEAN,
    INT64,
    LIST,
    MAP,
    TEXT16,
    UINT64,
    UUID16,
    VOID,
    TypeCode,
    number_packer,
)
from qmf.codec.types import Char, Symbol, Timestamp

_Encoder = Callable[[bytearray, Any, int], None]

_PLAIN = plain_maps()

_pack_u32_pair = struct.Struct(">II").pack
_pack_code_u16 = struct.Struct(">BH").pack
_pack_code_u32 = struct.Struct(">BI").pack
_pack_int64, _pack_uint64 = number_packer(AMQP010[INT64]), number_packer(AMQP010[UINT64])


def encode_map_into(out: bytearray, value: Mapping[str, object], depth: int = 0) -> None:
    """Append a map with its size field."""
    if _PLAIN is not None and (raw := _PLAIN.encode(value, depth)) is not None:
        out += raw
        return
    items = bytearray()
    encoders = _ENCODERS
    for key, item in value.items():
        if not isinstance(key, str):
            raise EncodeError(f"keys of AMQP 0-10 maps are str, not {type(key).__name__}")
        raw = _utf8(key)
        if len(raw) > 0xFF:
            raise EncodeError(f"map key {key[:40]!r}... is longer than 255 bytes")
        items.append(len(raw))
        items += raw
        (encoders.get(type(item)) or _encoder_for(item))(items, item, depth)
    out += _pack_u32_pair(len(items) + 4, len(value))
    out += items


def encode_list_into(out: bytearray, value: Sequence[object], depth: int = 0) -> None:
    """Append a list with its size field."""
    if _PLAIN is not None and (raw := _PLAIN.encode(value, depth)) is not None:
        out += raw
        return
    items = bytearray()
    encoders = _ENCODERS
    for item in value:
        (encoders.get(type(item)) or _encoder_for(item))(items, item, depth)
    out += _pack_u32_pair(len(items) + 4, len(value))
    out += items


def encode_value_into(out: bytearray, value: object, depth: int = 0) -> None:
    """Append any value with its type code; `depth` is the number of maps and lists around it, without the outermost."""
    (_ENCODERS.get(type(value)) or _encoder_for(value))(out, value, depth)


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
    raise EncodeError(f"cannot encode a {type(value).__name__} in AMQP 0-10")


def _deeper(depth: int) -> int:
    # The outermost map or list is level 1 but has no code, so it is not counted here.
    if depth + 1 >= MAX_DEPTH:
        raise EncodeError(f"more than {MAX_DEPTH} values inside each other")
    return depth + 1


def _map(out: bytearray, value: Mapping[str, object], depth: int) -> None:
    out.append(MAP)
    encode_map_into(out, value, _deeper(depth))


def _list(out: bytearray, value: Sequence[object], depth: int) -> None:
    out.append(LIST)
    encode_list_into(out, value, _deeper(depth))


def _void(out: bytearray, value: None, depth: int) -> None:
    out.append(VOID)


def _boolean(out: bytearray, value: bool, depth: int) -> None:
    out.append(BOOLEAN)
    out.append(1 if value else 0)


def _int(out: bytearray, value: int, depth: int) -> None:
    if -(1 << 63) <= value < (1 << 63):
        out += _pack_int64(INT64, value)
    elif 0 < value < (1 << 64):
        out += _pack_uint64(UINT64, value)
    else:
        raise out_of_range(value, "int64 and uint64")


def _number(row: TypeCode) -> _Encoder:
    """Encoder of numbers of one width."""
    code, name, pack = row.code, row.name, number_packer(row)

    def encode(out: bytearray, value: int | float, depth: int) -> None:
        try:
            out += pack(code, value)
        except (struct.error, OverflowError):
            raise out_of_range(value, name) from None

    return encode


def _utf8(value: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise EncodeError(f"string with a lone surrogate: {value[:40]!r}") from None


def _append_sized(out: bytearray, code: int, raw: bytes) -> None:
    size = len(raw)
    if size <= 0xFFFF:
        out += _pack_code_u16(code, size)
    else:
        out += _pack_code_u32(BINARY32, size)
    out += raw


def _string(out: bytearray, value: str, depth: int) -> None:
    try:
        _append_sized(out, TEXT16, value.encode())
    except UnicodeEncodeError:
        _append_sized(out, BINARY16, escape(value))


def _binary(out: bytearray, value: bytes, depth: int) -> None:
    _append_sized(out, BINARY16, bytes(value))


def _char(out: bytearray, value: str, depth: int) -> None:
    if len(value) != 1:
        raise EncodeError(f"a char is one character, not {len(value)}")
    _utf8(value)
    out += _pack_code_u32(0x27, ord(value))


def _uuid(out: bytearray, value: UUID, depth: int) -> None:
    out.append(UUID16)
    out += value.bytes


# `_encoder_for` takes the first base that fits, so subclasses stand before their bases.
_ENCODERS: dict[type, _Encoder] = {
    type(None): _void,
    bool: _boolean,
    **{row.python: _number(row) for row in AMQP010.values() if row.is_number and row.python not in (bool, int)},
    Timestamp: _number(AMQP010[INT64]),
    int: _int,
    Symbol: _string,
    Char: _char,
    str: _string,
    bytes: _binary,
    UUID: _uuid,
    dict: _map,
    list: _list,
    tuple: _list,
}
