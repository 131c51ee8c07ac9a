"""Runs what was typed, pasted or read, from text to output: the same for the prompt, for -c and for a pipe.

A text has one or several commands, see `parsing.statements`. All errors become one line on stderr here.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from qmf.errors import CallerError, NotFoundError, QmfError
from qmf.views.conditions.words import LineError, Word, is_comment, split_line, split_partial
from qmf_shell.commands.help import explain
from qmf_shell.modes.output_target import FileOutput, ProgramOutput
from qmf_shell.modes.screen import Screen
from qmf_shell.parsing.binding import bind
from qmf_shell.parsing.command import ALL, AnyCommand
from qmf_shell.parsing.statements import Statement, split_statements
from qmf_shell.results.result import QuitRequest, Result, ScriptRequest
from qmf_shell.session.context import Context

logger = logging.getLogger("qmf.shell")


#: How deep files with commands may run each other.
NESTED = 16
#: What every command understands besides its own options: the format of this one result.
FORMAT_OPTIONS = {f"--{name}": name for name in ("table", "json", "csv", "yaml")}
#: What agents have, by the kinds of `NotFoundError`.
_OF_AGENTS = ("class", "event class", "class or event class", "object", "agent")


class ScriptError(CallerError):
    """A file with commands cannot be read, or such files run each other without end."""


class LineOutcome(enum.Enum):
    """How a command ended."""

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
    """The result of a command; None for comments and blank lines.

    Raises:
        QmfError: the command is wrong, or the bus failed.
    """
    if is_comment(line):
        return None
    command, words, line = _parse(line, context)
    return _call(context, command, words, line)


def _parse(line: str, context: Context) -> tuple[AnyCommand, Sequence[Word], str]:
    """The command of a line, the words after it, and the line with its alias replaced."""
    line = expand(line, context.settings.aliases)
    first, *rest = split_line(line)
    return context.registry.find(first.text), rest, line


def _call(context: Context, command: AnyCommand, words: Sequence[Word], line: str) -> Result:
    if words and words[0].text == "--help" and words[0].plain:
        return explain(command)
    args = bind(command, words, line)
    if ALL in command.options and ALL.key in args.options:
        context = attrs.evolve(context, show_own=True)
    return command.handler(context, args)


def _without_format(command: AnyCommand, words: Sequence[Word]) -> tuple[list[Word], str | None]:
    """The words without an option such as ``--json``, and the format that it names."""
    found: str | None = None
    rest: list[Word] = []
    for at, word in enumerate(words):
        if word.text == "--" and word.plain:
            return [*rest, *words[at:]], found
        is_option = word.plain == len(word.text) and word.text in FORMAT_OPTIONS
        if is_option and not (command.options_first and rest):
            found = FORMAT_OPTIONS[word.text]
        else:
            rest.append(word)
    return rest, found


def execute(text: str, context: Context, screen: Screen, *, where: str = "") -> LineOutcome:
    """Run all commands of a text and print their results, and each error in one line.

    Args:
        where: the beginning of error messages, e.g. ``line 3: ``.

    Returns:
        QUIT if the user leaves; FAILED if a command failed.

    Raises:
        KeyboardInterrupt: Ctrl-C while a command ran; its request is cancelled.
        OSError: the output cannot be written; `BrokenPipeError` if its reader has ended.
    """
    found = LineOutcome.DONE
    for outcome in outcomes(text, context, screen, where=where):
        if outcome is LineOutcome.QUIT:
            return outcome
        found = outcome if outcome is LineOutcome.FAILED else found
    return found


def outcomes(text: str, context: Context, screen: Screen, *, where: str = "", depth: int = 0) -> Iterator[LineOutcome]:
    """Run the commands of a text, one whenever the next outcome is wanted; see `execute`.

    Ends after QUIT, and after a view that Ctrl-C ended. `depth` counts the files that run each other.
    """
    try:
        statements = split_statements(text)
    except QmfError as error:
        screen.line(text)
        screen.error(f"{where}{error}")
        yield LineOutcome.FAILED
        return
    for written in statements:
        for statement in _expand(written, context.settings.aliases):
            outcome, script = _run(statement, context, screen, where)
            if script is not None:
                yield from _script(script, context, screen, where, depth)
            yield outcome
            if outcome is LineOutcome.QUIT or screen.interrupted:
                return


def _expand(statement: Statement, aliases: Mapping[str, str]) -> Sequence[Statement]:
    """A command with its alias replaced: what that stands for may be several commands, or have a pipe."""
    try:
        longer = expand(statement.whole, aliases)
        return [statement] if longer == statement.whole else split_statements(longer)
    except LineError:
        return [statement]  # running it reports the error


def _script(path: Path, context: Context, screen: Screen, where: str, depth: int) -> Iterator[LineOutcome]:
    """Run the commands in a file."""
    try:
        if depth >= NESTED:
            raise ScriptError(f"{path} is not run: {NESTED} files run each other already")
        lines = read_script(path)
    except ScriptError as error:
        screen.error(f"{where}{error}")
        yield LineOutcome.FAILED
        return
    for number, line in enumerate(lines, 1):
        place = f"{path}, line {number}: "
        for outcome in outcomes(line, context, screen, where=place, depth=depth + 1):
            yield outcome
            if outcome is LineOutcome.QUIT or screen.interrupted:
                return


def read_script(path: Path) -> list[str]:
    """The lines of a file with commands.

    Raises:
        ScriptError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError as error:
        raise ScriptError(f"cannot read {path}: {error.strerror or error}") from None


