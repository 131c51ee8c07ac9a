"""Decoding AMQP 0-10 typed values (AMQP 0-10, chapter 3; QMF2.md 3.3).

The high half of a type code gives the width of the value, or of its length, so values of unknown types can be skipped:
they come back as their bytes. Built like `_amqp10_decode`: frequent encodings in line, the others through tables.
"""

from __future__ import annotations

import struct
from uuid import UUID

from qmf.codec.limits import MAX_DEPTH, MAX_EMPTY_ELEMENTS
from qmf.codec.type_codes import (
    AMQP010,
    ARRAY,
    BINARY8,
    BINARY16,
    BINARY32,
    CONSTANTS,
    LIST,
    MAP,
    UUID16,
    Unpack,
    number_decoders,
)
from qmf.errors import DecodeError

_unpack_u16 = struct.Struct(">H").unpack_from
_unpack_u32 = struct.Struct(">I").unpack_from
_unpack_u32_pair = struct.Struct(">II").unpack_from

# Numbers and booleans by code: what unpacks them, and their width.
_FIXED: list[tuple[Unpack, int] | None] = [None] * 256
for _code, _decoder in number_decoders(AMQP010).items():
    _FIXED[_code] = _decoder

# Width by the high half of the code; 0x8_ to 0xa_ are sized, 0xb_ and 0xe_ are reserved.
_WIDTHS = {0x0: 1, 0x1: 2, 0x2: 4, 0x3: 8, 0x4: 16, 0x5: 32, 0x6: 64, 0x7: 128, 0xC: 5, 0xD: 9, 0xF: 0}

_BINARY = frozenset({BINARY8, BINARY16, BINARY32})
_CHARSETS = {0x4: "latin-1", 0x5: "utf-8", 0x6: "utf-16-be"}


def decode_map_at(data: bytes, pos: int, text: bool, depth: int = 0) -> tuple[dict[str, object], int]:
    """Decode a map with its size field, which starts at `pos`; may raise IndexError or struct.error at the end."""
    count, pos, end = _enter(data, pos, depth)
    if count > (end - pos) // 2:
        raise DecodeError(f"{count} map entries in {end - pos} bytes at offset {pos}")
    out: dict[str, object] = {}
    for _ in range(count):
        start = pos + 1
        pos = start + data[pos]
        try:
            key = data[start:pos].decode()
        except UnicodeDecodeError:
            raise DecodeError(f"map key at offset {start} is not UTF-8") from None
        code = data[pos]
        fixed = _FIXED[code]
        if fixed is not None:
            unpack, width = fixed
            pos += 1
            out[key] = unpack(data, pos)[0]
            pos += width
        elif code == 0x95:
            start = pos + 3
            pos = start + (data[pos + 1] << 8) + data[pos + 2]
            try:
                out[key] = data[start:pos].decode()
            except UnicodeDecodeError:
                raise DecodeError(f"string at offset {start} is not utf-8") from None
        else:
            out[key], pos = _value(data, pos + 1, code, text, depth + 1)
    if pos > len(data):
        raise IndexError  # a string that was cut
    _check_end(pos, end)
    return out, pos


def decode_list_at(data: bytes, pos: int, text: bool, depth: int = 0) -> tuple[list[object], int]:
    """Decode a list with its size field, which starts at `pos`; may raise IndexError or struct.error at the end."""
    count, pos, end = _enter(data, pos, depth)
    if count > end - pos:
        raise DecodeError(f"{count} list items in {end - pos} bytes at offset {pos}")
    out: list[object] = []
    for _ in range(count):
        value, pos = _value(data, pos + 1, data[pos], text, depth + 1)
        out.append(value)
    _check_end(pos, end)
    return out, pos


