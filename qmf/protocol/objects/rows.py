"""Reading rows: objects of one class without a name in front of each value.

A block lists the columns of its rows and their types once (docs/protocol.md), so one `struct` per class reads a
row. Only agents and consoles of this project know rows. `row_encoding` writes them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from uuid import UUID

from qmf.codec.type_codes import BINARY32, LIST, MAP, TEXT16, UUID16
from qmf.errors import DecodeError
from qmf.protocol.objects.columns import ROW_FORMATS
from qmf.protocol.objects.lazy_values import LazyValues
from qmf.protocol.objects.nested_values import NestedValues, nested_values, text_or_bytes
from qmf.protocol.objects.row_functions import Unpack, check_function, unpack_function
from qmf.protocol.objects.row_layout import LENGTH, MAX_COLUMNS, TIMES, RowLayout

#: Bitmaps, as combinations of columns that have a value, that a decoder remembers.
MAX_BITMAPS = 100

_unpack_u32 = struct.Struct(">I").unpack_from

#: Reads one value of a row; takes the rows, and where the row starts.
_Reader = Callable[[bytes, int], object]


class Bitmaps:
    """Which columns of rows have a value. Most rows have the same ones, so these are remembered.

    Attributes:
        known: by bitmap, the names of the columns with a value, and of those without.
    """

    __slots__ = ("_names", "known")

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self.known: dict[bytes, tuple[tuple[str, ...], tuple[str, ...]]] = {}

    def columns(self, bitmap: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the columns with a value, in order, and of those without."""
        found = self.known.get(bitmap)
        if found is None:
            if len(self.known) >= MAX_BITMAPS:
                self.known.clear()
            bits = int.from_bytes(bitmap, "little")
            absent = tuple(name for i, name in enumerate(self._names) if not bits >> i & 1)
            present = tuple(name for i, name in enumerate(self._names) if bits >> i & 1)
            found = self.known[bitmap] = present if absent else self._names, absent
        return found

    def remove_absent(self, values: dict[str, object], bitmap: bytes) -> None:
        """Take the columns without a value out of a dictionary of all."""
        for name in self.columns(bitmap)[1]:
            del values[name]


