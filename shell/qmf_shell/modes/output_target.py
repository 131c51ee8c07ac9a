"""Where the output of one command goes: to a program, or to a file. Both look like a stream to the screen."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import subprocess
from pathlib import Path
from typing import Self, TextIO

from qmf.errors import CallerError
from qmf_shell.parsing.statements import Redirection
from qmf_shell.render.terminal_echo import terminal_echo


class OutputError(CallerError):
    """The output of a command cannot be written to a file, or no program can be started for it."""


class ProgramOutput(io.TextIOBase):
    """A program that reads the output of a command. It is started by the first output, so that it does not use the
    terminal while the command may still fail or ask.
    """

    def __init__(self, program: str) -> None:
        """Take a program, which is not started yet.

        Args:
            program: text for the system's shell.
        """
        self._program = program
        self._process: subprocess.Popen[str] | None = None
        self._stack = contextlib.ExitStack()

    def start(self) -> subprocess.Popen[str]:
        """Start the program, unless it was.

        Raises:
            OutputError: it cannot be started.
        """
        if self._process is None:
            self._stack.enter_context(terminal_echo(True))
            try:
                self._process = subprocess.Popen(
                    self._program,
                    shell=True,
                    stdin=subprocess.PIPE,
                    text=True,
                    encoding="utf-8",
                    errors="backslashreplace",
                )
            except OSError as error:
                raise OutputError(f"cannot run {self._program}: {error.strerror or error}") from None
        return self._process

    def write(self, text: str) -> int:
        """Write to the program.

        Raises:
            BrokenPipeError: it does not read any more.
        """
        stream = self.start().stdin
        assert stream is not None
        return stream.write(text)

    def flush(self) -> None:
        """Send what was written."""
        if self._process is not None and self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.flush()

    def finish(self) -> int:
        """Wait until the program ends. Its exit code, negative after a signal; 0 if it was never started."""
        process = self._process
        if process is None:
            return 0
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError, KeyboardInterrupt), self._stack:
            process.stdin.close()
        while True:
            # Ctrl-C is sent to all processes on the terminal; here it is for the program.
            with contextlib.suppress(KeyboardInterrupt):
                return process.wait()


class FileOutput(io.TextIOBase):
    """A file that gets the output of a command. It is opened before the command runs and emptied by its first output,
    so that neither a command runs in vain, nor a wrong one destroys a file.
    """

    def __init__(self, path: Path, file: TextIO, *, empties: bool, created: bool) -> None:
        """Write to an open file; `open` opens one.

        Args:
            path: of the file.
            file: it is at the beginning, or at the end where output is appended.
            empties: the first output replaces what is in the file.
            created: it was not there before.
        """
        self._path = path
        self._file = file
        self._empties = empties
        self._created = created

    @classmethod
    def open(cls, redirection: Redirection) -> Self:
        """Open the file of a redirection.

        Raises:
            OutputError: it cannot be opened.
        """
        path = Path(redirection.path).expanduser()
        flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if redirection.append else 0)
        created = not path.exists()
        try:
            file = os.fdopen(os.open(path, flags, 0o666), "w", encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise OutputError(f"cannot write {path}: {error.strerror or error}") from None
        return cls(path, file, empties=not redirection.append, created=created)

    def start(self) -> None:
        """Empty the file, unless it was or output is appended."""
        if self._empties and stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            self._file.truncate(0)
        self._empties = self._created = False

    def write(self, text: str) -> int:
        """Write to the file."""
        if self._empties or self._created:
            self.start()
        return self._file.write(text)

    def flush(self) -> None:
        """Send what was written to the system."""
        if not self._file.closed:
            self._file.flush()

    def finish(self) -> None:
        """Close the file; one that was created and got no output is removed.

        Raises:
            OutputError: what was written cannot be stored.
        """
        try:
            self._file.close()
        except OSError as error:
            raise self.error(error) from None
        if self._created:
            self._path.unlink(missing_ok=True)

    def error(self, error: OSError) -> OutputError:
        """The error for one of the system."""
        return OutputError(f"cannot write {self._path}: {error.strerror or error}")
