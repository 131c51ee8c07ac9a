"""The state of a job in an SQLite file: one process writes it, others may read it meanwhile or afterwards."""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import IO

from qmf.pipeline.errors import LakeError, lake_errors

#: The version of what the tables mean; another one is refused.
_VERSION = 1

#: Seconds that a reader and the writer wait for each other.
_TIMEOUT = 30.0


class StateDatabase:
    """The file of one job, for the process that writes it: what is committed is on the disk. For one thread."""

    def __init__(self, path: Path, tables: str, refusal: str) -> None:
        """Open the file, or create it with its folder and missing tables; the folder is locked until `close`.

        `LakeError`, with the text `refusal` where another process holds the folder, or where the file is no such one.
        """
        self.path = path
        with lake_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as opened:
            opened.enter_context(lock_file(path.with_name("_lock"), refusal))
            with state_errors(path):
                self.connection = sqlite3.connect(path, timeout=_TIMEOUT, isolation_level=None, check_same_thread=False)
                opened.callback(self.connection.close)
                self._prepare(tables)
            self._opened = opened.pop_all()

    def _prepare(self, tables: str) -> None:
        (version,) = self.connection.execute("PRAGMA user_version").fetchone()
        if version not in (0, _VERSION):
            raise LakeError(f"{self.path}: written by another version of this program")
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.executescript(f"{tables}PRAGMA user_version = {_VERSION};")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """What the block writes is committed whole, or not at all, as where the file system fails."""
        with state_errors(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
            except BaseException:
                self.connection.execute("ROLLBACK")
                raise
            self.connection.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Errors of what the block reads are `LakeError`."""
        with state_errors(self.path):
            yield self.connection

    def close(self) -> None:
        """Close the file, and release the folder for other processes."""
        self._opened.close()


@contextmanager
def stored_state(path: Path) -> Iterator[sqlite3.Connection]:
    """The file of a job that runs or has ended, to be read: as it is at one moment. `LakeError` if it can't be."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with state_errors(path), closing(sqlite3.connect(uri, timeout=_TIMEOUT, uri=True)) as connection:
        connection.execute("BEGIN")
        yield connection


@contextmanager
def state_errors(path: Path) -> Iterator[None]:
    """Errors of SQLite, and of contents that are not what was stored, are `LakeError`."""
    try:
        yield
    except (sqlite3.Error, ValueError, TypeError) as error:
        raise LakeError(f"{path}: {error}") from error


def lock_file(path: Path, refusal: str) -> IO[str]:
    """Lock a file, which is created, until it is closed or the process ends; `LakeError` where another one holds it."""
    with lake_errors(path):
        file = path.open("a", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            if isinstance(error, BlockingIOError):
                raise LakeError(refusal) from None
            raise
    return file
