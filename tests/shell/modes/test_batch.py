"""Commands from -c and from a pipe."""

from __future__ import annotations

import pytest
from qmf_shell.modes import batch
from qmf_shell.session.context import Context
from shell.fakes import FakeBackend, Output


def plain(*lines: str) -> list[batch.Step]:
    return [(line, "") for line in lines]


def test_all_fine(context: Context, output: Output) -> None:
    assert batch.run(plain("list filesystem\n", "# comment\n", "\n", "show 101\n"), context, output.screen) == 0
    assert "org.example:filesystem /" in output.lines
    assert output.errors == []


def test_goes_on_after_a_failure_and_exits_with_1(context: Context, output: Output) -> None:
    assert batch.run(batch.number_lines(["frobnicate", "agents"]), context, output.screen) == 1
    assert output.lines[0] == "2 agents"
    assert output.errors == ["error: line 1: no command 'frobnicate'; `help` lists them"]


def test_quit_ends_it(context: Context, output: Output) -> None:
    assert batch.run(plain("quit", "nosuch"), context, output.screen) == 0
    assert output.lines + output.errors == []


def test_ctrl_c_ends_it(context: Context, backend: FakeBackend, output: Output) -> None:
    backend.error = KeyboardInterrupt()
    assert batch.run(plain("list", "agents"), context, output.screen) == 130
    assert output.lines == []


def test_ctrl_c_in_a_view_ends_it(context: Context, output: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("qmf_shell.modes.screen.time.sleep", stopped)
    assert batch.run(plain("watch filesystem", "agents"), context, output.screen) == 130
    assert "org.example:filesystem, 2 objects" in output.lines
    assert "2 agents" not in output.lines


def test_a_broken_pipe_is_for_the_caller(context: Context, backend: FakeBackend, output: Output) -> None:
    backend.error = BrokenPipeError()
    with pytest.raises(BrokenPipeError):
        batch.run(plain("list"), context, output.screen)


def test_stops_at_the_first_failure_where_asked_to(context: Context, output: Output) -> None:
    steps = batch.number_lines(["agents", "nosuch", "list"], "night.qmf")
    assert batch.run(steps, context, output.screen, stop=True) == 1
    assert output.errors == ["error: night.qmf, line 2: no command 'nosuch'; `help` lists them"]
    assert not any("Objects by class" in line for line in output.lines)