def _enter(data: bytes, pos: int, depth: int) -> tuple[int, int, int]:
    """Read size and count; return count, where the items start and where they must end."""
    if depth >= MAX_DEPTH:
        raise DecodeError(f"more than {MAX_DEPTH} values inside each other at offset {pos}")
    size, count = _unpack_u32_pair(data, pos)
    end = pos + 4 + size
    if end > len(data):
        raise DecodeError(f"size {size} at offset {pos} reaches past the end of the data at {len(data)}")
    if size < 4:
        raise DecodeError(f"size {size} at offset {pos} has no room for its count")
    return count, pos + 8, end


def _check_end(pos: int, end: int) -> None:
    if pos != end:
        raise DecodeError(f"items that should end at offset {end} end at {pos}")


def _string(data: bytes, start: int, end: int, code: int, text: bool) -> object:
    """Binary or text of variable width, depending on `code`."""
    if end > len(data):
        raise IndexError
    raw = data[start:end]
    charset = _CHARSETS.get(code & 0x0F)
    if charset is None:
        if not text or code not in _BINARY:
            return raw
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return raw
    try:
        return raw.decode(charset)
    except UnicodeDecodeError:
        raise DecodeError(f"string at offset {start} is not {charset}") from None


def _value(data: bytes, pos: int, code: int, text: bool, depth: int) -> tuple[object, int]:
    """Decode the value of type `code` whose bytes start at `pos`."""
    fixed = _FIXED[code]
    if fixed is not None:
        return fixed[0](data, pos)[0], pos + fixed[1]
    group = code >> 4
    if group == 0x9:
        start = pos + 2
        end = start + _unpack_u16(data, pos)[0]
        return _string(data, start, end, code, text), end
    if group == 0x8:
        start = pos + 1
        end = start + data[pos]
        return _string(data, start, end, code, text), end
    if code == MAP:
        return decode_map_at(data, pos, text, depth)
    if code == LIST:
        return decode_list_at(data, pos, text, depth)
    if code == ARRAY:
        return _array(data, pos, text, depth)
    if group == 0xA:
        start = pos + 4
        end = start + _unpack_u32(data, pos)[0]
        return _string(data, start, end, code, text), end
    width = _WIDTHS.get(group)
    if width is None:
        raise DecodeError(f"unknown type code 0x{code:02x} at offset {pos - 1}")
    end = pos + width
    if end > len(data):
        raise IndexError
    return _of_fixed_width(code, data[pos:end], pos), end


def _of_fixed_width(code: int, raw: bytes, pos: int) -> object:
    """What the bytes of a type mean that is no plain number."""
    if code == UUID16:
        return UUID(bytes=raw)
    if code in CONSTANTS:
        return CONSTANTS[code]
    if code == 0x04:
        return raw.decode("latin-1")
    if code == 0x27:
        try:
            return raw.decode("utf-32-be")
        except UnicodeDecodeError:
            raise DecodeError(f"character at offset {pos} is not Unicode") from None
    return raw


def _array(data: bytes, pos: int, text: bool, depth: int) -> tuple[list[object], int]:
    """uint32 size, type code, uint32 count, then the elements without codes."""
    if depth >= MAX_DEPTH:
        raise DecodeError(f"more than {MAX_DEPTH} values inside each other at offset {pos}")
    end = pos + 4 + _unpack_u32(data, pos)[0]
    if end > len(data):
        raise DecodeError(f"array at offset {pos} reaches past the end of the data at {len(data)}")
    code = data[pos + 4]
    count = _unpack_u32(data, pos + 5)[0]
    start = pos + 9
    if code >> 4 == 0xF:
        if count > MAX_EMPTY_ELEMENTS:
            raise DecodeError(f"array at offset {pos} claims {count} elements of no bytes")
    elif count > max(0, end - start):
        raise DecodeError(f"{count} array elements in {end - start} bytes at offset {pos}")
    out: list[object] = []
    for _ in range(count):
        value, start = _value(data, start, code, text, depth + 1)
        out.append(value)
    _check_end(start, end)
    return out, end
