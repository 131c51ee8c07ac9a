"""One line from text to output: the same for the prompt, for -c and for a pipe.

Everything that can go wrong ends here as one line on stderr.
"""

from __future__ import annotations

import enum
import logging

from qmf.errors import QmfError
from qmf_shell.binding import bind
from qmf_shell.parsing import is_comment, split
from qmf_shell.render.screen import Screen
from qmf_shell.results import Quit, Result
from qmf_shell.session.context import Context

logger = logging.getLogger("qmf.shell")


class Outcome(enum.Enum):
    """How a line ended."""

    DONE = "done"
    FAILED = "failed"
    QUIT = "quit"


def evaluate(line: str, context: Context) -> Result | None:
    """The result of a line; None for comments and blank lines.

    Raises:
        QmfError: everything that a user can do wrong, and everything that the bus can.
    """
    if is_comment(line):
        return None
    first, *rest = split(line)
    command = context.registry.find(first.text)
    return command.handler(context, bind(command, rest))


def execute(line: str, context: Context, screen: Screen, *, where: str = "") -> Outcome:
    """Run a line and print its result, or one line about why there is none.

    Args:
        line: what the user wrote.
        context: the session.
        screen: where to print.
        where: put in front of an error, e.g. ``line 3: ``.

    Raises:
        KeyboardInterrupt: Ctrl-C while a command ran; its request is cancelled.
        OSError: the output cannot be written; `BrokenPipeError` where nobody reads any more.
    """
    context.warnings.clear()
    try:
        result = evaluate(line, context)
        if result is None:
            return Outcome.DONE
        screen.show(result)
        for warning in context.warnings:
            screen.error(f"{where}{warning}")
    except QmfError as error:
        screen.error(f"{where}{error}")
        return Outcome.FAILED
    except OSError:
        # What goes wrong on the bus comes as a `QmfError`: this is our own output.
        raise
    except Exception as error:
        # A bug of ours must not end an operator's session; --verbose shows where it was.
        logger.debug("internal error in %r", line, exc_info=True)
        screen.error(f"{where}internal error: {type(error).__name__}: {error} (--verbose tells more)")
        return Outcome.FAILED
    if isinstance(result, Quit):
        return Outcome.QUIT
    return Outcome.FAILED if context.warnings else Outcome.DONE
