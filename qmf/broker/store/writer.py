"""Writing units: a thread that makes one transaction of all that came while the last one was written (group commit)."""

from __future__ import annotations

import contextlib
import queue
import sqlite3
import threading
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from qmf.broker.store.database import as_store_error, transaction
from qmf.broker.store.encoding import encode_fields, encode_numbers
from qmf.broker.store.errors import DiskFull, StoreError
from qmf.broker.store.reserve import Reserve
from qmf.broker.store.unit import Unit

#: Called in the writer's thread with the units that were written, and with those that failed and why.
Report = Callable[[Sequence[Unit], Sequence[Unit], StoreError | None], None]


class StoreWriter:
    """The thread that owns the connection for writing."""

    def __init__(self, connection: sqlite3.Connection, path: Path, reserve: Reserve, report: Report) -> None:
        """Start the thread.

        Args:
            connection: to write with; closed at the end.
            path: of the file, for error texts.
            reserve: space for a full disk.
            report: what became of a batch.
        """
        self._connection = connection
        self._path = path
        self._report = report
        self._reserve = reserve
        #: Set while only what frees space is written, and what must be: the disk is full, and the reserve is in use.
        self._full: DiskFull | None = None
        self._batches: queue.SimpleQueue[Sequence[Unit] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="qmf-broker-store", daemon=True)
        self._thread.start()

    def write(self, batch: Sequence[Unit]) -> None:
        """Write units in one transaction; the result is reported. Returns at once."""
        self._batches.put(batch)

    def close(self) -> None:
        """Write what is left, end the thread, and close the connection."""
        self._batches.put(None)
        self._thread.join()

    def _run(self) -> None:
        if not self._reserve.take():
            self._full = DiskFull(self._path, "the disk is full")
        while (batch := self._batches.get()) is not None:
            self._write(batch)
        with contextlib.suppress(sqlite3.Error):  # a store that cannot be tidied up is read from its log next time
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()

    def _write(self, batch: Sequence[Unit]) -> None:
        """Write a batch or, where that is not possible, the part of it that matters most."""
        error: StoreError | None = self._full
        if self._full is None or self._has_room():
            self._full = None
            error = self._try(batch)
            if error is None:
                self._report(batch, (), None)
                return
            if isinstance(error, DiskFull):
                self._full = error
                self._use_reserve()
        for chosen in (
            [unit for unit in batch if unit.lasting or unit.frees],
            [unit for unit in batch if unit.frees],
        ):
            if chosen and self._try(chosen) is None:
                kept = set(chosen)
                self._report(chosen, [unit for unit in batch if unit not in kept], error)
                return
        self._report((), batch, error)

    def _use_reserve(self) -> None:
        self._reserve.release()
        with contextlib.suppress(sqlite3.Error):  # it stays in the log, then
            self._connection.execute("PRAGMA wal_checkpoint(RESTART)")

    def _has_room(self) -> bool:
        """True if new messages can be written again: the reserve is back, or much of the file is unused."""
        if self._reserve.take():
            return True
        try:
            (unused,) = self._connection.execute("PRAGMA freelist_count").fetchone()
            (page,) = self._connection.execute("PRAGMA page_size").fetchone()
        except sqlite3.Error:
            return False
        return bool(unused * page >= self._reserve.size)

    def _try(self, batch: Sequence[Unit]) -> StoreError | None:
        try:
            with transaction(self._connection):
                write_units(self._connection, batch)
        except sqlite3.Error as error:
            return as_store_error(self._path, error)
        return None


def write_units(connection: sqlite3.Connection, units: Sequence[Unit]) -> None:
    """Write units in their order, those without definitions together.

    Raises:
        sqlite3.Error: as of SQLite.
    """
    plain: list[Unit] = []
    for unit in units:
        if unit.defined or unit.undefined:
            _write_messages(connection, plain)
            plain.clear()
            _write_definitions(connection, unit)
        plain.append(unit)
    _write_messages(connection, plain)


def _write_definitions(connection: sqlite3.Connection, unit: Unit) -> None:
    connection.executemany("DELETE FROM message WHERE queue = ?", [(id,) for id in unit.undefined])
    connection.executemany("DELETE FROM acceptance WHERE link = ?", [(id,) for id in unit.undefined])
    connection.executemany("DELETE FROM definition WHERE id = ?", [(id,) for id in unit.undefined])
    connection.executemany(
        "INSERT OR REPLACE INTO definition (id, kind, name, fields) VALUES (?, ?, ?, ?)",
        [(each.id, each.kind.value, each.name, encode_fields(each.fields)) for each in unit.defined],
    )


def _write_messages(connection: sqlite3.Connection, units: Sequence[Unit]) -> None:
    connection.executemany(
        "INSERT INTO message (id, queue, position, expires, checksum, data, deliver, format)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                each.id,
                each.queue,
                each.position,
                each.expires,
                zlib.crc32(each.data),
                each.data,
                each.deliver,
                each.format,
            )
            for unit in units
            for each in unit.messages
        ],
    )
    connection.executemany(
        "UPDATE message SET checksum = ?, data = ? WHERE id = ?",
        [(zlib.crc32(data), data, id) for unit in units for id, data in unit.changed],
    )
    connection.executemany("DELETE FROM message WHERE id = ?", [(id,) for unit in units for id in unit.removed])
    connection.executemany(
        "INSERT INTO acceptance (link, number, tags) VALUES (?, ?, ?)",
        [(each.link, each.number, encode_numbers(each.tags)) for unit in units for each in unit.accepted],
    )
    connection.executemany(
        "DELETE FROM acceptance WHERE link = ? AND number = ?", [each for unit in units for each in unit.confirmed]
    )