class RowDecoder:
    """Reads the rows of one layout.

    Attributes:
        layout: of the rows.
        nested: reads maps and lists, by type code.
        bitmaps: remembers which columns have a value.
        check: finds and checks the rows of a block; gives the offset of each. After this, the other methods cannot fail
            for any of them. Raises DecodeError for a length that doesn't add up, and for a map or list that cannot be
            read.
    """

    __slots__ = ("_head", "_lengths", "_readers", "_unpack", "bitmaps", "check", "layout", "nested")

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
        skipped = layout.lengths_at - LENGTH - layout.bitmap_size - TIMES
        self._head = struct.Struct(f">{LENGTH + layout.bitmap_size}xqqq{skipped}xI").unpack_from
        self._lengths = struct.Struct(">" + layout.lengths).unpack_from
        self.bitmaps = Bitmaps(columns)
        self.check = check_function(layout, self.nested)
        self._unpack: Unpack | None = None
        self._readers: dict[object, tuple[int, _Reader]] | None = None

    def head(self, data: bytes, offset: int) -> tuple[str, int, int, int]:
        """Object name and times of update, creation and deletion of the row at `offset`.

        Bytes of the name that are not UTF-8 become lone surrogates (``surrogateescape``).
        """
        update, create, delete, size = self._head(data, offset)
        start = offset + self.layout.name_at
        return data[start : start + size].decode("utf-8", "surrogateescape"), update, create, delete

    def names(self, data: bytes, offset: int) -> tuple[str, ...]:
        """Names of the columns that have a value in the row at `offset`, in order."""
        at = offset + LENGTH
        return self.bitmaps.columns(data[at : at + self.layout.bitmap_size])[0]

    def has(self, data: bytes, offset: int, name: object) -> bool:
        """True when the row at `offset` has a value of that name."""
        found = (self._readers or self._make_readers()).get(name)
        return found is not None and bool(data[offset + LENGTH + (found[0] >> 3)] >> (found[0] & 7) & 1)

    def row(self, data: bytes, offset: int) -> bytes:
        """The row at `offset`, with its length field."""
        (size,) = _unpack_u32(data, offset)
        return data[offset : offset + LENGTH + size]

    def raw(self, data: bytes, offset: int) -> bytes:
        """The bytes of the row at `offset` that hold its values: without times and name."""
        row = self.row(data, offset)
        at, lengths_at, begin = LENGTH + self.layout.bitmap_size, self.layout.lengths_at, self.layout.name_at
        (size,) = _unpack_u32(row, lengths_at)
        return row[LENGTH:at] + row[at + TIMES : lengths_at] + row[lengths_at + 4 : begin] + row[begin + size :]

    def get(self, data: bytes, offset: int, name: str) -> object:
        """One value of the row at `offset`.

        Raises:
            KeyError: no such column, or it has no value.
        """
        column, read = (self._readers or self._make_readers())[name]
        if not data[offset + LENGTH + (column >> 3)] >> (column & 7) & 1:
            raise KeyError(name)
        return read(data, offset)

    def unpack(self, data: bytes, offset: int) -> dict[str, object]:
        """Every value of the row at `offset`, in the order of columns."""
        unpack = self._unpack
        if unpack is None:
            unpack = self._unpack = unpack_function(self.layout, self.nested, self.bitmaps.remove_absent)
        try:
            return unpack(data, offset)
        except UnicodeDecodeError:
            return {name: self.get(data, offset, name) for name in self.names(data, offset)}

    def _make_readers(self) -> dict[object, tuple[int, _Reader]]:
        layout = self.layout
        readers: dict[object, tuple[int, _Reader]] = {}
        at = LENGTH + layout.bitmap_size + TIMES
        place = 0
        for i, (name, code) in enumerate(zip(layout.columns, layout.codes, strict=True)):
            if code in ROW_FORMATS:
                field = struct.Struct(">" + ROW_FORMATS[code])
                readers[name] = (i, _fixed_reader(field, at, code))
                at += field.size
            else:
                place += 1
                readers[name] = (i, self._variable_reader(code, place))
        self._readers = readers
        return readers

    def _variable_reader(self, code: int, place: int) -> _Reader:
        lengths, at, begin = self._lengths, self.layout.lengths_at, self.layout.name_at
        read = {TEXT16: _text, BINARY32: text_or_bytes, MAP: self.nested[MAP].read, LIST: self.nested[LIST].read}[code]

        def get(data: bytes, offset: int) -> object:
            sizes = lengths(data, offset + at)
            start = offset + begin + sum(sizes[:place])
            return read(data[start : start + sizes[place]])

        return get


def _fixed_reader(field: struct.Struct, at: int, code: int) -> _Reader:
    unpack = field.unpack_from
    if code == UUID16:
        return lambda data, offset: UUID(bytes=unpack(data, offset + at)[0])
    return lambda data, offset: unpack(data, offset + at)[0]


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


class RowValues(LazyValues):
    """The values of one row."""

    __slots__ = ("_data", "_decoder", "_offset")

    def __init__(self, decoder: RowDecoder, data: bytes, offset: int) -> None:
        """Take the row whose length field is at `offset`."""
        self._decoder = decoder
        self._data = data
        self._offset = offset

    def __getitem__(self, name: str) -> object:
        return self._decoder.get(self._data, self._offset, name)

    def __contains__(self, name: object) -> bool:
        return self._decoder.has(self._data, self._offset, name)

    @property
    def names(self) -> tuple[str, ...]:
        return self._decoder.names(self._data, self._offset)

    def unpacked(self) -> dict[str, object]:
        return self._decoder.unpack(self._data, self._offset)

    def raw(self) -> bytes:
        return self._decoder.raw(self._data, self._offset)

    @property
    def layout(self) -> object:
        return self._decoder

    def detached(self) -> RowValues:
        return RowValues(self._decoder, self._decoder.row(self._data, self._offset), 0)
