"""Reading a store at a start: all of it, or an error that names what is damaged."""

from __future__ import annotations

import secrets
import sqlite3
import zlib
from collections.abc import Sequence
from pathlib import Path

from qmf.broker.store.database import store_errors, transaction
from qmf.broker.store.encoding import decode_fields, decode_numbers
from qmf.broker.store.errors import StoreDamaged
from qmf.broker.store.unit import Definition, DefinitionKind, StoredMessage
from qmf.errors import DecodeError

#: Ids of messages have the number of the run in the bits above these.
_RUN_BITS = 40
#: The first run of a store has a random number, so that two stores that a broker had one after the other don't use the
#: same ids: other brokers may remember those of the first.
_FIRST_BITS = 20


def read_definitions(connection: sqlite3.Connection, path: Path) -> list[Definition]:
    """All definitions, in the order of their ids.

    Raises:
        StoreDamaged: one cannot be read; names it.
        StoreError: SQLite cannot read the file.
    """
    with store_errors(path):
        rows = connection.execute("SELECT id, kind, name, fields FROM definition ORDER BY id")
        return [definition_of(path, *row) for row in rows]


def read_messages(connection: sqlite3.Connection, path: Path) -> list[StoredMessage]:
    """All messages, by queue and position.

    Raises:
        StoreDamaged: one cannot be read; names it.
        StoreError: SQLite cannot read the file.
    """
    with store_errors(path):
        rows = connection.execute("SELECT id, queue, position, expires, checksum, data, deliver, format FROM message")
        found = [message_of(path, *row) for row in rows]
    found.sort(key=lambda message: (message.queue, message.position))
    return found


def begin_run(connection: sqlite3.Connection, path: Path) -> int:
    """Count that the store is opened; returns the smallest id for its messages.

    Those that had larger ids than all that are in the file may have been sent to others, and are not in the file since
    they were removed or never written: their ids are not used again.

    Raises:
        StoreError: SQLite cannot read or write the file.
    """
    largest = _number(connection, path, "SELECT max(id) FROM message")
    last = _number(connection, path, "SELECT max(number) FROM run") or secrets.randbits(_FIRST_BITS)
    number = max(last, largest >> _RUN_BITS) + 1
    with store_errors(path), transaction(connection):
        connection.execute("DELETE FROM run")
        connection.execute("INSERT INTO run (number) VALUES (?)", (number,))
        connection.execute("DELETE FROM acceptance WHERE link NOT IN (SELECT id FROM definition)")
    return number << _RUN_BITS


def read_acceptances(connection: sqlite3.Connection, path: Path) -> dict[int, dict[int, Sequence[int]]]:
    """Numbers of the messages that came on remembered links, by the ids of these and the numbers of `Acceptances`.

    Raises:
        StoreDamaged: they are no numbers.
        StoreError: SQLite cannot read the file.
    """
    found: dict[int, dict[int, Sequence[int]]] = {}
    with store_errors(path):
        rows = connection.execute("SELECT link, number, tags FROM acceptance ORDER BY link, number").fetchall()
    for link, number, tags in rows:
        try:
            found.setdefault(link, {})[number] = decode_numbers(tags)
        except DecodeError as error:
            raise StoreDamaged(path, f"acceptances {number} of link {link} cannot be read: {error}") from error
    return found


def last_definition(connection: sqlite3.Connection, path: Path) -> int:
    """The largest id that a definition ever had; 0 where there was none.

    Raises:
        StoreError: SQLite cannot read the file.
    """
    return _number(connection, path, "SELECT max(seq) FROM sqlite_sequence WHERE name = 'definition'")


def _number(connection: sqlite3.Connection, path: Path, query: str) -> int:
    with store_errors(path):
        (number,) = connection.execute(query).fetchone()
    return number or 0


def definition_of(path: Path, id: int, kind: str, name: str, fields: bytes) -> Definition:
    """The definition in a row.

    Raises:
        StoreDamaged: it is none.
    """
    try:
        return Definition(id, DefinitionKind(kind), name, decode_fields(fields))
    except (DecodeError, ValueError, TypeError) as error:
        raise StoreDamaged(path, f"definition {id} ({kind} {name!r}) is damaged: {error}") from error


def message_of(
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
    """The message in a row.

    Raises:
        StoreDamaged: its checksum is wrong.
    """
    if not isinstance(data, bytes) or zlib.crc32(data) != checksum:
        raise StoreDamaged(path, f"message {id} of queue {queue} is damaged: its checksum is wrong")
    return StoredMessage(id, queue, position, expires, data, deliver, format)
