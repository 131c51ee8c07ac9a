"""Real processes for tests: started with a line to wait for, ended by their own id, their output in every failure.

Commands of this project are forks of a process that has loaded their modules: see `support.forks`.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from support.forks import ForkedCommand, script_of
from support.waiting import WAIT_LIMIT


def command(name: str) -> str:
    """Path of an entry point of this project, in the environment that runs the tests."""
    path = Path(sys.executable).parent / name
    assert path.exists(), f"{path} is missing: install the project into this environment (make setup)"
    return str(path)


class Process:
    """A running program whose lines can be waited for."""

    def __init__(self, *args: str, env: dict[str, str] | None = None, stdin: int = subprocess.DEVNULL) -> None:
        self.args = args
        script = script_of(args)
        self.popen: subprocess.Popen[str] | ForkedCommand = (
            subprocess.Popen(args, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
            if script is None
            else ForkedCommand(*script, os.environ if env is None else env, stdin=stdin)
        )
        self.lines: list[str] = []
        self._new: queue.Queue[str | None] = queue.Queue()
        assert self.popen.stdout is not None
        assert self.popen.stderr is not None
        self._readers = [
            threading.Thread(target=self._read, args=(stream,), daemon=True)
            for stream in (self.popen.stdout, self.popen.stderr)
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self._new.put(line.rstrip("\n"))
        self._new.put(None)

    def wait_for(self, text: str) -> str:
        """The first line from now on that holds `text`, on either output."""
        deadline = time.monotonic() + WAIT_LIMIT
        ended = 0
        while (left := deadline - time.monotonic()) > 0:
            try:
                line = self._new.get(timeout=left)
            except queue.Empty:
                break
            if line is None:
                ended += 1
                if ended == len(self._readers):
                    break
                continue
            self.lines.append(line)
            if text in line:
                return line
        raise AssertionError(f"{self.args}: no line with {text!r}; it said {self.lines}")

    def write(self, line: str) -> None:
        """Write a line to the program's input, which has to be a pipe."""
        assert self.popen.stdin is not None
        self.popen.stdin.write(f"{line}\n")
        self.popen.stdin.flush()

    def said(self) -> list[str]:
        """All lines so far, on both outputs."""
        with contextlib.suppress(queue.Empty):
            while True:
                if (line := self._new.get_nowait()) is not None:
                    self.lines.append(line)
        return self.lines

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal if it still runs; its exit code."""
        if self.popen.poll() is None:
            self.popen.send_signal(number)
        try:
            code = self.popen.wait(WAIT_LIMIT)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
            raise AssertionError(f"{self.args} did not end on signal {number}; it said {self.lines}") from None
        for reader in self._readers:
            reader.join(WAIT_LIMIT)
        for stream in (self.popen.stdout, self.popen.stderr):
            assert stream is not None
            stream.close()
        if self.popen.stdin is not None:
            self.popen.stdin.close()
        return code


@contextmanager
def running(*args: str) -> Iterator[Process]:
    """A program that is ended with the block."""
    process = Process(*args)
    try:
        yield process
    finally:
        process.end()


def run(
    args: Sequence[str], *, stdin: str | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """A program that ends by itself."""
    if (script := script_of(args)) is not None:
        wanted = subprocess.DEVNULL if stdin is None else subprocess.PIPE
        forked = ForkedCommand(*script, os.environ if env is None else env, stdin=wanted)
        out, errors = forked.communicate(stdin, WAIT_LIMIT * 2)
        return subprocess.CompletedProcess(args, forked.wait(), out, errors)
    return subprocess.run(
        args,
        input=stdin,
        stdin=None if stdin is not None else subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_LIMIT * 2,
        check=False,
        env=env,
    )
