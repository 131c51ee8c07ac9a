"""The rows in the pages of an SQLite database: each page is read by itself, whatever became of the others."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import attrs

from qmf.broker.store.page_file import PageFile

_LEAF, _INDEX_LEAF, _INTERIOR, _INDEX_INTERIOR = 0x0D, 0x0A, 0x05, 0x02
_KINDS = frozenset({_LEAF, _INDEX_LEAF, _INTERIOR, _INDEX_INTERIOR})
_INDEXES = frozenset({_INDEX_LEAF, _INDEX_INTERIOR})
_INTERIORS = frozenset({_INTERIOR, _INDEX_INTERIOR})
#: Bytes of integers, by their type in a row.
_WIDTHS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
#: Ranges of pages that are named.
_SHOWN = 20

#: A value of a row.
Value = int | float | str | bytes | None


@attrs.frozen
class PageRow:
    """A row of a table, or an entry of an index.

    Attributes:
        id: of the row; None for an entry of an index.
        values: in the order of the columns. That of the id is None.
    """

    id: int | None
    values: Sequence[Value]


class _Damaged(Exception):
    """A row cannot be read; the text says why."""


class PageRows:
    """Reads all rows of a database.

    Attributes:
        faults: what could not be read, a line each; complete after the last row.
    """

    def __init__(self, file: PageFile) -> None:
        self.faults: list[str] = []
        self._file = file
        #: Pages that hold the rest of a row.
        self._overflow: set[int] = set()

    def __iter__(self) -> Iterator[PageRow]:
        file = self._file
        unused, complete = file.unused_pages()
        if not complete:
            self.faults.append("which pages are unused is not known: messages that were acknowledged may come again")
        unknown: list[int] = []
        for number in file.numbers():
            if number in unused:
                continue
            page = file.page(number)
            start = 100 if number == 1 else 0
            if page is None or page[start] not in _KINDS:
                unknown.append(number)
            elif not self._is_sound(page, start):
                self.faults.append(f"page {number} is damaged: what was in it is lost")
            elif page[start] != _INTERIOR:
                yield from self._rows(number, page, start)
        lost = [number for number in unknown if number not in self._overflow]
        if file.missing:
            self.faults.append(f"the file is too short: {file.missing * file.size:,} bytes at its end are missing")
        if lost:
            self.faults.append(
                f"{'page' if len(lost) == 1 else 'pages'} {_ranges(lost)} cannot be read, or belong to what cannot: "
                f"{len(lost) * file.size:,} bytes, in which messages and definitions may be lost"
            )

    def _is_sound(self, page: bytes, start: int) -> bool:
        """True if the header of a page, and the pages that it names, can be those of a page that was not damaged."""
        free, count, content = struct.unpack_from(">HHH", page, start + 1)
        if page[start] not in _INTERIORS:
            # SQLite keeps empty pages for empty tables alone, and says that nothing of them is used.
            return start + 8 + 2 * count <= len(page) if count else (free, content) == (0, self._file.usable % 65536)
        if start + 12 + 2 * count > len(page):
            return False
        cells = struct.unpack_from(f">{count}H", page, start + 12)
        places = (start + 8, *cells)
        return all(
            place + 4 <= len(page) and 1 < struct.unpack_from(">I", page, place)[0] <= self._file.count
            for place in places
        )

    def _rows(self, number: int, page: bytes, start: int) -> Iterator[PageRow]:
        kind = page[start]
        (count,) = struct.unpack_from(">H", page, start + 3)
        head = start + (12 if kind == _INDEX_INTERIOR else 8)
        lost: list[str] = []
        for position in struct.unpack_from(f">{count}H", page, head):
            try:
                yield self._row(page, position, kind)
            except _Damaged as error:
                lost.append(str(error))
            except (IndexError, struct.error, UnicodeDecodeError):
                lost.append("it is damaged")
        if lost:
            self.faults.append(f"page {number}: {len(lost)} of {count} rows are lost; the first one: {lost[0]}")

    def _row(self, page: bytes, position: int, kind: int) -> PageRow:
        if kind == _INDEX_INTERIOR:
            position += 4
        length, position = _varint(page, position)
        id: int | None = None
        if kind == _LEAF:
            number, position = _varint(page, position)
            id = number - (1 << 64) if number >> 63 else number
        return PageRow(id, _values(self._payload(page, position, length, index=kind in _INDEXES)))

    def _payload(self, page: bytes, position: int, length: int, *, index: bool) -> bytes:
        """The bytes of a row, of which a long one has the rest on other pages."""
        usable = self._file.usable
        most = (usable - 12) * 64 // 255 - 23 if index else usable - 35
        if length <= most:
            if position + length > usable:
                raise _Damaged("it is longer than its page")
            return page[position : position + length]
        least = (usable - 12) * 32 // 255 - 23
        local = least + (length - least) % (usable - 4)
        local = local if local <= most else least
        if position + local + 4 > usable or length > self._file.count * usable:
            raise _Damaged("it is longer than its page")
        pieces = [page[position : position + local]]
        missing = length - local
        (following,) = struct.unpack_from(">I", page, position + local)
        while missing > 0:
            rest = self._file.page(following) if 0 < following <= self._file.count else None
            if rest is None or following in self._overflow:
                raise _Damaged(f"page {following} with the rest of it cannot be read")
            self._overflow.add(following)
            (following,) = struct.unpack_from(">I", rest)
            pieces.append(rest[4 : min(usable, 4 + missing)])
            missing -= len(pieces[-1])
        return b"".join(pieces)


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """A number of variable length, and the position behind it."""
    value = 0
    for place in range(position, position + 8):
        value = value << 7 | data[place] & 0x7F
        if data[place] < 0x80:
            return value, place + 1
    return value << 8 | data[position + 8], position + 9


def _values(data: bytes) -> Sequence[Value]:
    """The values of a row.

    Raises:
        _Damaged: they don't fit its bytes.
    """
    end, position = _varint(data, 0)
    start = end
    values: list[Value] = []
    while position < end:
        kind, position = _varint(data, position)
        value, start = _value(data, kind, start)
        values.append(value)
    if position != end or start != len(data):
        raise _Damaged("its values do not fit its length")
    return values


def _value(data: bytes, kind: int, start: int) -> tuple[Value, int]:
    if kind == 0:
        return None, start
    if (width := _WIDTHS.get(kind)) is not None:
        return int.from_bytes(data[start : start + width], signed=True), start + width
    if kind == 7:
        (number,) = struct.unpack_from(">d", data, start)
        return float(number), start + 8
    if kind in (8, 9):
        return kind - 8, start
    if kind < 12:
        raise _Damaged(f"a value has the unknown type {kind}")
    end = start + (kind - 12) // 2
    piece = data[start:end]
    return (piece.decode() if kind % 2 else piece), end


def _ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers as text, such as ``3, 5 to 9``."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    shown = [str(first) if first == last else f"{first} to {last}" for first, last in found[:_SHOWN]]
    return ", ".join(shown) + (f" and {len(found) - _SHOWN} more ranges" if len(found) > _SHOWN else "")
