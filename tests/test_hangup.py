"""SIGHUP: a program whose terminal is closed ends; others read their files again."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Iterator

import pytest

from qmf._hangup import hangup_handler


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.FileIO]:
    """The standard input of the program: a terminal, whose end is not ignored, as nohup has it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    outer, inner = os.openpty()
    with io.FileIO(outer), io.FileIO(inner) as made:
        monkeypatch.setattr("sys.stdin", made)
        yield made
    signal.signal(signal.SIGHUP, before)


def handled() -> tuple[list[str], object]:
    """What happens, and the handler."""
    done: list[str] = []
    return done, hangup_handler(lambda: done.append("read again"), lambda: done.append("end"))


def test_a_program_on_a_terminal_ends_when_that_is_closed(terminal: io.FileIO) -> None:
    done, handle = handled()
    assert callable(handle)
    handle()
    terminal.close()
    handle()
    assert done == ["read again", "end"]


def test_a_program_that_ignores_the_end_of_its_terminal_goes_on(terminal: io.FileIO) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as by nohup
    try:
        done, handle = handled()
    finally:
        signal.signal(signal.SIGHUP, before)
    assert callable(handle)
    terminal.close()
    handle()
    assert done == ["read again"]


@pytest.mark.parametrize("stdin", [None, io.StringIO()])
def test_a_service_reads_its_files_again(monkeypatch: pytest.MonkeyPatch, stdin: io.StringIO | None) -> None:
    monkeypatch.setattr("sys.stdin", stdin)
    done, handle = handled()
    assert callable(handle)
    handle()
    assert done == ["read again"]
