"""The contents of transient messages on the disk, for queues that page (policy flow-to-disk); gone with the process."""

from __future__ import annotations

import sqlite3


class MessagePages:
    """Bytes by number, in a file that SQLite makes and deletes itself; small ones stay in its cache."""

    def __init__(self) -> None:
        # An empty name is a private file in the folder for temporary files, which has no name there either.
        self._connection = sqlite3.connect("", isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = OFF")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute("CREATE TABLE page (id INTEGER PRIMARY KEY, data BLOB NOT NULL)")

    def put(self, data: bytes) -> int:
        """Keep bytes; returns their number.

        Raises:
            sqlite3.Error: the disk is full.
        """
        number = self._connection.execute("INSERT INTO page (data) VALUES (?)", (data,)).lastrowid
        assert number is not None
        return number

    def get(self, number: int) -> bytes:
        """The bytes of a number.

        Raises:
            sqlite3.Error: the disk cannot be read.
        """
        data: bytes
        (data,) = self._connection.execute("SELECT data FROM page WHERE id = ?", (number,)).fetchone()
        return data

    def drop(self, number: int) -> None:
        """Forget the bytes of a number."""
        self._connection.execute("DELETE FROM page WHERE id = ?", (number,))

    def close(self) -> None:
        """Forget all."""
        self._connection.close()
