"""Commands one after the other, from -c or from a pipe."""

from __future__ import annotations

from collections.abc import Iterable

from qmf_shell.execute import Outcome, execute
from qmf_shell.exits import FAILED, FINE, INTERRUPTED
from qmf_shell.render.screen import Screen
from qmf_shell.session.context import Context


def run(lines: Iterable[str], context: Context, screen: Screen, *, numbered: bool = False) -> int:
    """Run every line, also after one has failed; `quit` ends it.

    Args:
        lines: commands and comments.
        context: the session.
        screen: where to print.
        numbered: name the line in errors.

    Returns:
        exit code: 0, 1 when any command failed, 130 after Ctrl-C.
    """
    failed = False
    try:
        for number, line in enumerate(lines, 1):
            outcome = execute(line.strip("\n"), context, screen, where=f"line {number}: " if numbered else "")
            failed |= outcome is Outcome.FAILED
            if outcome is Outcome.QUIT:
                break
    except KeyboardInterrupt:
        return INTERRUPTED
    return FAILED if failed else FINE
