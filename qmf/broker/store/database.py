"""The store's file: its tables, their version, and how it is opened."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from qmf.broker.store.errors import DiskFull, StoreDamaged, StoreError, StoreVersionError

#: Marks the file as a store of this broker (SQLite's application id): "QMFb".
APPLICATION_ID = 0x514D4662
#: Of the tables below (SQLite's user version).
VERSION = 4

#: Milliseconds that SQLite waits for another process that reads the file (`qmf-broker --check-store`).
_BUSY = 5_000

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
"""

#: Steps from each older version to the next one.
MIGRATIONS: Mapping[int, Callable[[sqlite3.Connection], object]] = {
    1: lambda connection: connection.execute("ALTER TABLE message ADD COLUMN deliver REAL"),
    2: lambda _: None,  # definitions of topics and policies, which older programs don't know
    3: lambda connection: connection.execute("ALTER TABLE message ADD COLUMN format INTEGER NOT NULL DEFAULT 0"),
}


def open_database(
    path: Path,
    *,
    version: int = VERSION,
    migrations: Mapping[int, Callable[[sqlite3.Connection], object]] = MIGRATIONS,
) -> sqlite3.Connection:
    """Open the store's file for reading and writing, from any one thread; create or migrate it where needed.

    Args:
        path: of the file.
        version: of the tables that the caller knows.
        migrations: steps from each older version to the next one; all that are needed are one transaction.

    Raises:
        StoreVersionError: the file has a newer version.
        StoreDamaged: it is not a store.
        StoreError: it cannot be read, written, or migrated.
    """
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise as_store_error(path, error) from error
    try:
        _prepare(connection, path, version, migrations)
    except BaseException as error:
        connection.close()
        if isinstance(error, sqlite3.Error):
            raise as_store_error(path, error) from error
        raise
    return connection


def _prepare(
    connection: sqlite3.Connection,
    path: Path,
    version: int,
    migrations: Mapping[int, Callable[[sqlite3.Connection], object]],
) -> None:
    connection.execute(f"PRAGMA busy_timeout = {_BUSY}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if not tables and not application:
        with transaction(connection):
            for statement in _TABLES.split(";")[:-1]:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {version}")
        return
    if application != APPLICATION_ID:
        raise StoreDamaged(path, "is a database, but not a store of this broker")
    if found > version:
        raise StoreVersionError(path, f"has version {found}; this broker knows versions up to {version}")
    if found < version:
        with transaction(connection):
            for step in range(found, version):
                if step not in migrations:
                    raise StoreError(path, f"there is no way from version {step} to {version}")
                migrations[step](connection)
            connection.execute(f"PRAGMA user_version = {version}")


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


def as_store_error(path: Path, error: sqlite3.Error) -> StoreError:
    """The store's error for one of SQLite's."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return StoreDamaged(path, f"is damaged: {error}")
    if name.startswith("SQLITE_FULL"):
        return DiskFull(path, "the disk is full")
    return StoreError(path, f"{error}" + (f" ({name})" if name.startswith("SQLITE_IOERR") else ""))
