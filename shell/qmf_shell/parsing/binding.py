"""Checks words against what a command takes: separates options from arguments, and counts the arguments."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from qmf.views.conditions.words import Word
from qmf.views.text import listing
from qmf_shell.parsing.command import AnyCommand, BoundArguments

_NUMBER = re.compile(r"-\.?\d.*")


def looks_like_option(command: AnyCommand, word: Word) -> bool:
    """True when `command` must read `word` as an option: it begins with an unquoted dash and is not a number.

    A command without options takes every word as an argument.
    """
    return (
        bool(command.options)
        and word.plain > 0
        and len(word.text) > 1
        and word.text.startswith("-")
        and not _NUMBER.fullmatch(word.text)
    )


def bind(command: AnyCommand, words: Sequence[Word], line: str = "") -> BoundArguments:
    """Check the words after a command's name.

    ``--`` ends the options. The value of an option is the next word, or follows ``=``.

    Args:
        words: the words after its name.
        line: the line that holds them.

    Raises:
        UsageError: an unknown option, an option without its value or with one that it does not take, too many or too
            few arguments.
    """
    found: list[Word] = []
    options: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if command.options and word.text == "--" and word.plain:
            found += rest
            break
        if command.options_first and found:
            found.append(word)
        elif looks_like_option(command, word):
            _bind_option(command, word, rest, options, condition=any(item.text.lower() == "where" for item in found))
        else:
            found.append(word)
    _check_count(command, found)
    return BoundArguments(tuple(found), options, line)


def _bind_option(
    command: AnyCommand, word: Word, rest: list[Word], options: dict[str, str], *, condition: bool
) -> None:
    name, equals, value = word.text.partition("=")
    option = command.option(name)
    if option is None:
        known = [name for item in command.options for name in item.names]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; it takes {listing(known)}"
        hint += f"; in a condition, write not {name.lstrip('-')}" if condition else ""
        raise command.misuse(f"no option {name}{hint}", None)
    if option.value is None:
        if equals:
            raise command.misuse(f"option {name} takes no value", None)
    elif not equals:
        if not rest:
            raise command.misuse(f"option {name} needs {option.value}", None)
        value = rest.pop(0).text
    options[option.key] = value


def _check_count(command: AnyCommand, words: Sequence[Word]) -> None:
    required = [item for item in command.parameters if item.required]
    if len(words) < len(required):
        missing = [item.name for item in required[len(words) :]]
        raise command.misuse(f"{listing(missing, 'and')} {'is' if len(missing) == 1 else 'are'} missing", None)
    if any(item.repeated for item in command.parameters):
        return
    if len(words) > len(command.parameters):
        extra = words[len(command.parameters)].text
        raise command.misuse(f"{extra!r} is one argument too many", None)
