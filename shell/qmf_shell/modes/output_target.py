"""Where the output of one command goes: to a program, or to a file, which look like a stream to the screen; the pager.

While a command runs, the terminal must not show the keys that are typed: they are kept for the next prompt, which shows
them. A program that is started finds the terminal as usual.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Self, TextIO

from qmf.errors import CallerError
from qmf_shell.parsing.statements import Redirection


@contextlib.contextmanager
def terminal_echo(on: bool) -> Iterator[None]:
    """In the block, the terminal shows the keys that are typed, or does not. Does nothing without a terminal."""
    try:
        import termios
    except ImportError:  # not a POSIX terminal
        yield
        return
    try:
        fd = sys.stdin.fileno()
        before = termios.tcgetattr(fd)
    except (AttributeError, OSError, ValueError, termios.error):  # no stdin, or it is not a terminal
        yield
        return
    mode = termios.tcgetattr(fd)
    mode[3] = mode[3] | termios.ECHO if on else mode[3] & ~termios.ECHO
    termios.tcsetattr(fd, termios.TCSANOW, mode)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(fd, termios.TCSANOW, before)


class OutputError(CallerError):
    """The output of a command cannot be written to a file, or no program can be started for it."""


class ProgramOutput(io.TextIOBase):
    """A program that reads the output of a command. It is started by the first output, so that it does not use the
    terminal while the command may still fail or ask.
    """

    def __init__(self, program: str | list[str], env: Mapping[str, str] | None = None) -> None:
        """Take a program, which is not started yet.

        Args:
            program: text for the system's shell, or its words.
            env: its environment; None for that of this process.
        """
        self._program = program
        self._env = env
        self._process: subprocess.Popen[str] | None = None
        self._stack = contextlib.ExitStack()

    def start(self) -> IO[str]:
        """Start the program, unless it was; returns what it reads.

        Raises:
            OutputError: it cannot be started.
        """
        if self._process is None:
            with contextlib.ExitStack() as stack:
                stack.enter_context(terminal_echo(True))
                try:
                    self._process = subprocess.Popen(
                        self._program,
                        shell=isinstance(self._program, str),
                        stdin=subprocess.PIPE,
                        env=self._env,
                        text=True,
                        encoding="utf-8",
                        errors="backslashreplace",
                    )
                except OSError as error:
                    raise OutputError(f"cannot run {self._program}: {error.strerror or error}") from None
                self._stack = stack.pop_all()
        assert self._process.stdin is not None
        return self._process.stdin

    def write(self, text: str) -> int:
        """Write to the program.

        Raises:
            BrokenPipeError: it does not read any more.
        """
        return self.start().write(text)

    def flush(self) -> None:
        """Send what was written."""
        if self._process is not None and not self.start().closed:
            self.start().flush()

    def finish(self) -> int:
        """Wait until the program ends. Its exit code, negative after a signal; 0 if it was never started."""
        if self._process is None:
            return 0
        with self._stack:
            with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
                self.start().close()
            while True:
                # Ctrl-C is sent to all processes on the terminal; here it is for the program.
                with contextlib.suppress(KeyboardInterrupt):
                    return self._process.wait()


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


def pager_command(environ: Mapping[str, str]) -> list[str] | None:
    """The pager: that of ``QMF_SHELL_PAGER`` or ``PAGER``, else less; None without one, or if the variable is empty."""
    for name in ("QMF_SHELL_PAGER", "PAGER"):
        if name in environ:
            try:
                words = shlex.split(environ[name])
            except ValueError:
                return None
            return words if words and words[0] != "cat" and shutil.which(words[0]) else None
    found = shutil.which("less")
    return [found] if found else None


def page(parts: Iterable[str], command: list[str]) -> bool:
    """Show text in a pager until the user leaves it; False if it cannot be started.

    Args:
        parts: of the text; each is made when there is room for it.
        command: the pager.

    Raises:
        QmfError: a part could not be made; the user has seen those before.
    """
    # As git does: show colours, leave the text on the screen, and exit at once if the text fits.
    pager = ProgramOutput(command, {"LESS": "FRX", **os.environ})
    try:
        pager.start()
    except OutputError:
        return False
    try:
        with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
            for part in parts:
                pager.write(part)
                pager.flush()
    finally:
        pager.finish()
    return True
