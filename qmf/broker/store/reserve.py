"""Space on the disk that is kept for the time when it is full: what is acknowledged then can still be written."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

#: Bytes of the reserve: enough for SQLite to move what is in its log to the database, and to log removals meanwhile.
SIZE = 16 * 1024 * 1024
#: Bytes written at a time where the system cannot allocate.
_BLOCK = bytes(1024 * 1024)


class Reserve:
    """A file that takes space, and is emptied when the space is needed.

    Attributes:
        size: bytes of the space.
        held: the space is taken.
    """

    def __init__(self, path: Path, size: int = SIZE) -> None:
        """Args:

        path: of the file.
        size: as the attribute.
        """
        self._path = path
        self.size = size
        self.held = False

    def take(self) -> bool:
        """Take the space, unless it is taken; False if the disk has no room."""
        if self.held:
            return True
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return False
        try:
            _allocate(descriptor, self.size)
            self.held = True
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, 0)
        finally:
            os.close(descriptor)
        return self.held

    def release(self) -> None:
        """Let others use the space."""
        self.held = False
        with contextlib.suppress(OSError):  # the file is missing, or cannot be changed: there is nothing to release
            os.truncate(self._path, 0)


def _allocate(descriptor: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    for _ in range(0, size, len(_BLOCK)):
        os.write(descriptor, _BLOCK)
