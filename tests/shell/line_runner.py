"""Runs lines as the shell does, and collects what they print."""

from __future__ import annotations

from qmf_shell.modes.executor import LineOutcome, evaluate, execute
from qmf_shell.render.styles import OutputStyle
from qmf_shell.results.result import LiveScreen, LiveView, Result, Table
from qmf_shell.session.context import Context
from shell.fakes import Output, make_output


def run(context: Context, *lines: str, style: OutputStyle = OutputStyle.PLAIN) -> Output:
    """Run lines, which must succeed; the output of the last one."""
    output = make_output(style)
    for line in lines:
        output = make_output(style)
        context.settings = output.screen.settings
        assert execute(line, context, output.screen) is LineOutcome.DONE, output.errors
    return output


def printed(context: Context, *lines: str) -> list[str]:
    """Run lines, which must succeed without a warning; the lines that the last one prints."""
    output = run(context, *lines)
    assert output.errors == []
    return output.lines


def rows(lines: list[str]) -> list[str]:
    """The lines of a table below its headings."""
    return lines[next(number for number, line in enumerate(lines) if "====" in line) + 1 :]


def failure(context: Context, *lines: str) -> str:
    """Run lines of which only the last one fails; the one line of its error."""
    run(context, *lines[:-1])
    output = make_output()
    context.settings = output.screen.settings
    assert execute(lines[-1], context, output.screen) is LineOutcome.FAILED
    assert output.lines == []
    (error,) = output.errors
    return error


def view_of(context: Context, line: str) -> LiveView:
    """The view that a line returns, as it is without a terminal."""
    view = evaluate(line, context)
    view = view.lines if isinstance(view, LiveScreen) else view
    assert isinstance(view, LiveView)
    return view


def table(result: Result) -> Table:
    """A result that is a table."""
    assert isinstance(result, Table)
    return result
