"""The pages of an SQLite database, read without SQLite: that gives up where the first damaged page is in its way.

Knows pages, their changes in the write-ahead log, and which are unused; not what is in them (`page_rows`). The format:
https://www.sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

from qmf._closable import Closable

_MAGIC = b"SQLite format 3\0"
#: Bytes of a page where no header says it: SQLite's default, which the store has.
_PAGE_SIZE = 4096
_HEADER = 100
_SIZES = frozenset(1 << power for power in range(9, 17))
#: Heads of the log, and of each page in it; the log's is one of two numbers, by the order of bytes in its checksums.
_LOG_HEAD, _FRAME_HEAD = 32, 24
_LOG_MAGIC = {0x377F0682: "<", 0x377F0683: ">"}
#: Position of the page that SQLite never uses.
_LOCK_BYTE = 1 << 30


class PageFile(Closable):
    """A database file that is open for reading. Nothing else may write to it meanwhile.

    Attributes:
        intact: the header is one of SQLite; otherwise nothing is known of the attributes below.
        application, version: marks of the program that made it.
        size: bytes of a page.
        usable: bytes of a page that hold rows.
        count: number of pages.
        missing: pages that there should be behind them.
    """

    def __init__(self, path: Path) -> None:
        """Open a database file.

        Args:
            path: of the file; its log lies beside it.

        Raises:
            OSError: it cannot be opened.
        """
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        #: Pages of the log: the newest contents of each.
        self._logged: dict[int, bytes] = {}
        self.size = _PAGE_SIZE
        self.application = self.version = 0
        try:
            end = self._read_log(path.with_name(path.name + "-wal"))
            length = os.fstat(self._file).st_size
        except BaseException:
            os.close(self._file)
            raise
        header = self._logged.get(1) or self._read(0, _HEADER) or b""
        size = int.from_bytes(header[16:18])
        size = 65_536 if size == 1 else size
        self.intact = len(header) >= _HEADER and header.startswith(_MAGIC) and size in _SIZES
        count = reserved = 0
        if self.intact:
            self.size, reserved = size, header[20]
            (count,) = struct.unpack_from(">I", header, 28)
            self.version, self.application = struct.unpack_from(">I4xI", header, 60)
        self.usable = self.size - reserved
        self.count = max(-(-length // self.size), *self._logged, 0)
        self.missing = max(0, (end or count) - self.count)

    def page(self, number: int) -> bytes | None:
        """A page by its number, from 1; None where the disk cannot read it, or the file ends within it."""
        found = self._logged.get(number)
        if found is None:
            found = self._read((number - 1) * self.size, self.size)
        return found if found is not None and len(found) == self.size else None

    def numbers(self) -> Iterator[int]:
        """The numbers of all pages that may be in use, the unused ones included."""
        lock = _LOCK_BYTE // self.size + 1
        return (number for number in range(1, self.count + 1) if number != lock)

    def unused_pages(self) -> tuple[set[int], bool]:
        """The pages that hold nothing, and whether all such pages are known."""
        found: set[int] = set()
        header = self.page(1)
        if header is None or not self.intact:
            return found, False
        trunk, count = struct.unpack_from(">II", header, 32)
        while trunk:
            page = self.page(trunk)
            if page is None or trunk in found:
                return found, False
            found.add(trunk)
            trunk, leaves = struct.unpack_from(">II", page)
            if leaves > self.usable // 4 - 2:
                return found, False
            found.update(struct.unpack_from(f">{leaves}I", page, 8))
        return found, len(found) == count

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _read(self, position: int, length: int) -> bytes | None:
        try:
            return os.pread(self._file, length, position)
        except OSError:  # a bad sector
            return None

    def _read_log(self, path: Path) -> int:
        """Read the pages of the transactions that are in the log; returns the number of pages after the last one."""
        try:
            log = path.read_bytes()
        except OSError:
            return 0
        if len(log) < _LOG_HEAD:
            return 0
        magic, _, size, _ = struct.unpack_from(">4I", log)
        order = _LOG_MAGIC.get(magic)
        if order is None or size not in _SIZES:
            return 0
        sums = _checksum(log[:24], (0, 0), order)
        if sums != struct.unpack_from(">2I", log, 24):
            return 0
        self.size = size
        end = 0
        pending: dict[int, bytes] = {}
        for position in range(_LOG_HEAD, len(log) - _FRAME_HEAD - size + 1, _FRAME_HEAD + size):
            number, committed = struct.unpack_from(">2I", log, position)
            data = log[position + _FRAME_HEAD : position + _FRAME_HEAD + size]
            sums = _checksum(log[position : position + 8] + data, sums, order)
            if log[position + 8 : position + 16] != log[16:24] or sums != struct.unpack_from(">2I", log, position + 16):
                break  # of an older log, or not written to its end
            pending[number] = data
            if committed:
                self._logged |= pending
                pending.clear()
                end = committed
        return end


def _checksum(data: bytes, start: tuple[int, int], order: str) -> tuple[int, int]:
    one, two = start
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for first, second in zip(words, words, strict=True):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two
