"""Runs the real programs: in a pseudo-terminal with an emulated screen, or without a terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import pexpect
import pyte
from support import processes

WAIT_LIMIT = 30.0
PROGRAM = [processes.command("qmf-shell")]


def environment(home: Path, **more: str) -> dict[str, str]:
    """The environment of the tests, without variables that change the output."""
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    path = os.pathsep.join(entry for entry in sys.path if entry)
    folders = {"HOME": str(home), "XDG_STATE_HOME": str(home), "XDG_CONFIG_HOME": str(home), "PAGER": "cat"}
    return env | folders | {"TERM": "xterm-256color", "PYTHONPATH": path} | more


class _Screen(pyte.Screen):
    """A screen that answers requests for the position of the cursor."""

    child: pexpect.spawn[str] | None = None

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
        self.child = pexpect.spawn(
            program[0],
            [*program[1:], *args],
            env=env,
            dimensions=(rows, columns),
            timeout=WAIT_LIMIT,
            encoding="utf-8",
        )
        self.child.delaybeforesend = None
        self.screen.child = self.child

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.child.close(force=True)

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
        return [line.rstrip() for line in self.screen.display]

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
        self.child.setwinsize(rows, columns)

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
