"""Runs commands one after the other: from -c, from files, from a pipe."""

from __future__ import annotations

from collections.abc import Iterable

from qmf_shell.exit_codes import FAILED, INTERRUPTED, OK
from qmf_shell.modes.executor import LineOutcome, outcomes
from qmf_shell.modes.screen import Screen
from qmf_shell.session.context import Context

Step = tuple[str, str]
"""A line, and the beginning of its error messages."""


def number_lines(lines: Iterable[str], name: str = "") -> Iterable[Step]:
    """Lines with their line numbers for error messages, after the name of their file if there is one."""
    file = f"{name}, " if name else ""
    return ((line, f"{file}line {number}: ") for number, line in enumerate(lines, 1))


def run(steps: Iterable[Step], context: Context, screen: Screen, *, stop: bool = False) -> int:
    """Run all lines, even after one has failed; `quit` and Ctrl-C end it.

    Args:
        steps: commands and comments.
        stop: end after the first command that fails.

    Returns:
        exit code: 0, or 1 if a command failed, or 130 after Ctrl-C.
    """
    failed = False
    try:
        for line, where in steps:
            for outcome in outcomes(line.strip("\r\n"), context, screen, where=where):
                failed |= outcome is LineOutcome.FAILED
                if screen.interrupted:
                    return INTERRUPTED
                if outcome is LineOutcome.QUIT or (failed and stop):
                    return FAILED if failed else OK
    except KeyboardInterrupt:
        return INTERRUPTED
    return FAILED if failed else OK
