"""Commands one after the other: from -c, from files, from a pipe."""

from __future__ import annotations

from collections.abc import Iterable

from qmf_shell.exit_codes import FAILED, INTERRUPTED, OK
from qmf_shell.modes.executor import Outcome, execute
from qmf_shell.render.screen import Screen
from qmf_shell.session.context import Context

Step = tuple[str, str]
"""A line, and what is put in front of its errors."""


def numbered(lines: Iterable[str], name: str = "") -> Iterable[Step]:
    """Lines with their numbers as places, after the name of their file if there is one."""
    front = f"{name}, " if name else ""
    return ((line, f"{front}line {number}: ") for number, line in enumerate(lines, 1))


def run(steps: Iterable[Step], context: Context, screen: Screen, *, stop: bool = False) -> int:
    """Run every line, also after one has failed; `quit` and Ctrl-C end it.

    Args:
        steps: commands and comments with their places.
        context: the session.
        screen: where to print.
        stop: end after the first that fails.

    Returns:
        exit code: 0, 1 when any command failed, 130 after Ctrl-C.
    """
    failed = False
    try:
        for line, where in steps:
            outcome = execute(line.strip("\r\n"), context, screen, where=where)
            failed |= outcome is Outcome.FAILED
            if screen.interrupted:
                return INTERRUPTED
            if outcome is Outcome.QUIT or (failed and stop):
                break
    except KeyboardInterrupt:
        return INTERRUPTED
    return FAILED if failed else OK
