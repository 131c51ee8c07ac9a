"""Reading rows: objects of one class without a name in front of each value.

A block lists the columns of its rows and their types once (docs/protocol.md), so one `struct` per class reads a
row. Only agents and consoles of this project know rows. `row_encoding` writes them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from uuid import UUID

from qmf.codec.type_codes import BINARY32, TEXT16, UUID16, Unpack
from qmf.errors import DecodeError
from qmf.protocol.objects.columns import ROW_FORMATS
from qmf.protocol.objects.nested_values import NestedValues, nested_values, text_or_bytes
from qmf.protocol.objects.row_layout import LENGTH, MAX_COLUMNS, TIMES, RowLayout, check_function, unpack_function

#: Bitmaps, as combinations of columns that have a value, that a decoder remembers.
MAX_BITMAPS = 100

_unpack_u32 = struct.Struct(">I").unpack_from


class RowDecoder:
    """Reads the rows of one layout: a `ValuesLayout`, for which a row is where its length field is.

    Attributes:
        layout: of the rows.
        nested: reads maps and lists, by type code.
        bitmaps: remembered, since most rows have the same one: the names of the columns with a value, and of those
            without.
        check: finds and checks the rows of a block; gives the offset of each. After this, the other methods cannot fail
            for any of them. Raises DecodeError for a length that doesn't add up, and for a map or list that cannot be
            read.
    """

    __slots__ = ("_head", "_lengths", "_places", "_read", "_unpack", "bitmaps", "check", "layout", "nested")

    def __init__(
        self, columns: tuple[str, ...], codes: bytes, nested: Mapping[int, NestedValues] | None = None
    ) -> None:
        """Make a decoder.

        Args:
            columns, codes: of the rows.
            nested: what reads maps and lists, `nested_values(0)`; decoders of one connection share it.

        Raises:
            DecodeError: the columns make no layout, or are more than `MAX_COLUMNS`.
        """
        layout = self.layout = RowLayout(columns, codes)
        if len(columns) > MAX_COLUMNS:
            raise DecodeError(f"rows of {len(columns)} columns; the limit is {MAX_COLUMNS}")
        self.nested = nested_values(0) if nested is None else nested
        self.bitmaps: dict[bytes, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        self.check = check_function(layout, self.nested)
        skipped = layout.lengths_at - LENGTH - layout.bitmap_size - TIMES
        self._head = struct.Struct(f">{LENGTH + layout.bitmap_size}xqqq{skipped}xI").unpack_from
        self._lengths = struct.Struct(">" + layout.lengths).unpack_from
        self._unpack: Callable[[bytes, int], dict[str, object]] | None = None
        self._read: dict[int, Callable[[bytes], object]] = {TEXT16: _text, BINARY32: text_or_bytes}
        self._read |= {code: values.read for code, values in self.nested.items()}
        #: By name: number of the column; type code; offset of a value of fixed width in the row, or how many other
        #: variable values come before a variable one, the object's name included; what unpacks the former.
        self._places: dict[object, tuple[int, int, int, Unpack | None]] = {}
        at, variable = LENGTH + layout.bitmap_size + TIMES, 0
        for i, (name, code) in enumerate(zip(columns, codes, strict=True)):
            if code in ROW_FORMATS:
                field = struct.Struct(">" + ROW_FORMATS[code])
                self._places[name] = i, code, at, field.unpack_from
                at += field.size
            else:
                variable += 1
                self._places[name] = i, code, variable, None

    def head(self, data: bytes, offset: int) -> tuple[str, int, int, int]:
        """Object name and times of update, creation and deletion of the row at `offset`.

        Bytes of the name that are not UTF-8 become lone surrogates (``surrogateescape``).
        """
        update, create, delete, size = self._head(data, offset)
        start = offset + self.layout.name_at
        return data[start : start + size].decode("utf-8", "surrogateescape"), update, create, delete

    def names_of(self, data: bytes, offset: int) -> tuple[str, ...]:
        """Names of the columns that have a value in the row at `offset`, in order."""
        at = offset + LENGTH
        return self._names(data[at : at + self.layout.bitmap_size])[0]

    def _names(self, bitmap: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
        found = self.bitmaps.get(bitmap)
        if found is None:
            if len(self.bitmaps) >= MAX_BITMAPS:
                self.bitmaps.clear()
            columns, bits = self.layout.columns, int.from_bytes(bitmap, "little")
            absent = tuple(name for i, name in enumerate(columns) if not bits >> i & 1)
            present = tuple(name for i, name in enumerate(columns) if bits >> i & 1)
            found = self.bitmaps[bitmap] = present if absent else columns, absent
        return found

    def has(self, data: bytes, offset: int, name: object) -> bool:
        """True when the row at `offset` has a value of that name."""
        place = self._places.get(name)
        return place is not None and bool(data[offset + LENGTH + (place[0] >> 3)] >> (place[0] & 7) & 1)

    def detach(self, data: bytes, offset: int) -> tuple[bytes, int]:
        """The bytes of the row at `offset`, with its length field; 0, where the row starts in them."""
        (size,) = _unpack_u32(data, offset)
        return data[offset : offset + LENGTH + size], 0

    def raw(self, data: bytes, offset: int) -> bytes:
        """The bytes of the row at `offset` that hold its values: without times and name."""
        row, _ = self.detach(data, offset)
        at, lengths_at, begin = LENGTH + self.layout.bitmap_size, self.layout.lengths_at, self.layout.name_at
        (size,) = _unpack_u32(row, lengths_at)
        return row[LENGTH:at] + row[at + TIMES : lengths_at] + row[lengths_at + 4 : begin] + row[begin + size :]

    def get(self, data: bytes, offset: int, name: str) -> object:
        """One value of the row at `offset`.

        Raises:
            KeyError: no such column, or it has no value.
        """
        column, code, at, unpack = self._places[name]
        if not data[offset + LENGTH + (column >> 3)] >> (column & 7) & 1:
            raise KeyError(name)
        if unpack is not None:
            value = unpack(data, offset + at)[0]
            return UUID(bytes=value) if code == UUID16 else value
        layout = self.layout
        sizes = self._lengths(data, offset + layout.lengths_at)
        start = offset + layout.name_at + sum(sizes[:at])
        return self._read[code](data[start : start + sizes[at]])

    def unpack(self, data: bytes, offset: int) -> dict[str, object]:
        """Every value of the row at `offset`, in the order of columns."""
        unpack = self._unpack
        if unpack is None:
            # Compiled when it is first used: many rows are never unpacked.
            unpack = self._unpack = unpack_function(self.layout, self.nested, self._remove_absent)
        try:
            return unpack(data, offset)
        except UnicodeDecodeError:
            return {name: self.get(data, offset, name) for name in self.names_of(data, offset)}

    def _remove_absent(self, values: dict[str, object], bitmap: bytes) -> None:
        for name in self._names(bitmap)[1]:
            del values[name]


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
