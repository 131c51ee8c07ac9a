"""`help`, `quit`, `clear`, and the help of each command."""

from __future__ import annotations

import pytest
from qmf_shell.commands import standard
from qmf_shell.modes.executor import LineOutcome, evaluate, execute
from qmf_shell.parsing.binding import bind
from qmf_shell.parsing.command import AnyCommand
from qmf_shell.results.result import ClearRequest
from qmf_shell.session.context import Context
from shell.fakes import (
    FakeBackend,
    Output,
)
from shell.line_runner import printed, run

from qmf.views.conditions.words import split_line


def test_help_names_every_command(context: Context) -> None:
    lines = printed(context, "help")
    for command in context.registry:
        assert any(line.split()[0] == command.name for line in lines[3:-1]), command.name


def test_help_of_each_command(context: Context) -> None:
    for command in context.registry:
        lines = printed(context, f"help {command.name}")
        assert lines[0] == f"Usage: {command.usage[0]}"
        for example, _ in command.examples:
            assert any(example in line for line in lines)


def test_examples_of_help_can_be_parsed(context: Context) -> None:
    for command in context.registry:
        for example, _ in command.examples:
            name, *rest = split_line(example)
            assert context.registry.find(name.text) is command
            bind(command, rest)


def test_quit(context: Context, output: Output) -> None:
    assert execute("quit", context, output.screen) is LineOutcome.QUIT
    assert execute("EXIT", context, output.screen) is LineOutcome.QUIT


def test_clear(context: Context) -> None:
    assert evaluate("clear", context) == ClearRequest()


@pytest.mark.parametrize("command", list(standard()), ids=lambda command: command.name)
def test_help_of_a_command(context: Context, command: AnyCommand) -> None:
    lines = run(context, f"{command.name} --help").lines
    assert run(context, f"help {command.name}").lines == lines
    assert lines[0].startswith("Usage: ")
    assert all(any(line in shown for shown in lines) for line, _ in command.examples)
    assert command.examples or not command.parameters


def test_help_is_an_argument_elsewhere(context: Context, backend: FakeBackend) -> None:
    printed(context, "call / echo 7 --help")
    assert backend.calls[-1][2] == {"sequence": 7, "body": "--help"}
