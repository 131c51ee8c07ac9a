"""Rows: many objects of one class without a key per value.

A block says once which columns its rows have and of which types. Each row then is a length, a bitmap, three times, the
columns of fixed width one after the other, and the variable ones behind their lengths (docs/protocol.md): so one
`struct` per class reads it. Only our own agents and consoles know rows. Writing them is in `row_encode`.

Knows nothing of QMF's objects: what a row means, its reader decides.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import UUID

from qmf.codec.amqp010 import decode_list_at, decode_map_at
from qmf.errors import DecodeError
from qmf.protocol.objects.lazy_values import LazyValues
from qmf.protocol.objects.row_check import Check, row_check
from qmf.protocol.objects.row_functions import Unpack, unpack_function
from qmf.protocol.objects.runs import Flat, remember

#: Type codes of columns whose values all have one width, and their `struct` format. Bytes 16 wide are a UUID.
FIXED_FORMATS: Mapping[int, str] = {
    0x01: "b",
    0x02: "B",
    0x08: "?",
    0x11: "h",
    0x12: "H",
    0x21: "i",
    0x22: "I",
    0x23: "f",
    0x31: "q",
    0x32: "Q",
    0x33: "d",
    0x48: "16s",
}

#: Type codes of columns whose values have a length of their own.
TEXT, BINARY, MAP, LIST = 0x95, 0xA0, 0xA8, 0xA9

_UUID = 0x48
_LENGTH, _TIMES = 4, 24  # bytes of a row's length field, and of its three times

#: Rows after which a layout's `unpack` is written out, which takes about a millisecond.
BUILD_AFTER = 100

#: Most columns of rows that are read or written, for the functions of a layout grow with them; QMF's largest classes
#: have a fifth of it. Objects with more are sent as ordinary ones.
MAX_COLUMNS = 500

#: Selections of columns that a layout remembers.
MAX_BITMAPS = 100

_unpack_u32 = struct.Struct(">I").unpack_from

_Reader = Callable[[bytes, int], object]


class Row(NamedTuple):
    """What is read of a row at once.

    Attributes:
        offset: where the row starts, at its length field.
        name: the object's name. Bytes that are not UTF-8 become lone surrogates (``surrogateescape``).
        update_ts, create_ts, delete_ts: nanoseconds since 1970; 0 for none.
    """

    offset: int
    name: str
    update_ts: int
    create_ts: int
    delete_ts: int


class RowLayout:
    """Where the columns of a block stand in its rows.

    Attributes:
        columns: names of the columns.
        codes: one AMQP 0-10 type code per column.
        fixed_columns: indices of the columns of fixed width, ascending.
        variable_columns: indices of the others, ascending.
        unpack: every value of a row, in the order of columns; columns without a value are left out. Takes the rows, and
            where the row starts.
        bitmap_size: bytes of the bitmap; bit ``i % 8`` of byte ``i // 8`` says that column ``i`` has a value.
        fixed: reads and writes a row from behind its length field to where the name starts: bitmap, update, create and
            delete time, fixed columns (UUIDs as bytes), length of the name, lengths of the variable columns.
    """

    __slots__ = (
        "_absent",
        "_all",
        "_check",
        "_flats",
        "_head",
        "_lengths",
        "_lengths_at",
        "_readers",
        "_unpacked",
        "_uuids",
        "_variables",
        "bitmap_size",
        "codes",
        "columns",
        "fixed",
        "fixed_columns",
        "unpack",
        "variable_columns",
    )

    def __init__(self, columns: tuple[str, ...], codes: bytes) -> None:
        """Make a layout.

        Raises:
            DecodeError: not one code per column, a code that rows don't have, or two columns of one name.
        """
        if len(columns) != len(codes):
            raise DecodeError(f"{len(codes)} type codes for {len(columns)} columns")
        if len(set(columns)) != len(columns):
            raise DecodeError("two columns of a block have the same name")
        for code in codes:
            if code not in FIXED_FORMATS and code not in _VARIABLE:
                raise DecodeError(f"type code 0x{code:02x} is none of rows")
        self.columns = columns
        self.codes = codes
        self.fixed_columns = tuple(i for i, code in enumerate(codes) if code in FIXED_FORMATS)
        self.variable_columns = tuple(i for i, code in enumerate(codes) if code not in FIXED_FORMATS)
        self.bitmap_size = (len(columns) + 7) // 8
        numbers = "".join(FIXED_FORMATS[codes[i]] for i in self.fixed_columns)
        lengths = f"{len(self.variable_columns) + 1}I"
        self.fixed = struct.Struct(f">{self.bitmap_size}sqqq{numbers}{lengths}")
        skipped = struct.calcsize(">" + numbers)
        self._head = struct.Struct(f">{_LENGTH + self.bitmap_size}xqqq{skipped}xI").unpack_from
        self._lengths = struct.Struct(">" + lengths).unpack_from
        self._lengths_at = _LENGTH + self.bitmap_size + _TIMES + skipped
        self._flats: dict[int, dict[bytes, Flat]] = {MAP: {}, LIST: {}}
        self._absent: dict[bytes, tuple[str, ...]] = {}
        self._unpacked = 0
        self.unpack: Unpack = self._unpack_first
        self._variables = tuple((i, codes[i]) for i in self.variable_columns)
        self._check: Check | None = None
        self._all = (1 << len(columns)) - 1
        self._uuids = tuple(i for i in self.fixed_columns if codes[i] == _UUID)
        self._readers: dict[str, tuple[int, _Reader]] | None = None

    def check(self, data: bytes) -> list[int]:
        """Find and check the rows of a block.

        After this, `head`, `unpack` and `get` cannot fail for any of them.

        Args:
            data: the rows, one after the other, nothing else.

        Returns:
            the offset of each row.

        Raises:
            DecodeError: a length that doesn't add up, a map or list that is none, or more than `MAX_COLUMNS` columns.
        """
        check = self._check
        if check is None:
            if len(self.columns) > MAX_COLUMNS:
                raise DecodeError(f"rows of {len(self.columns)} columns; the limit is {MAX_COLUMNS}")
            skipped = self._lengths_at - _LENGTH - self.bitmap_size
            nested = [code in (MAP, LIST) for _, code in self._variables]
            check = self._check = row_check(self.bitmap_size, skipped, nested, self._read_nested)
        return check(data)

    def head(self, data: bytes, offset: int) -> Row:
        """Name and times of the row at `offset`."""
        update, create, delete, size = self._head(data, offset)
        start = offset + _LENGTH + self.fixed.size
        return Row(offset, data[start : start + size].decode("utf-8", "surrogateescape"), update, create, delete)

    def scan(self, data: bytes) -> list[Row]:
        """`check`, and the `head` of each row."""
        return [self.head(data, offset) for offset in self.check(data)]

    def _read_nested(self, bitmap: bytes, start: int, place: int, raw: bytes) -> None:
        """See that a map or list of the row at `start` can be read."""
        column, code = self._variables[place]
        if raw:
            _nested(raw, code)
        elif bitmap[column >> 3] >> (column & 7) & 1:
            raise DecodeError(f"row at offset {start}: a map or list without bytes")

    def _has(self, data: bytes, offset: int, column: int) -> bool:
        return bool(data[offset + _LENGTH + (column >> 3)] >> (column & 7) & 1)

    def names(self, data: bytes, offset: int) -> tuple[str, ...]:
        """Names of the columns that have a value in the row at `offset`, in order."""
        at = offset + _LENGTH
        bits = int.from_bytes(data[at : at + self.bitmap_size], "little") & self._all
        if bits == self._all:
            return self.columns
        return tuple(name for i, name in enumerate(self.columns) if bits >> i & 1)

    def has(self, data: bytes, offset: int, name: object) -> bool:
        """True when the row at `offset` has a value of that name."""
        found = (self._readers or self._make_readers()).get(name)  # type: ignore[call-overload]  # any object may be asked for
        return found is not None and self._has(data, offset, found[0])

    def row(self, data: bytes, offset: int) -> bytes:
        """The row at `offset`, with its length field."""
        (size,) = _unpack_u32(data, offset)
        return data[offset : offset + _LENGTH + size]

    def raw(self, data: bytes, offset: int) -> bytes:
        """The bytes of the row at `offset` that say its values: without times and name, which are no values."""
        row = self.row(data, offset)
        at = _LENGTH + self.bitmap_size
        begin = _LENGTH + self.fixed.size
        (size,) = _unpack_u32(row, self._lengths_at)
        return (
            row[_LENGTH:at]
            + row[at + _TIMES : self._lengths_at]
            + row[self._lengths_at + 4 : begin]
            + row[begin + size :]
        )

    def get(self, data: bytes, offset: int, name: str) -> object:
        """One value of the row at `offset`.

        Raises:
            KeyError: no such column, or it has no value.
        """
        column, read = (self._readers or self._make_readers())[name]
        if not data[offset + _LENGTH + (column >> 3)] >> (column & 7) & 1:
            raise KeyError(name)
        return read(data, offset)

    def _unpack_first(self, data: bytes, offset: int) -> dict[str, object]:
        """`unpack` of the first rows."""
        self._unpacked += 1
        if self._unpacked > BUILD_AFTER:
            self.unpack = unpack_function(
                self.columns,
                self.codes,
                flats=self._flats,
                readers={**_VARIABLE, MAP: self._map, LIST: self._list},
                remove=self._remove_absent,
                again=self._unpack_any,
            )
        return self._unpack_any(data, offset)

    def _unpack_any(self, data: bytes, offset: int) -> dict[str, object]:
        fields = self.fixed.unpack_from(data, offset + _LENGTH)
        at = 4 + len(self.fixed_columns)
        values: list[object] = [None] * len(self.columns)
        for i, value in zip(self.fixed_columns, fields[4:at], strict=True):
            values[i] = value
        for i in self._uuids:
            values[i] = UUID(bytes=values[i])  # type: ignore[arg-type]  # the layout says 16 bytes
        bits = int.from_bytes(fields[0], "little") & self._all
        end = offset + _LENGTH + self.fixed.size + fields[at]
        for (i, code), size in zip(self._variables, fields[at + 1 :], strict=True):
            start, end = end, end + size
            if bits >> i & 1:
                values[i] = _VARIABLE[code](data[start:end])
        if bits == self._all:
            return dict(zip(self.columns, values, strict=True))
        return {name: values[i] for i, name in enumerate(self.columns) if bits >> i & 1}

    def _remove_absent(self, values: dict[str, object], bitmap: bytes) -> None:
        """Take out the columns without a value. Most rows without some lack the same ones."""
        absent = self._absent.get(bitmap)
        if absent is None:
            if len(self._absent) >= MAX_BITMAPS:
                self._absent.clear()
            absent = tuple(name for i, name in enumerate(self.columns) if not bitmap[i >> 3] >> (i & 7) & 1)
            self._absent[bitmap] = absent
        for name in absent:
            del values[name]

    def _map(self, raw: bytes) -> object:
        return self._nested(raw, MAP)

    def _list(self, raw: bytes) -> object:
        return self._nested(raw, LIST)

    def _nested(self, raw: bytes, code: int) -> object:
        """A nested map or list that is not remembered; references and settings of many objects are the same."""
        value = _nested(raw, code)
        remember(self._flats[code], raw, value)
        return value

    def _make_readers(self) -> dict[str, tuple[int, _Reader]]:
        readers: dict[str, tuple[int, _Reader]] = {}
        at = _LENGTH + self.bitmap_size + _TIMES
        for i in self.fixed_columns:
            layout = struct.Struct(">" + FIXED_FORMATS[self.codes[i]])
            readers[self.columns[i]] = (i, _fixed_reader(layout, at, self.codes[i]))
            at += layout.size
        begin = _LENGTH + self.fixed.size
        for place, i in enumerate(self.variable_columns, 1):
            read = _VARIABLE[self.codes[i]]
            readers[self.columns[i]] = (i, _variable_reader(read, self._lengths, at, begin, place))
        self._readers = readers
        return readers


class RowValues(LazyValues):
    """The values of one row."""

    __slots__ = ("_data", "_layout", "_offset")

    def __init__(self, layout: RowLayout, data: bytes, offset: int) -> None:
        """Take the row whose length field is at `offset`."""
        self._layout = layout
        self._data = data
        self._offset = offset

    def __getitem__(self, name: str) -> object:
        return self._layout.get(self._data, self._offset, name)

    def __contains__(self, name: object) -> bool:
        return self._layout.has(self._data, self._offset, name)

    @property
    def names(self) -> tuple[str, ...]:
        return self._layout.names(self._data, self._offset)

    def unpacked(self) -> dict[str, object]:
        return self._layout.unpack(self._data, self._offset)

    def raw(self) -> bytes:
        return self._layout.raw(self._data, self._offset)

    @property
    def layout(self) -> object:
        return self._layout

    def detached(self) -> RowValues:
        layout = self._layout
        return RowValues(layout, layout.row(self._data, self._offset), 0)


def _fixed_reader(layout: struct.Struct, at: int, code: int) -> _Reader:
    unpack = layout.unpack_from
    if code == _UUID:
        return lambda data, offset: UUID(bytes=unpack(data, offset + at)[0])
    return lambda data, offset: unpack(data, offset + at)[0]


def _variable_reader(
    read: Callable[[bytes], object], lengths: Callable[[bytes, int], tuple[int, ...]], at: int, begin: int, place: int
) -> _Reader:
    def get(data: bytes, offset: int) -> object:
        sizes = lengths(data, offset + at)
        start = offset + begin + sum(sizes[:place])
        return read(data[start : start + sizes[place]])

    return get


def _text(raw: bytes) -> object:
    return raw.decode("utf-8", "surrogateescape")


def _binary(raw: bytes) -> object:
    """As received elsewhere (QMF2.md 3.2): text where it is UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _map(raw: bytes) -> object:
    return _nested(raw, MAP)


def _list(raw: bytes) -> object:
    return _nested(raw, LIST)


def _nested(raw: bytes, code: int) -> object:
    try:
        value, end = decode_map_at(raw, 0, True) if code == MAP else decode_list_at(raw, 0, True)
    except (IndexError, struct.error):
        raise DecodeError(f"a map or list of a row does not fit its {len(raw)} bytes") from None
    if end != len(raw):
        raise DecodeError(f"a map or list of a row ends {len(raw) - end} bytes before its length says")
    return value


_VARIABLE: Mapping[int, Callable[[bytes], object]] = {TEXT: _text, BINARY: _binary, MAP: _map, LIST: _list}
