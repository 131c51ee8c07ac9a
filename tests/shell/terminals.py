"""Runs the real programs: in a pseudo-terminal with an emulated screen, or without a terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pexpect
import pyte
from pexpect.fdpexpect import fdspawn
from support import processes
from support.forks import ForkedProcess, script_of
from wcwidth import wcwidth

if TYPE_CHECKING:
    _Spawn = fdspawn[str]
else:
    _Spawn = fdspawn  # which has no such parameter when it runs

WAIT_LIMIT = 30.0
PROGRAM = [processes.command("qmf-shell")]


def environment(home: Path, **more: str) -> dict[str, str]:
    """The environment of the tests, without variables that change the output."""
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    path = os.pathsep.join(entry for entry in sys.path if entry)
    folders = {"HOME": str(home), "XDG_STATE_HOME": str(home), "XDG_CONFIG_HOME": str(home), "PAGER": "cat"}
    return env | folders | {"TERM": "xterm-256color", "PYTHONPATH": path} | more


class _Child(_Spawn):
    """A command of this project at a terminal: a fork of a process that has loaded its modules."""

    def __init__(self, words: Sequence[str], env: dict[str, str], dimensions: tuple[int, int]) -> None:
        script = script_of(words)
        assert script is not None, words
        ours, theirs = os.openpty()
        termios.tcsetwinsize(ours, dimensions)
        self.process = ForkedProcess(*script, env, (theirs, theirs, theirs), terminal=True)
        super().__init__(ours, timeout=WAIT_LIMIT, encoding="utf-8")

    def close(self) -> None:
        """Close the terminal, and wait for the end of the command."""
        if not self.closed:
            super().close()
        try:
            self.exitstatus = self.process.wait(WAIT_LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


class _Screen(pyte.Screen):
    """A screen that answers requests for the position of the cursor, and keeps the texts of its rows."""

    child: _Child | None = None

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__(columns, rows)
        self._texts: list[str] = []

    def texts(self) -> list[str]:
        """The rows, without blanks at their ends: those that have changed are put together anew."""
        if len(self._texts) != self.lines:
            self._texts = [""] * self.lines
            self.dirty.update(range(self.lines))
        for row in self.dirty:
            if row < self.lines:
                self._texts[row] = "".join(self._cells(row)).rstrip()
        self.dirty.clear()
        return list(self._texts)

    def _cells(self, row: int) -> Iterator[str]:
        cells = self.buffer[row]
        column = 0
        while column < self.columns:
            text = cells[column].data
            yield text
            column += 1 if text.isascii() else max(1, wcwidth(text[0]))

    def write_process_input(self, data: str) -> None:
        if self.child is not None:
            self.child.send(data)


class Terminal:
    """The program on a screen."""

    def __init__(
        self,
        args: Sequence[str],
        env: dict[str, str],
        columns: int = 100,
        rows: int = 30,
        program: Sequence[str] = tuple(PROGRAM),
    ) -> None:
        self.screen = _Screen(columns, rows)
        self._stream = pyte.Stream(self.screen)
        self.raw = ""
        self.child = _Child([*program, *args], env, (rows, columns))
        self.screen.child = self.child

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.child.close()

    def read(self, seconds: float) -> None:
        """Read what the program writes within so many seconds."""
        try:
            data = self.child.read_nonblocking(65536, seconds)
        except pexpect.TIMEOUT:
            return
        self.raw += data
        self._stream.feed(data)

    @property
    def lines(self) -> list[str]:
        """The lines of the screen, without blanks at their ends."""
        return self.screen.texts()

    def until(self, check: Callable[[list[str]], bool]) -> list[str]:
        """Read until `check` is true for the lines of the screen."""
        deadline = time.monotonic() + WAIT_LIMIT
        while not check(self.lines):
            assert time.monotonic() < deadline, "\n".join(self.lines)
            self.read(0.1)
        return self.lines

    def sees(self, pattern: str) -> list[str]:
        """Read until some line on the screen matches."""
        return self.until(lambda lines: any(re.search(pattern, line) for line in lines))

    def ready(self) -> list[str]:
        """Read until the program waits for a line: an empty prompt where the cursor is."""
        return self.until(lambda _: self._waiting())

    def _waiting(self) -> bool:
        return self.lines[self.screen.cursor.y] == "qmf>" and self.screen.cursor.x == 5

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size."""
        self.screen.resize(rows, columns)
        termios.tcsetwinsize(self.child.child_fd, (rows, columns))

    def enter(self, line: str) -> None:
        """Type a line; at an empty prompt its echo comes before Return, so that `ready` means the prompt after it."""
        self.child.send(line)
        if line and self._waiting():
            self.until(lambda _: not self._waiting())
        self.child.send("\r")

    def leave(self) -> None:
        """Leave the shell by Ctrl-D; its exit code must be 0."""
        self.child.send("\x04")
        assert self.end() == 0

    def end(self) -> int:
        """Read to the end; the exit code."""
        deadline = time.monotonic() + WAIT_LIMIT
        while time.monotonic() < deadline:
            try:
                self.read(0.2)
            except pexpect.EOF:
                break
        self.child.close()
        assert "Traceback" not in self.raw
        status = self.child.exitstatus
        assert isinstance(status, int)
        return status


def run(
    home: Path,
    *args: str,
    stdin: str | None = None,
    env: dict[str, str] | None = None,
    program: Sequence[str] = tuple(PROGRAM),
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, without a terminal."""
    done = processes.run([*program, *args], stdin=stdin, env=environment(home, **(env or {})))
    assert "Traceback" not in done.stdout + done.stderr
    return done
