"""The lake of a session: opened when a command asks for the past."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from qmf.errors import CallerError

if TYPE_CHECKING:
    from qmf.pipeline.history.reader import LakeReader

#: Nanoseconds after the last heartbeat in which objects may have been recorded.
_RECENT = 60 * 10**9


class NoLakeError(CallerError):
    """A command about the past, in a session without a lake."""

    def __str__(self) -> str:
        return "no lake: start with --lake DIR, the folder that `qmf-pipeline record` writes"


class NotRecordedError(CallerError):
    """The time that the user wants is before the recording."""

    def __init__(self, at: str, begin: str) -> None:
        self.at = at
        self.begin = begin
        super().__init__(at, begin)

    def __str__(self) -> str:
        return f"nothing was recorded at {self.at}: the lake begins at {self.begin}"


class LakeSource:
    """The lake that the command line names, or else that of the session's context."""

    def __init__(self, path: str | None = None) -> None:
        """Take the path of a lake, which is not opened yet; `path`: the folder that the command line names, or None."""
        self._named = path
        self._path: str | None = None
        self._reader: LakeReader | None = None

    def open(self, of_context: str | None = None) -> LakeReader:
        """The reader, which sees what is committed now.

        Args:
            of_context: the folder that the session's context names, or None.

        Raises:
            NoLakeError: there is no lake.
            LakeError: the folder is not a lake, or cannot be read.
            MissingExtraError: a library is not installed.
        """
        path = self._named or of_context
        if path is None:
            raise NoLakeError
        if self._reader is None or path != self._path:
            # Imported here: most sessions have no lake.
            from qmf.pipeline.history.reader import LakeReader

            self.close()
            self._reader, self._path = LakeReader(Path(path).expanduser()), path
        self._reader.refresh()
        return self._reader

    def close(self) -> None:
        """Close the reader. A second call does nothing."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()


def latest(reader: LakeReader) -> int:
    """The latest time that a lake tells about: now while a recorder writes, else just after its last heartbeat."""
    now, end = time.time_ns(), reader.end()
    return min(now, end + _RECENT) if end else now
