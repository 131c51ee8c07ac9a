"""What could stand at the cursor: a pure function from the text of a line to a kind of suggestion.

Knows commands, but no class, object or agent: names are `suggestions`' concern.
"""

from __future__ import annotations

import attrs

from qmf_shell.arguments import named
from qmf_shell.binding import looks_like_option
from qmf_shell.parsing import Open, Word, is_comment, split_typed
from qmf_shell.registry import Command, Parameter, Registry, Takes


@attrs.frozen
class Nothing:
    """There is nothing to suggest."""


@attrs.frozen
class CommandNames:
    """The name of a command."""


@attrs.frozen
class OptionNames:
    """An option of `command`."""

    command: Command


@attrs.frozen
class ClassNames:
    """A class: of objects, of events, or of both."""

    objects: bool
    events: bool


@attrs.frozen
class ObjectNames:
    """An object; of the class that the user called `of_class`, or of any."""

    of_class: str | None


@attrs.frozen
class MethodNames:
    """A method of the object that the user called `target`."""

    target: str


@attrs.frozen
class ArgumentNames:
    """The next argument of a method.

    Attributes:
        target, method: as the user wrote them.
        used: names that have a value already.
        position: how many arguments were given without a name.
    """

    target: str
    method: str
    used: tuple[str, ...]
    position: int


@attrs.frozen
class ArgumentValue:
    """The value of the argument `name`; the word's front, ``name=``, is not part of what is completed."""

    target: str
    method: str
    name: str


Wanted = Nothing | CommandNames | OptionNames | ClassNames | ObjectNames | MethodNames | ArgumentNames | ArgumentValue


@attrs.frozen
class Question:
    """What to suggest.

    Attributes:
        wanted: the kind of thing.
        prefix: its front as typed so far, without quotes.
        start: where the completed text begins in the line: it replaces everything from there to the cursor.
    """

    wanted: Wanted
    prefix: str = ""
    start: int = 0


def analyse(text: str, registry: Registry) -> Question:
    """What could stand at the end of `text`, the line up to the cursor. Never fails."""
    if is_comment(text) and text.strip():
        return Question(Nothing())
    typed = split_typed(text)
    word = typed.word
    if typed.open in (Open.JSON, Open.ESCAPE):
        return Question(Nothing())
    if not typed.before:
        return Question(CommandNames(), word.text, word.start)
    command = registry.get(typed.before[0].text)
    if command is None:
        return Question(Nothing())
    if looks_like_option(command, word) or (command.options and word.text == "-" and word.plain):
        return Question(OptionNames(command), word.text, word.start)
    given = _positional(command, typed.before[1:])
    if given is None:
        return Question(Nothing())
    return _argument(command, given, word)


def _positional(command: Command, words: tuple[Word, ...]) -> list[Word] | None:
    """The words before the cursor that are no options; None when the cursor is at an option's value."""
    found: list[Word] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not looks_like_option(command, word):
            found.append(word)
            continue
        name, equals, _ = word.text.partition("=")
        option = command.option(name)
        if option is not None and option.value is not None and not equals:
            if not rest:
                return None
            rest.pop(0)
    return found


def _argument(command: Command, given: list[Word], word: Word) -> Question:
    parameter = _parameter_at(command, len(given))
    if parameter is None:
        return Question(Nothing())
    at_word = (word.text, word.start)
    match parameter.takes:
        case Takes.COMMAND:
            return Question(CommandNames(), *at_word)
        case Takes.CLASS:
            return Question(ClassNames(objects=True, events=False), *at_word)
        case Takes.ANY_CLASS:
            return Question(ClassNames(objects=True, events=True), *at_word)
        case Takes.EVENT_CLASS:
            return Question(ClassNames(objects=False, events=True), *at_word)
        case Takes.OBJECT:
            return Question(ObjectNames(_given_for(command, given, Takes.CLASS)), *at_word)
        case Takes.METHOD:
            return Question(MethodNames(_given_for(command, given, Takes.OBJECT) or ""), *at_word)
        case Takes.VALUES:
            return _value(command, given, word)
        case _:
            return Question(Nothing())


def _parameter_at(command: Command, number: int) -> Parameter | None:
    if number < len(command.parameters):
        return command.parameters[number]
    last = command.parameters[-1] if command.parameters else None
    return last if last is not None and last.many else None


def _given_for(command: Command, given: list[Word], takes: Takes) -> str | None:
    """What was given for the first parameter of a kind, or None."""
    for parameter, word in zip(command.parameters, given, strict=False):
        if parameter.takes is takes:
            return word.text
    return None


def _value(command: Command, given: list[Word], word: Word) -> Question:
    target = _given_for(command, given, Takes.OBJECT) or ""
    method = _given_for(command, given, Takes.METHOD) or ""
    name = named(word)
    if name is not None:
        value = word.text[len(name) + 1 :]
        return Question(ArgumentValue(target, method, name), value, word.start + len(name) + 1)
    before = given[len(command.parameters) - 1 :]
    used = tuple(name for item in before if (name := named(item)) is not None)
    return Question(ArgumentNames(target, method, used, len(before) - len(used)), word.text, word.start)