def _run(statement: Statement, context: Context, screen: Screen, where: str) -> tuple[LineOutcome, Path | None]:
    """Run one command; the outcome, and the file with commands that it names."""
    context.warnings.clear()
    screen.interrupted = False
    screen.line(statement.whole)
    result: Result | None = None
    try:
        if statement.program:
            result, code = _run_piped(statement, context, screen)
            failed = code > 0
        elif statement.redirection is not None:
            result, failed = _run_redirected(statement, context, screen), False
        else:
            result, failed = _show(statement.command, context, screen), False
        for warning in context.warnings:
            screen.error(f"{where}{warning}")
    except QmfError as error:
        screen.error(f"{where}{_text_of(error, context)}")
        return LineOutcome.FAILED, None
    except OSError:
        # Errors of the bus are `QmfError`: this is our own output.
        raise
    except Exception as error:
        # A bug must not end the user's session; --verbose shows where it is.
        logger.debug("internal error in %r", statement.whole, exc_info=True)
        screen.error(f"{where}internal error: {type(error).__name__}: {error} (--verbose shows details)")
        return LineOutcome.FAILED, None
    if isinstance(result, QuitRequest):
        return LineOutcome.QUIT, None
    script = result.path if isinstance(result, ScriptRequest) else None
    return LineOutcome.FAILED if context.warnings or failed else LineOutcome.DONE, script


def _text_of(error: QmfError, context: Context) -> str:
    """An error in words. What is not there may be that of an agent that is not found yet."""
    if isinstance(error, NotFoundError) and error.kind in _OF_AGENTS and (finding := context.finding):
        return f"{error.kind} {error.name!r} is not known yet: {finding}"
    return str(error)


def _show(line: str, context: Context, screen: Screen) -> Result:
    command, words, line = _parse(line, context)
    words, output = _without_format(command, words)
    with screen.use_format(output):
        with screen.progress.busy():
            result = _call(context, command, words, line)
        screen.show(result)
    return result


def _run_piped(statement: Statement, context: Context, screen: Screen) -> tuple[Result | None, int]:
    """Run a command whose output a program reads; its result, and the exit code of the program."""
    output = ProgramOutput(statement.program)
    result: Result | None
    try:
        with screen.redirect(output):
            try:
                result = _show(statement.command, context, screen)
                output.start()
            except BrokenPipeError:
                # The program has read what it wants: that is normal, e.g. with `head`.
                result = None
    finally:
        code = output.finish()
    return result, code


def _run_redirected(statement: Statement, context: Context, screen: Screen) -> Result:
    """Run a command whose output goes to a file."""
    assert statement.redirection is not None
    output = FileOutput.open(statement.redirection)
    try:
        with screen.redirect(output):
            result = _show(statement.command, context, screen)
            output.start()
            output.flush()
    except OSError as error:
        raise output.error(error) from None
    finally:
        output.finish()
    return result
