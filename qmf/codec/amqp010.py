"""AMQP 0-10's maps and lists (QMF2.md 3.3), and the loose fields around them that QMFv1 is made of (QMF2.md 8).

The bodies of `data` sections are written this way, and so is QMFv1. Knows nothing of either.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from uuid import UUID

from qmf.codec._amqp010_decode import decode_list_at, decode_map_at
from qmf.codec._amqp010_encode import encode_list_into, encode_map_into, encode_value_into
from qmf.codec.errors import EncodeError, escape, out_of_range
from qmf.codec.plain_maps import plain_maps
from qmf.errors import DecodeError

__all__ = [
    "Reader",
    "Writer",
    "decode_list",
    "decode_list_at",
    "decode_map",
    "decode_map_at",
    "encode_list",
    "encode_list_into",
    "encode_map",
    "encode_map_into",
    "encode_value_into",
]

_PLAIN = plain_maps()

_U8, _U16, _U32, _U64 = (struct.Struct(">" + letter) for letter in "BHIQ")


def encode_map(value: Mapping[str, object]) -> bytes:
    """Encode a map, size field included.

    Args:
        value: keys are str of at most 255 bytes; values as in `qmf.codec.amqp10.encode`, but not `Described`.

    Raises:
        EncodeError: a type that AMQP 0-10 does not have, a number out of its width's range, a long key, too deep.
    """
    out = bytearray()
    encode_map_into(out, value)
    return bytes(out)


def encode_list(value: Sequence[object]) -> bytes:
    """Encode a list, size field included; see `encode_map`."""
    out = bytearray()
    encode_list_into(out, value)
    return bytes(out)


def decode_map(data: bytes, *, text: bool = False) -> dict[str, object]:
    """Decode bytes that are one map, no more.

    Args:
        data: the map with its size field.
        text: return binary that is valid UTF-8 as str (QMF2.md 3.2).

    Returns:
        the map. Integers of all widths come as int, strings as str, arrays as lists, values of types that QMF does not
        use as their bytes.

    Raises:
        DecodeError: the bytes are no such map, or more follow. Never anything else.
    """
    if _PLAIN is not None and type(data) is bytes and (found := _PLAIN.decode(data, text, True)) is not None:
        known: dict[str, object] = found
        return known
    reader = Reader(data)
    value = reader.map(text=text)
    reader.expect_end()
    return value


def decode_list(data: bytes, *, text: bool = False) -> list[object]:
    """Decode bytes that are one list, no more; see `decode_map`."""
    if _PLAIN is not None and type(data) is bytes and (found := _PLAIN.decode(data, text, False)) is not None:
        known: list[object] = found
        return known
    reader = Reader(data)
    value = reader.items(text=text)
    reader.expect_end()
    return value


class Reader:
    """Reads fields one after the other from bytes. Every method raises `DecodeError` where the bytes end too early.

    Attributes:
        data: the bytes.
        pos: where the next field starts.
    """

    __slots__ = ("data", "pos")

    def __init__(self, data: bytes, pos: int = 0) -> None:
        self.data = bytes(data)
        self.pos = pos

    @property
    def remaining(self) -> int:
        """Number of bytes not yet read."""
        return len(self.data) - self.pos

    def expect_end(self) -> None:
        """Raise `DecodeError` if bytes are left over."""
        if self.remaining:
            raise DecodeError(f"{self.remaining} bytes left over at offset {self.pos}")

    def _number(self, layout: struct.Struct) -> int:
        try:
            (value,) = layout.unpack_from(self.data, self.pos)
        except struct.error:
            raise self._early(layout.size) from None
        self.pos += layout.size
        return int(value)

    def _early(self, wanted: int) -> DecodeError:
        return DecodeError(f"{wanted} bytes wanted at offset {self.pos}, {max(0, self.remaining)} left")

    def uint8(self) -> int:
        """A number of one byte."""
        return self._number(_U8)

    def uint16(self) -> int:
        """A number of two bytes."""
        return self._number(_U16)

    def uint32(self) -> int:
        """A number of four bytes."""
        return self._number(_U32)

    def uint64(self) -> int:
        """A number of eight bytes."""
        return self._number(_U64)

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        if size > self.remaining:
            raise self._early(size)
        start = self.pos
        self.pos = start + size
        return self.data[start : self.pos]

    def rest(self) -> bytes:
        """All bytes not yet read."""
        return self.take(self.remaining)

    def str8(self) -> str:
        """Text with a length of one byte. Bytes that are not UTF-8 become lone surrogates (``surrogateescape``)."""
        return self.take(self.uint8()).decode(errors="surrogateescape")

    def str16(self) -> str:
        """Text with a length of two bytes; see `str8`."""
        return self.take(self.uint16()).decode(errors="surrogateescape")

    def uuid(self) -> UUID:
        """Sixteen bytes as a UUID: QMFv1's hashes and broker ids."""
        return UUID(bytes=self.take(16))

    def map(self, *, text: bool = True) -> dict[str, object]:
        """A map with its size field; `text` as of `decode_map`."""
        try:
            value, self.pos = decode_map_at(self.data, self.pos, text)
        except (IndexError, struct.error):
            raise self._inside("map") from None
        return value

    def items(self, *, text: bool = True) -> list[object]:
        """A list with its size field; `text` as of `decode_map`."""
        try:
            value, self.pos = decode_list_at(self.data, self.pos, text)
        except (IndexError, struct.error):
            raise self._inside("list") from None
        return value

    def _inside(self, what: str) -> DecodeError:
        return DecodeError(f"{what} at offset {self.pos}: the data ends at {len(self.data)}, inside the {what}")


class Writer:
    """Puts fields one after the other. Every method raises `EncodeError` for a value that the field cannot hold."""

    __slots__ = ("_out",)

    def __init__(self) -> None:
        self._out = bytearray()

    def getvalue(self) -> bytes:
        """All bytes written so far."""
        return bytes(self._out)

    def _number(self, layout: struct.Struct, value: int) -> None:
        try:
            self._out += layout.pack(value)
        except struct.error:
            raise out_of_range(value, f"uint{8 * layout.size}") from None

    def uint8(self, value: int) -> None:
        """A number of one byte."""
        self._number(_U8, value)

    def uint16(self, value: int) -> None:
        """A number of two bytes."""
        self._number(_U16, value)

    def uint32(self, value: int) -> None:
        """A number of four bytes."""
        self._number(_U32, value)

    def uint64(self, value: int) -> None:
        """A number of eight bytes."""
        self._number(_U64, value)

    def raw(self, value: bytes) -> None:
        """Bytes as they are."""
        self._out += value

    def str8(self, value: str) -> None:
        """Text of at most 255 bytes, with a length of one byte."""
        raw = escape(value)
        if len(raw) > 0xFF:
            raise EncodeError(f"text {value[:40]!r}... is longer than 255 bytes")
        self._out.append(len(raw))
        self._out += raw

    def str16(self, value: str) -> None:
        """Text of at most 65535 bytes, with a length of two bytes."""
        raw = escape(value)
        if len(raw) > 0xFFFF:
            raise EncodeError(f"text {value[:40]!r}... is longer than 65535 bytes")
        self._number(_U16, len(raw))
        self._out += raw

    def uuid(self, value: UUID) -> None:
        """A UUID as sixteen bytes."""
        self._out += value.bytes

    def map(self, value: Mapping[str, object]) -> None:
        """A map with its size field."""
        encode_map_into(self._out, value)

    def items(self, value: Sequence[object]) -> None:
        """A list with its size field."""
        encode_list_into(self._out, value)
