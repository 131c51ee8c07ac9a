"""The type codes of AMQP 0-10 and of AMQP 1.0, each in one table.

Encoders, decoders and generated functions take codes, widths and `struct` formats from here. Only the codes that the
innermost loops of the general decoders compare with are written there as numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from qmf.codec.types import (
    Char,
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


class TypeCode(NamedTuple):
    """One encoding.

    Attributes:
        code: the byte in front of the value.
        name: as the specification calls the type.
        format: big-endian `struct` format of the value; of a variable one, of the length in front of it.
        python: type of the values that are sent with this code; `qmf.codec.types` where a width matters.
        variable: the value has a length of its own.
    """

    code: int
    name: str
    format: str
    python: type
    variable: bool = False

    @property
    def width(self) -> int:
        """Bytes of the value, or of its length."""
        return struct.calcsize(">" + self.format)

    @property
    def is_number(self) -> bool:
        """True for a number or boolean, which one `struct` field holds."""
        return len(self.format) == 1 and not self.variable


def _by_code(*rows: TypeCode) -> Mapping[int, TypeCode]:
    return {row.code: row for row in rows}


#: AMQP 0-10, chapter 3. Numbers have one form each. Types that QMF does not use are missing: the high half of a code
#: is enough to skip their values.
AMQP010 = _by_code(
    TypeCode(0x01, "int8", "b", Int8),
    TypeCode(0x02, "uint8", "B", UInt8),
    TypeCode(0x08, "boolean", "?", bool),
    TypeCode(0x11, "int16", "h", Int16),
    TypeCode(0x12, "uint16", "H", UInt16),
    TypeCode(0x21, "int32", "i", Int32),
    TypeCode(0x22, "uint32", "I", UInt32),
    TypeCode(0x23, "float", "f", Float32),
    TypeCode(0x27, "char-utf32", "4s", Char),
    TypeCode(0x31, "int64", "q", Int64),
    TypeCode(0x32, "uint64", "Q", UInt64),
    TypeCode(0x33, "double", "d", float),
    TypeCode(0x38, "datetime", "q", int),  # seconds since 1970; never sent
    TypeCode(0x48, "uuid", "16s", UUID),
    TypeCode(0x80, "vbin8", "B", bytes, variable=True),
    TypeCode(0x85, "str8", "B", str, variable=True),
    TypeCode(0x90, "vbin16", "H", bytes, variable=True),
    TypeCode(0x95, "str16", "H", str, variable=True),
    TypeCode(0xA0, "vbin32", "I", bytes, variable=True),
    TypeCode(0xA8, "map", "I", dict, variable=True),
    TypeCode(0xA9, "list", "I", list, variable=True),
    TypeCode(0xAA, "array", "I", list, variable=True),
    TypeCode(0xF0, "void", "", type(None)),
    TypeCode(0xF1, "bit", "", bool),  # its presence means true; never sent
)

#: Codes of AMQP 0-10 that have a name in code.
UINT8, BOOLEAN, INT64, UINT64, UUID16, VOID, BIT = 0x02, 0x08, 0x31, 0x32, 0x48, 0xF0, 0xF1
BINARY8, TEXT8, BINARY16, TEXT16, BINARY32, MAP, LIST, ARRAY = 0x80, 0x85, 0x90, 0x95, 0xA0, 0xA8, 0xA9, 0xAA

#: What an AMQP 0-10 value means whose type code is all of it.
CONSTANTS: Mapping[int, object] = {VOID: None, BIT: True}

#: AMQP 1.0, part 1.6.
AMQP10 = _by_code(
    TypeCode(0x40, "null", "", type(None)),
    TypeCode(0x41, "true", "", bool),
    TypeCode(0x42, "false", "", bool),
    TypeCode(0x43, "uint0", "", UInt32),
    TypeCode(0x44, "ulong0", "", UInt64),
    TypeCode(0x45, "list0", "", list),
    TypeCode(0x50, "ubyte", "B", UInt8),
    TypeCode(0x51, "byte", "b", Int8),
    TypeCode(0x52, "smalluint", "B", UInt32),
    TypeCode(0x53, "smallulong", "B", UInt64),
    TypeCode(0x54, "smallint", "b", Int32),
    TypeCode(0x55, "smalllong", "b", Int64),
    TypeCode(0x56, "boolean", "1s", bool),
    TypeCode(0x60, "ushort", "H", UInt16),
    TypeCode(0x61, "short", "h", Int16),
    TypeCode(0x70, "uint", "I", UInt32),
    TypeCode(0x71, "int", "i", Int32),
    TypeCode(0x72, "float", "f", Float32),
    TypeCode(0x73, "char", "4s", Char),
    TypeCode(0x74, "decimal32", "4s", bytes),
    TypeCode(0x80, "ulong", "Q", UInt64),
    TypeCode(0x81, "long", "q", Int64),
    TypeCode(0x82, "double", "d", float),
    TypeCode(0x83, "timestamp", "q", Timestamp),
    TypeCode(0x84, "decimal64", "8s", bytes),
    TypeCode(0x94, "decimal128", "16s", bytes),
    TypeCode(0x98, "uuid", "16s", UUID),
    TypeCode(0xA0, "vbin8", "B", bytes, variable=True),
    TypeCode(0xA1, "str8-utf8", "B", str, variable=True),
    TypeCode(0xA3, "sym8", "B", Symbol, variable=True),
    TypeCode(0xB0, "vbin32", "I", bytes, variable=True),
    TypeCode(0xB1, "str32-utf8", "I", str, variable=True),
    TypeCode(0xB3, "sym32", "I", Symbol, variable=True),
    TypeCode(0xC0, "list8", "B", list, variable=True),
    TypeCode(0xC1, "map8", "B", dict, variable=True),
    TypeCode(0xD0, "list32", "I", list, variable=True),
    TypeCode(0xD1, "map32", "I", dict, variable=True),
    TypeCode(0xE0, "array8", "B", list, variable=True),
    TypeCode(0xF0, "array32", "I", list, variable=True),
)

#: The same by name.
AMQP10_BY_NAME: Mapping[str, TypeCode] = {row.name: row for row in AMQP10.values()}


#: `struct.Struct.unpack_from` of one format.
Unpack = Callable[[bytes, int], tuple[Any, ...]]


def number_decoders(table: Mapping[int, TypeCode]) -> dict[int, tuple[Unpack, int]]:
    """By type code, what unpacks a number or boolean, and its width."""
    return {
        row.code: (struct.Struct(">" + row.format).unpack_from, row.width) for row in table.values() if row.is_number
    }


def number_packer(row: TypeCode) -> Callable[[int, Any], bytes]:
    """What packs the type code and a number or boolean."""
    return struct.Struct(">B" + row.format).pack
