"""The contents of messages on the disk, for queues that flow to disk; gone with the process."""

from __future__ import annotations

import logging
import sqlite3

from qmf.broker.nodes.message import Message

log = logging.getLogger("qmf.broker.store")


class MessagePages:
    """Bytes by number, in a file that SQLite makes and deletes itself; small ones stay in its cache."""

    def __init__(self) -> None:
        # An empty name is a private file in the folder for temporary files, which has no name there either.
        self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = OFF")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute("CREATE TABLE page (id INTEGER PRIMARY KEY, data BLOB NOT NULL)")

    def page(self, message: Message) -> Message | None:
        """The same message with its data on the disk; None when the disk is full."""
        try:
            return PagedMessage(message, self)
        except sqlite3.Error as error:
            log.error("cannot put a message on the disk: %s", error)
            return None

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

    def __len__(self) -> int:
        (count,) = self._connection.execute("SELECT count(*) FROM page").fetchone()
        return int(count)

    def close(self) -> None:
        """Forget all."""
        self._connection.close()


class PagedMessage(Message):
    """A message whose data is read from the disk each time. The page goes with the message."""

    __slots__ = ("_number", "_pages")

    paged = True

    def __init__(self, message: Message, pages: MessagePages) -> None:
        """Put the data of a message on the disk.

        Raises:
            sqlite3.Error: the disk is full.
        """
        self._pages = pages
        self._number = 0
        super().__init__(
            b"",
            message.to,
            message.subject,
            message.fields if message.opaque else None,
            message.expires_at,
            message.correlated,
            message.durable,
            message.priority,
            message.deliver_at,
            message.origin,
            message.message_format,
        )
        del self.data  # so that `__getattr__` is asked for it
        self._number = pages.put(message.data)

    def __getattr__(self, name: str) -> bytes:
        if name != "data":
            raise AttributeError(name)
        return self._pages.get(self._number)

    def __del__(self) -> None:
        try:
            self._pages.drop(self._number)
        except sqlite3.ProgrammingError:  # the broker was closed before
            return
