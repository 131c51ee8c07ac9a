"""Reading a store: all of it at a start, or what can be read of a damaged one."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from qmf.broker.store.database import as_store_error
from qmf.broker.store.encoding import decode_fields
from qmf.broker.store.errors import StoreDamaged
from qmf.broker.store.unit import Definition, Kind, StoredMessage
from qmf.errors import DecodeError


def read_definitions(connection: sqlite3.Connection, path: Path) -> list[Definition]:
    """All definitions, in the order of their ids.

    Raises:
        StoreDamaged: one cannot be read; names it.
        StoreError: SQLite cannot read the file.
    """
    found = []
    try:
        for id, kind, name, fields in connection.execute("SELECT id, kind, name, fields FROM definition ORDER BY id"):
            found.append(_definition(path, id, kind, name, fields))
    except sqlite3.Error as error:
        raise as_store_error(path, error) from error
    return found


def read_messages(connection: sqlite3.Connection, path: Path) -> list[StoredMessage]:
    """All messages, by queue and position.

    Raises:
        StoreDamaged: one cannot be read; names it.
        StoreError: SQLite cannot read the file.
    """
    found = []
    rows = connection.execute("SELECT id, queue, position, expires, checksum, data, deliver, format FROM message")
    try:
        for row in rows:
            found.append(_message(path, *row))
    except sqlite3.Error as error:
        raise as_store_error(path, error) from error
    found.sort(key=lambda message: (message.queue, message.position))
    return found


def last_message(connection: sqlite3.Connection, path: Path) -> int:
    """The largest id of a message; 0 where there is none.

    Raises:
        StoreError: SQLite cannot read the file.
    """
    return _number(connection, path, "SELECT max(id) FROM message")


def last_definition(connection: sqlite3.Connection, path: Path) -> int:
    """The largest id that a definition ever had; 0 where there was none.

    Raises:
        StoreError: SQLite cannot read the file.
    """
    return _number(connection, path, "SELECT max(seq) FROM sqlite_sequence WHERE name = 'definition'")


def _number(connection: sqlite3.Connection, path: Path, query: str) -> int:
    try:
        (number,) = connection.execute(query).fetchone()
    except sqlite3.Error as error:
        raise as_store_error(path, error) from error
    return number or 0


def salvage_definitions(connection: sqlite3.Connection, path: Path, lost: list[str]) -> Iterator[Definition]:
    """The definitions that can be read; of the others `lost` gets a line each."""
    query = "SELECT id, kind, name, fields FROM definition WHERE id >= ? ORDER BY id LIMIT 1"
    for row in _rows(connection, query, "SELECT max(id) FROM definition", "definition", lost):
        try:
            yield _definition(path, *row)
        except StoreDamaged as error:
            lost.append(error.reason)


def salvage_messages(connection: sqlite3.Connection, path: Path, lost: list[str]) -> Iterator[StoredMessage]:
    """The messages that can be read; of the others `lost` gets a line each, or one for a range of ids."""
    version = _number(connection, path, "PRAGMA user_version")
    columns = f"{'deliver' if version > 1 else 'NULL'}, {'format' if version > 3 else '0'}"
    query = (
        f"SELECT id, queue, position, expires, checksum, data, {columns} FROM message WHERE id >= ? ORDER BY id LIMIT 1"
    )
    for row in _rows(connection, query, "SELECT max(id) FROM message", "message", lost):
        try:
            yield _message(path, *row)
        except StoreDamaged as error:
            lost.append(error.reason)


def _rows(
    connection: sqlite3.Connection, query: str, last_query: str, what: str, lost: list[str]
) -> Iterator[tuple[Any, ...]]:
    """Rows by their ids, one after the other, so that a damaged page hides its own rows only."""
    try:
        (last,) = connection.execute(last_query).fetchone()
    except sqlite3.Error as error:
        lost.append(f"{what}s: {error}")
        return
    id = 0
    while last is not None and id <= last:
        try:
            row = connection.execute(query, (id,)).fetchone()
        except sqlite3.Error as error:
            following = _next_readable(connection, query, id, last)
            end = last if following is None else following - 1
            lost.append((f"{what} {id}" if id == end else f"{what}s {id} to {end}") + f": {error}")
            if following is None:
                return
            id = following
            continue
        if row is None:
            return
        yield row
        id = row[0] + 1


def _next_readable(connection: sqlite3.Connection, query: str, unreadable: int, last: int) -> int | None:
    """The first id behind an unreadable one from where rows can be read again."""

    def readable(id: int) -> bool:
        try:
            connection.execute(query, (id,)).fetchone()
        except sqlite3.Error:
            return False
        return True

    step = 1
    while not readable(following := min(unreadable + step, last)):
        if following == last:
            return None
        unreadable, step = following, 2 * step
    while following - unreadable > 1:
        middle = (following + unreadable) // 2
        if readable(middle):
            following = middle
        else:
            unreadable = middle
    return following


def _definition(path: Path, id: int, kind: str, name: str, fields: bytes) -> Definition:
    try:
        return Definition(id, Kind(kind), name, decode_fields(fields))
    except (DecodeError, ValueError, TypeError) as error:
        raise StoreDamaged(path, f"definition {id} ({kind} {name!r}) is damaged: {error}") from error


def _message(
    path: Path,
    id: int,
    queue: int,
    position: int,
    expires: float | None,
    checksum: int,
    data: bytes,
    deliver: float | None,
    format: int,
) -> StoredMessage:
    if not isinstance(data, bytes) or zlib.crc32(data) != checksum:
        raise StoreDamaged(path, f"message {id} of queue {queue} is damaged: its checksum is wrong")
    return StoredMessage(id, queue, position, expires, data, deliver, format)
