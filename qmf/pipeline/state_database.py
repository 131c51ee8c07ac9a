"""The state of a job in an SQLite file: one process writes it, others may read it meanwhile or afterwards."""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

from qmf.pipeline.errors import LakeError, lake_errors

#: The version of what the tables mean; another one is refused.
_VERSION = 1

#: Seconds that a reader and the writer wait for each other.
_TIMEOUT = 30.0


class StateDatabase:
    """The file of one job, for the process that writes it. What is committed is on the disk. Not for threads at once.

    Attributes:
        path: of the file.
    """

    def __init__(self, path: Path, tables: str, refusal: str) -> None:
        """Open the file, or create it with its folder, which is locked until `close`.

        Args:
            path: of the file.
            tables: statements that create those that are missing.
            refusal: the error if another process holds the folder.

        Raises:
            LakeError: another process holds the folder, the file system failed, or the file is of another version, or
                is none of SQLite.
        """
        self.path = path
        with lake_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = lock_file(path.with_name("_lock"), refusal)
        try:
            with state_errors(path):
                self.connection = sqlite3.connect(path, timeout=_TIMEOUT, isolation_level=None, check_same_thread=False)
                try:
                    self._prepare(tables)
                except BaseException:
                    self.connection.close()
                    raise
        except BaseException:
            self._lock.close()
            raise

    def _prepare(self, tables: str) -> None:
        (version,) = self.connection.execute("PRAGMA user_version").fetchone()
        if version not in (0, _VERSION):
            raise LakeError(f"{self.path}: written by another version of this program")
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.executescript(f"{tables}PRAGMA user_version = {_VERSION};")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """What the block writes is committed whole, or not at all.

        Raises:
            LakeError: the file system failed; nothing was written.
        """
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
        self.connection.close()
        self._lock.close()


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
    """Lock a file, which is created, until the one that is returned is closed, or the process ends.

    Raises:
        LakeError: with the text of `refusal`, another process holds it; or the file system failed.
    """
    with lake_errors(path):
        file = path.open("a", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise LakeError(refusal) from None
        except OSError:
            file.close()
            raise
    return file
