"""Whether keys are shown while a command runs, and while a program uses the terminal."""

from __future__ import annotations

import io
import os
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from qmf_shell.modes.output_target import ProgramOutput, terminal_echo


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A terminal as stdin."""
    main, end = os.openpty()
    with os.fdopen(end, "r") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        yield end
    os.close(main)


def echoes(fd: int) -> bool:
    return bool(termios.tcgetattr(fd)[3] & termios.ECHO)


def test_keys_are_not_shown_while_a_command_runs_except_to_its_programs(keyboard: int) -> None:
    assert echoes(keyboard)
    with terminal_echo(False):
        assert not echoes(keyboard)
        with terminal_echo(True):
            assert echoes(keyboard)
        assert not echoes(keyboard)
    assert echoes(keyboard)


def test_a_program_finds_the_terminal_as_usual_until_it_ends(keyboard: int, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with terminal_echo(False):
        output = ProgramOutput(f"cat > /dev/null; stty -a < {os.ttyname(keyboard)} > {state}")
        output.write("text")
        assert output.finish() == 0
        assert not echoes(keyboard)
    assert " echo " in state.read_text()


def test_it_is_restored_after_an_error(keyboard: int) -> None:
    with pytest.raises(KeyboardInterrupt), terminal_echo(False):
        raise KeyboardInterrupt
    assert echoes(keyboard)


@pytest.mark.parametrize("stdin", [None, io.StringIO()])
def test_without_a_terminal_nothing_happens(monkeypatch: pytest.MonkeyPatch, stdin: io.StringIO | None) -> None:
    monkeypatch.setattr("sys.stdin", stdin)
    with terminal_echo(False):
        assert sys.stdin is stdin
