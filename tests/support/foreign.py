"""AMQP clients of others as programs that tests talk to: one process for many uses.

Such a program reads lines: the name of a use, the URL of a broker and arguments, separated by tabs. It prints what it
observes, and then "== done" or "== failed REASON". A use that waits for the test prints "== pause WHY", and goes on
when it reads another line.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import pytest
from support.waiting import WAIT_LIMIT

#: Seconds without a line after which a program counts as stuck. Its own patience is WAIT_LIMIT.
LIMIT = 2 * WAIT_LIMIT


def required(name: str) -> str:
    """What QMF_TEST_<NAME> says; the test is skipped if it says nothing."""
    variable = f"QMF_TEST_{name.upper()}"
    if not (value := os.environ.get(variable)):
        pytest.skip(os.environ.get(f"{variable}_MISSING") or f"{variable} names no client (make foreign)")
    return value


class ForeignProgram:
    """A running program of that kind, ended with the block."""

    def __init__(self, args: Sequence[str], env: dict[str, str] | None = None) -> None:
        self._args = args
        self._env = env

    def __enter__(self) -> Self:
        self._start()
        return self

    def _start(self) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `_end`
        self._process = subprocess.Popen(
            self._args,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
            env=self._env,
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, args=(self._process, self._lines), daemon=True)
        self._reader.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(WAIT_LIMIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(WAIT_LIMIT)
        self._process.stdout.close()
        self._errors.close()

    def __call__(self, use: str, url: str, *arguments: str) -> list[str]:
        """What a use observes, from its beginning to its end."""
        self.begin(use, url, *arguments)
        return self.finish()

    def begin(self, use: str, url: str, *arguments: str) -> None:
        """Start a use that pauses."""
        if self._process.poll() is not None:  # it was stuck in another test
            self._end()
            self._start()
        self._write("\t".join([use, url, *arguments]))

    def paused(self) -> list[str]:
        """What a use has observed when it pauses."""
        return self._until("== pause")

    def finish(self) -> list[str]:
        """What it observes until its end."""
        return self._until("== done")

    def go_on(self) -> list[str]:
        """End a pause: what is observed until the end."""
        self._write("")
        return self.finish()

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    @staticmethod
    def _read(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line.rstrip("\n"))
        lines.put(None)

    def _until(self, end: str) -> list[str]:
        """The lines before one that begins with `end`; any other ending is an error."""
        lines: list[str] = []
        deadline = time.monotonic() + LIMIT
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                self._process.kill()  # the next test would get what belongs to this one
                self._process.wait()
                raise AssertionError(f"stuck after {lines}: {self._said()}") from None
            if line is None or (line.startswith("== ") and not line.startswith(end)):
                raise AssertionError(f"{line or 'ended'} after {lines}: {self._said()}")
            if line.startswith(end):
                return lines
            lines.append(line)

    def _said(self) -> str:
        """What was written to standard error."""
        self._errors.seek(0)
        return self._errors.read()[-2000:]
