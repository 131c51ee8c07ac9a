"""Decoding AMQP 1.0 values (AMQP 1.0, part 1.6).

One pass over the bytes. `_values` decodes a run of values and has the frequent encodings in line: strings, because half
of what QMF sends is keys, then fixed widths through a table of precompiled structs. All others go through a table
indexed by the code byte. Reading past the end surfaces as `IndexError` or `struct.error`, which the entry turns into
`DecodeError`; a value that reaches past its container is noticed when the container's end is compared.
"""

# ruff: noqa: ARG001 (all functions of a dispatch table take the same arguments)

from __future__ import annotations

import struct
from collections.abc import Callable
from uuid import UUID

from qmf.codec.decimals import decode_decimal
from qmf.codec.limits import MAX_DEPTH, MAX_EMPTY_ELEMENTS
from qmf.codec.type_codes import AMQP10, number_decoders
from qmf.codec.types import Described, Timestamp
from qmf.errors import DecodeError

_Result = tuple[object, int]
_Decoder = Callable[[bytes, int, int, bool, int], _Result]

_unpack_u32 = struct.Struct(">I").unpack_from
_unpack_u32_pair = struct.Struct(">II").unpack_from

# Numbers by code: what unpacks them, and their width with the code.
_FIXED = {code: (unpack, width + 1) for code, (unpack, width) in number_decoders(AMQP10).items()}
_unpack_time, _ = _FIXED.pop(0x83)  # has a class of its own

# Types of keys in maps of any size. Of others, such as uuids, a peer can find as many as it likes that have one hash,
# and each is compared with all before it: only small maps may have those.
_SAFE_KEYS = frozenset({str, bytes, int, bool, type(None)})
_SMALL = 32

# Encodings without any bytes after the code: what they stand for. 0x45, the empty list, needs a new one each time.
_EMPTY: dict[int, object] = {0x40: None, 0x41: True, 0x42: False, 0x43: 0, 0x44: 0, 0x45: None}

# How `_values` reads each code: a constant, one unsigned byte, a struct, or by the table of functions.
_OTHER, _CONSTANT, _BYTE, _STRUCT = range(4)
_KINDS = bytearray(256)
for _code in _FIXED:
    _KINDS[_code] = _STRUCT
    if AMQP10[_code].format == "B":
        _KINDS[_code] = _BYTE
for _code in (0x40, 0x41, 0x42, 0x43, 0x44):
    _KINDS[_code] = _CONSTANT


def decode_value(data: bytes, pos: int, text: bool) -> _Result:
    """Decode one value, which starts at `pos`; see `qmf.codec.amqp10.decode`."""
    try:
        values, end = _values(data, pos, 1, text, 0)
    except (IndexError, struct.error):
        raise DecodeError(f"value at offset {pos}: the data ends at {len(data)}, inside the value") from None
    return values[0], end


def _values(data: bytes, pos: int, count: int, text: bool, depth: int) -> tuple[list[object], int]:
    """Decode `count` values in a row."""
    out: list[object] = []
    append = out.append
    for _ in range(count):
        code = data[pos]
        if code == 0xA1:
            start = pos + 2
            pos = start + data[pos + 1]
            try:
                append(data[start:pos].decode())
            except UnicodeDecodeError:
                raise _not_utf8(start) from None
            continue
        kind = _KINDS[code]
        if kind == _CONSTANT:
            append(_EMPTY[code])
            pos += 1
        elif kind == _BYTE:
            append(data[pos + 1])
            pos += 2
        elif kind == _STRUCT:
            unpack, size = _FIXED[code]
            append(unpack(data, pos + 1)[0])
            pos += size
        elif code == 0xA0:
            start = pos + 2
            pos = start + data[pos + 1]
            raw = data[start:pos]
            if text:
                try:
                    append(raw.decode())
                    continue
                except UnicodeDecodeError:
                    pass
            append(raw)
        else:
            value, pos = _DECODERS[code](data, pos + 1, code, text, depth)
            append(value)
    if pos > len(data):
        raise IndexError  # a string that was cut
    return out, pos


def _body(data: bytes, pos: int, code: int, text: bool, depth: int) -> _Result:
    """Decode what follows the code of a value: for array elements, which share one code."""
    fixed = _FIXED.get(code)
    if fixed is not None:
        return fixed[0](data, pos)[0], pos + fixed[1] - 1
    return _DECODERS[code](data, pos, code, text, depth)


def _not_utf8(pos: int) -> DecodeError:
    return DecodeError(f"string at offset {pos} is not UTF-8")


def _refuse_code(data: bytes, pos: int, code: int, text: bool, depth: int) -> _Result:
    raise DecodeError(f"unknown type code 0x{code:02x} at offset {pos - 1}")


def _empty(data: bytes, pos: int, code: int, text: bool, depth: int) -> _Result:
    return ([] if code == 0x45 else _EMPTY[code]), pos


def _boolean(data: bytes, pos: int, code: int, text: bool, depth: int) -> _Result:
    if data[pos] > 1:
        raise DecodeError(f"boolean at offset {pos} is {data[pos]}, not 0 or 1")
    return data[pos] == 1, pos + 1


def _char(data: bytes, pos: int, code: int, text: bool, depth: int) -> _Result:
    (number,) = _unpack_u32(data, pos)
    if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        raise DecodeError(f"char at offset {pos} is 0x{number:x}, not a Unicode character")
    return chr(number), pos + 4


def _raw(data: bytes, pos: int, width: int) -> tuple[bytes, int]:
    end = pos + width
    if end > len(data):
        raise IndexError
    return data[pos:end], end


