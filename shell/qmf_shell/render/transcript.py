"""A copy of lines and results in a file, started and stopped by the user."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from qmf_shell.settings import SettingsError


class Transcript:
    """Appends lines to a file while one is open."""

    def __init__(self) -> None:
        self._file: TextIO | None = None

    @property
    def active(self) -> bool:
        """True while a file is open."""
        return self._file is not None

    def open(self, path: Path) -> None:
        """Start writing to a file; an earlier one is closed.

        Raises:
            SettingsError: the file cannot be opened.
        """
        self.close()
        try:
            # Lines may contain what nobody else should read.
            file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        except OSError as error:
            raise SettingsError(f"cannot record to {path}: {error.strerror or error}") from None
        self._file = os.fdopen(file, "a", encoding="utf-8", errors="backslashreplace", buffering=1)

    def write(self, lines: Iterable[str]) -> None:
        """Append lines, if a file is open.

        Raises:
            OSError: they cannot be written.
        """
        if self._file is not None:
            self._file.writelines(f"{line}\n" for line in lines)

    def close(self) -> None:
        """Stop writing."""
        if self._file is not None:
            self._file.close()
            self._file = None
