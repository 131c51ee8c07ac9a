"""The broker's data folder: held by one process at a time, whose id is in its lock file."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import stat
from pathlib import Path

from qmf._closable import Closable
from qmf.broker.store.errors import StoreError, StoreLocked

log = logging.getLogger("qmf.broker.store")

#: Files in the data folder.
LOCK = "lock"
DATABASE = "store.sqlite"
RESERVE = "reserve"
#: The id of the machine, which consoles know the broker by after a restart.
SYSTEM_ID = "systemId"

_FILES = frozenset({LOCK, RESERVE, SYSTEM_ID})


class DataFolder(Closable):
    """A data folder that this process holds until `close`. The lock ends with the process, however that ends."""

    def __init__(self, path: Path) -> None:
        """Create the folder where it is missing, and lock it.

        Raises:
            StoreLocked: another process holds it.
            StoreError: it cannot be created or written to.
        """
        self.path = path
        try:
            path.mkdir(0o700, parents=True, exist_ok=True)
            self._lock: int | None = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(path, f"the data folder cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(self._lock, 32).decode("ascii", "replace").strip()
            self.close()
            raise StoreLocked(path, f"the data folder is in use by process {holder or 'of unknown number'}") from error
        with contextlib.suppress(OSError):  # a full disk: the lock holds without the number in it
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    @property
    def database(self) -> Path:
        """The store's file."""
        return self.path / DATABASE

    @property
    def reserve(self) -> Path:
        """The file of the store's `Reserve`."""
        return self.path / RESERVE

    def protect(self) -> None:
        """Take from other users the rights to the folder and the broker's files; says in the log where it cannot.

        Copies of the store that begin with its name are among these.
        """
        own = [path for path in self.path.iterdir() if path.name in _FILES or path.name.startswith(DATABASE)]
        for path, allowed in ((self.path, 0o700), *((path, 0o600) for path in own)):
            try:
                mode = stat.S_IMODE(path.stat().st_mode)
                if mode & 0o077:
                    path.chmod(mode & allowed)
            except OSError as error:
                log.warning("other users may read %s: %s", path, error.strerror)

    def close(self) -> None:
        """Let go of the folder. A second call does nothing."""
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)
