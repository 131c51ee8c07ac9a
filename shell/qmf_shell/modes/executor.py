"""Runs one line, from text to output: the same for the prompt, for -c and for a pipe.

All errors become one line on stderr here.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Mapping

from qmf.errors import QmfError
from qmf_shell.commands.help import explain
from qmf_shell.parsing.binding import bind
from qmf_shell.parsing.words import is_comment, split_line, split_partial
from qmf_shell.render.screen import Screen
from qmf_shell.results.result import QuitRequest, Result
from qmf_shell.session.context import Context

logger = logging.getLogger("qmf.shell")


class LineOutcome(enum.Enum):
    """How a line ended."""

    DONE = "done"
    FAILED = "failed"
    QUIT = "quit"


def expand(line: str, aliases: Mapping[str, str]) -> str:
    """Replace the first word of a line if it is an alias. Aliases in the text of aliases are not replaced."""
    if not aliases or is_comment(line):
        return line
    word = split_partial(line).before or split_line(line)
    first = word[0]
    text = aliases.get(first.text) if first.plain else None
    return line if text is None else text + line[first.end :]


def evaluate(line: str, context: Context) -> Result | None:
    """The result of a line; None for comments and blank lines.

    Raises:
        QmfError: the line is wrong, or the bus failed.
    """
    if is_comment(line):
        return None
    line = expand(line, context.settings.aliases)
    first, *rest = split_line(line)
    command = context.registry.find(first.text)
    if rest and rest[0].text == "--help" and rest[0].plain:
        return explain(command)
    return command.handler(context, bind(command, rest, line))


def execute(line: str, context: Context, screen: Screen, *, where: str = "") -> LineOutcome:
    """Run a line and print its result, or its error in one line.

    Args:
        line: what the user wrote.
        context: the session.
        screen: prints the result.
        where: the beginning of error messages, e.g. ``line 3: ``.

    Raises:
        KeyboardInterrupt: Ctrl-C while a command ran; its request is cancelled.
        OSError: the output cannot be written; `BrokenPipeError` if its reader has ended.
    """
    context.warnings.clear()
    try:
        if not is_comment(line):
            screen.line(line)
        with screen.progress.busy():
            result = evaluate(line, context)
        if result is None:
            return LineOutcome.DONE
        screen.show(result)
        for warning in context.warnings:
            screen.error(f"{where}{warning}")
    except QmfError as error:
        screen.error(f"{where}{error}")
        return LineOutcome.FAILED
    except OSError:
        # Errors of the bus are `QmfError`: this is our own output.
        raise
    except Exception as error:
        # A bug must not end the user's session; --verbose shows where it is.
        logger.debug("internal error in %r", line, exc_info=True)
        screen.error(f"{where}internal error: {type(error).__name__}: {error} (--verbose shows details)")
        return LineOutcome.FAILED
    if isinstance(result, QuitRequest):
        return LineOutcome.QUIT
    return LineOutcome.FAILED if context.warnings else LineOutcome.DONE
