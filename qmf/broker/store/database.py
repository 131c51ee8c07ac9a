"""The store's file: its tables, their version, and how it is made and opened.

A new file is made under another name, so that a store is there whole or not at all: one that is empty was damaged.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from qmf._atomic_files import sync_folder
from qmf.broker.store.errors import DiskFull, StoreDamaged, StoreError, StoreVersionError

#: Marks the file as a store of this broker (SQLite's application id): "QMFb".
APPLICATION_ID = 0x514D4662
#: Of the tables below (SQLite's user version).
VERSION = 6

#: Milliseconds that SQLite waits for another process that reads the file (`qmf-broker --check-store`).
_BUSY = 5_000

#: What to do without the file.
_RESTORE = "put a copy of the file in its place, or remove it, and its log, to begin with an empty store"

_TABLES = """
CREATE TABLE definition (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- of a queue: names its messages
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    fields BLOB NOT NULL,                  -- a map in AMQP 1.0 encoding
    UNIQUE (kind, name)
);
CREATE TABLE message (
    id INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,                -- definition.id
    position INTEGER NOT NULL,             -- order in the queue
    expires REAL,                          -- seconds since 1970, or null for never
    checksum INTEGER NOT NULL,             -- CRC-32 of the data
    data BLOB NOT NULL,                    -- the encoded message
    deliver REAL,                          -- seconds since 1970 from which on it may be delivered, or null
    format INTEGER NOT NULL DEFAULT 0      -- of its transfer: what the data means
);
CREATE TABLE acceptance (
    link INTEGER NOT NULL,                 -- definition.id
    number INTEGER NOT NULL,               -- of messages that came on it together
    tags BLOB NOT NULL,                    -- their numbers, of eight bytes each
    PRIMARY KEY (link, number)
) WITHOUT ROWID;
CREATE TABLE run (
    number INTEGER NOT NULL                -- how often the store was opened for writing
);
"""


def open_database(path: Path) -> sqlite3.Connection:
    """Open the store's file for reading and writing, from any one thread; create it where it is missing.

    Args:
        path: of the file.

    Raises:
        StoreVersionError: the file has another version.
        StoreDamaged: it is not a store, is empty, or is missing beside its log.
        StoreError: it cannot be read or written.
    """
    with store_errors(path):
        try:
            _make_missing(path)
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        except OSError as error:
            raise StoreError(path, f"cannot be made: {error.strerror}") from error
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def _make_missing(path: Path) -> None:
    """Make the file where there is none.

    Raises:
        StoreDamaged: the file is empty, or is missing beside its log.
        OSError, sqlite3.Error: the disk is full, or something else is wrong with it.
    """
    log = _beside(path, "-wal")
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size:
            return
        raise StoreDamaged(path, f"is empty (0 bytes), so what it held is lost: {_RESTORE}")
    if log.exists():
        raise StoreDamaged(path, f"is missing, but its log {log.name} is there: {_RESTORE}")
    made = _beside(path, ".new")
    for leftover in (made, _beside(made, "-journal")):
        leftover.unlink(missing_ok=True)
    os.close(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with contextlib.closing(sqlite3.connect(made, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        with transaction(connection):
            for statement in _TABLES.split(";")[:-1]:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
    made.rename(path)
    sync_folder(path.parent)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute(f"PRAGMA busy_timeout = {_BUSY}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise StoreDamaged(path, "is a database, but not a store of this broker")
    if found != VERSION:
        raise StoreVersionError(path, f"has version {found}; this broker reads and writes version {VERSION}")


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction: committed at the end, rolled back when an exception ends it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Errors of SQLite within the block are raised as those of the store."""
    try:
        yield
    except sqlite3.Error as error:
        raise as_store_error(path, error) from error


def as_store_error(path: Path, error: sqlite3.Error) -> StoreError:
    """The store's error for one of SQLite's."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return StoreDamaged(path, f"is damaged: {error}; --salvage-store NEW-DIR saves what can be read")
    if name.startswith("SQLITE_FULL"):
        return DiskFull(path, "the disk is full")
    return StoreError(path, f"{error}" + (f" ({name})" if name.startswith("SQLITE_IOERR") else ""))
