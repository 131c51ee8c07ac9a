"""Space on the disk that is kept for the time when it is full: what is acknowledged then can still be written."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

#: Bytes of the reserve: enough for SQLite to move what is in its log to the database, and to log removals meanwhile.
SIZE = 16 * 1024 * 1024
#: It takes no more than this part of what is free, and is not worth having below that size.
_PART = 4
_LEAST = 1024 * 1024
#: Bytes written at a time where the system cannot allocate.
_BLOCK = bytes(1024 * 1024)


class Reserve:
    """A file that takes space, and is emptied when the space is needed.

    Attributes:
        size: bytes of the space; less where the disk has little.
        held: the space is taken.
    """

    def __init__(self, path: Path, size: int = SIZE) -> None:
        """Take a file as the reserve; it is not filled yet.

        Args:
            path: of the file.
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
            disk = os.fstatvfs(descriptor)
            size = min(self.size, (disk.f_bavail * disk.f_frsize + os.fstat(descriptor).st_size) // _PART)
            if size >= min(_LEAST, self.size):
                _allocate(descriptor, size)
                self.held = True
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, 0)
        finally:
            os.close(descriptor)
        return self.held

    def release(self) -> bool:
        """Let others use the space; False if there was none."""
        self.held = False
        try:
            held = self._path.stat().st_size > 0
            os.truncate(self._path, 0)
        except OSError:  # the file is missing, or cannot be changed
            return False
        return held


def _allocate(descriptor: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    for _ in range(0, size, len(_BLOCK)):
        os.write(descriptor, _BLOCK)