def _uuid(data: bytes, pos: int, code: int, text: bool, depth: int) -> _Result:
    raw, end = _raw(data, pos, 16)
    return UUID(bytes=raw), end


def _decimal(data: bytes, pos: int, code: int, text: bool, depth: int) -> _Result:
    raw, end = _raw(data, pos, AMQP10[code].width)
    return decode_decimal(raw), end


def _timestamp(data: bytes, pos: int, code: int, text: bool, depth: int) -> _Result:
    return Timestamp(_unpack_time(data, pos)[0]), pos + 8


def _variable(data: bytes, pos: int, code: int, text: bool, depth: int) -> _Result:
    """Binary, string and symbol, with a size of one byte (0xAx) or four (0xBx)."""
    if code & 0x10:
        (size,) = _unpack_u32(data, pos)
        raw, end = _raw(data, pos + 4, size)
    else:
        raw, end = _raw(data, pos + 1, data[pos])
    kind = code & 0x0F
    if kind == 0 and not text:
        return raw, end
    try:
        return raw.decode("ascii" if kind == 3 else "utf-8"), end
    except UnicodeDecodeError:
        if kind == 0:
            return raw, end
        if kind == 3:
            raise DecodeError(f"symbol at offset {end - len(raw)} is not ASCII") from None
        raise _not_utf8(end - len(raw)) from None


def _enter(data: bytes, pos: int, wide: bool, depth: int) -> tuple[int, int, int]:
    """Read size and count of a compound or array; return count, where its items start and where they must end."""
    if depth >= MAX_DEPTH:
        raise DecodeError(f"more than {MAX_DEPTH} values inside each other at offset {pos}")
    if wide:
        size, count = _unpack_u32_pair(data, pos)
        start = pos + 8
        end = pos + 4 + size
    else:
        size, count = data[pos], data[pos + 1]
        start = pos + 2
        end = pos + 1 + size
    if end > len(data):
        raise DecodeError(f"size {size} at offset {pos} reaches past the end of the data at {len(data)}")
    if start > end:
        raise DecodeError(f"size {size} at offset {pos} has no room for its count")
    return count, start, end


def _check_end(pos: int, end: int) -> None:
    if pos != end:
        raise DecodeError(f"items that should end at offset {end} end at {pos}")


def _list(data: bytes, pos: int, code: int, text: bool, depth: int) -> _Result:
    count, start, end = _enter(data, pos, code == 0xD0, depth)
    if count > end - start:
        raise DecodeError(f"{count} list items in {end - start} bytes at offset {pos}")
    items, pos = _values(data, start, count, text, depth + 1)
    _check_end(pos, end)
    return items, pos


def _map(data: bytes, pos: int, code: int, text: bool, depth: int) -> _Result:
    count, start, end = _enter(data, pos, code == 0xD1, depth)
    if count > end - start:
        raise DecodeError(f"{count} map items in {end - start} bytes at offset {pos}")
    if count & 1:
        raise DecodeError(f"map at offset {pos} has a key without a value")
    items, pos = _values(data, start, count, text, depth + 1)
    _check_end(pos, end)
    keys = items[::2]
    if len(keys) > _SMALL and not _SAFE_KEYS.issuperset(map(type, keys)):
        raise DecodeError(f"map at offset {start} with {len(keys)} keys, some of a type for small maps only")
    try:
        return dict(zip(keys, items[1::2], strict=True)), pos
    except TypeError:
        raise DecodeError(f"map at offset {start} has a map or list as key") from None


def _array(data: bytes, pos: int, code: int, text: bool, depth: int) -> _Result:
    count, start, end = _enter(data, pos, code == 0xF0, depth)
    if start >= end:
        raise DecodeError(f"array at offset {pos} has no element type")
    descriptor: object = None
    described = data[start] == 0x00
    if described:
        (descriptor,), start = _values(data, start + 1, 1, text, depth + 1)
    element = data[start]
    start += 1
    if described and element == 0x00:
        # Legal, but each byte could then become a tower of `Described`; nobody has a use for it.
        raise DecodeError(f"elements of the array at offset {pos} are described twice")
    if element in _EMPTY:
        if count > MAX_EMPTY_ELEMENTS:
            raise DecodeError(f"array at offset {pos} claims {count} elements of no bytes")
    elif count > end - start:
        raise DecodeError(f"{count} array elements in {end - start} bytes at offset {pos}")
    items: list[object] = []
    for _ in range(count):
        value, start = _body(data, start, element, text, depth + 1)
        items.append(Described(descriptor, value) if described else value)
    _check_end(start, end)
    return items, end


def _decode_described(data: bytes, pos: int, code: int, text: bool, depth: int) -> _Result:
    if depth >= MAX_DEPTH:
        raise DecodeError(f"more than {MAX_DEPTH} values inside each other at offset {pos}")
    (descriptor, value), pos = _values(data, pos, 2, text, depth + 1)
    return Described(descriptor, value), pos


def _table() -> list[_Decoder]:
    table: list[_Decoder] = [_refuse_code] * 256
    for codes, decoder in (
        ((0x00,), _decode_described),
        (tuple(_EMPTY), _empty),
        ((0x56,), _boolean),
        ((0x73,), _char),
        ((0x74, 0x84, 0x94), _decimal),
        ((0x83,), _timestamp),
        ((0x98,), _uuid),
        ((0xA0, 0xA1, 0xA3, 0xB0, 0xB1, 0xB3), _variable),
        ((0xC0, 0xD0), _list),
        ((0xC1, 0xD1), _map),
        ((0xE0, 0xF0), _array),
    ):
        for item in codes:
            table[item] = decoder
    return table


_DECODERS = _table()
