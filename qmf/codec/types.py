"""Values with the type that they are encoded as.

Python has one `int`, the wire has eight. A plain `int` is encoded as a 64-bit value; wrap it in one of these types
where the receiver expects a certain width. All of them are subclasses of what they wrap, so they compare and calculate
as usual. Ranges are checked when encoded, not here. Of these types, decoders return `Timestamp` and `Described` alone:
widths mean nothing to a receiver (QMF2.md 3.2).
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from qmf.schema.types import QmfType


class UInt8(int):
    """Encoded as AMQP 1.0 ubyte, 0-10 uint8."""

    __slots__ = ()


class UInt16(int):
    """Encoded as AMQP 1.0 ushort, 0-10 uint16."""

    __slots__ = ()


class UInt32(int):
    """Encoded as AMQP 1.0 uint, 0-10 uint32."""

    __slots__ = ()


class UInt64(int):
    """Encoded as AMQP 1.0 ulong, 0-10 uint64."""

    __slots__ = ()


class Int8(int):
    """Encoded as AMQP 1.0 byte, 0-10 int8."""

    __slots__ = ()


class Int16(int):
    """Encoded as AMQP 1.0 short, 0-10 int16."""

    __slots__ = ()


class Int32(int):
    """Encoded as AMQP 1.0 int, 0-10 int32."""

    __slots__ = ()


class Int64(int):
    """Encoded as AMQP 1.0 long, 0-10 int64."""

    __slots__ = ()


class Timestamp(int):
    """Milliseconds since 1970: AMQP 1.0 timestamp. AMQP 0-10 only knows seconds, so there it becomes int64."""

    __slots__ = ()


class Float32(float):
    """Encoded in single precision."""

    __slots__ = ()


class Symbol(str):
    """ASCII text: AMQP 1.0 symbol. AMQP 0-10 has none, so there it becomes str16."""

    __slots__ = ()


class Char(str):
    """One character: AMQP 1.0 char, 0-10 utf32 character."""

    __slots__ = ()


@attrs.frozen
class Described:
    """A value with a descriptor, which gives its meaning (AMQP 1.0, part 1.1.2). AMQP 0-10 has no such thing.

    Attributes:
        descriptor: a number (encoded as ulong when it is a `UInt64`), or a symbol's text.
        value: the value itself.
    """

    descriptor: object
    value: object


#: What values of each DIRECT type are wrapped in (QMF2.md 6). Types that are missing are encoded as they are.
WRAPPERS: Mapping[str, type] = {
    "uint8": UInt8,
    "uint16": UInt16,
    "uint32": UInt32,
    "uint64": UInt64,
    "int8": Int8,
    "int16": Int16,
    "int32": Int32,
    "int64": Int64,
    "absTime": Int64,
    "deltaTime": UInt64,
    "float": Float32,
    "double": float,
}


def wrap_value(type: QmfType, value: object) -> object:
    """Wrap a value so that it is encoded with the width of its schema type.

    Args:
        type: the schema type; of statistics, the base type of one wire value counts.
        value: a value that fits the type (see `qmf.schema.constraints.check_value`), or None.

    Returns:
        the wrapped value; None, and values of types that have one encoding only, come back unchanged.
    """
    wrapper = WRAPPERS.get(type.base)
    return value if wrapper is None or value is None else wrapper(value)
