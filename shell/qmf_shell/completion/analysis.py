"""Finds out what may be at the cursor: a pure function from the text of a line to a kind of completion.

Knows commands, but no classes, objects or agents: their names are in `suggestions`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from qmf.views.conditions import ConditionError
from qmf.views.conditions.parser import parse_words
from qmf.views.conditions.tokens import tokenize
from qmf.views.conditions.words import Unclosed, Word, split_partial
from qmf_shell.completion.kinds import (
    AnyOf,
    ArgumentNames,
    ArgumentValue,
    ClassNames,
    CommandNames,
    CompletionKind,
    CompletionRequest,
    ContextNames,
    EventValueNames,
    FileNames,
    Keywords,
    MethodNames,
    NoCompletion,
    ObjectNames,
    OptionNames,
    OptionValue,
    SettableNames,
    SettableValue,
    SettingNames,
    SettingValue,
    ValueNames,
)
from qmf_shell.completion.selection_analysis import (
    SELECTION_WORDS,
    Expected,
    after_comma,
    analyse_condition,
    analyse_period,
    analyse_selection,
    analyse_time,
    expectation_after,
    split_times,
)
from qmf_shell.parsing.binding import looks_like_option
from qmf_shell.parsing.command import AnyCommand, Option, Parameter, ParameterKind
from qmf_shell.parsing.method_arguments import argument_name
from qmf_shell.parsing.registry import Registry
from qmf_shell.parsing.selection import keyword_of
from qmf_shell.parsing.statements import Place, cursor_statement
from qmf_shell.parsing.times import PERIOD_WORDS

_WHERE = (SELECTION_WORDS[0],)
_ALL = (("all", "all objects of the class"),)


def analyse(text: str, registry: Registry[Any], aliases: Mapping[str, str] | None = None) -> CompletionRequest:
    """What may be at the end of `text`, the line up to the cursor. Never fails.

    Args:
        text: the line.
        aliases: words, each with the text that it stands for.
    """
    found = cursor_statement(text)
    if found.place in (Place.COMMENT, Place.PROGRAM):
        return CompletionRequest(NoCompletion())
    text = text[found.start :]
    if found.place is Place.FILE:
        word = split_partial(text).word
        return CompletionRequest(FileNames(), word.text, found.start + word.start)
    text, shift = _expand_alias(text, aliases or {})
    request = _analyse(text, registry)
    return attrs.evolve(request, start=found.start + max(0, request.start - shift))


def _expand_alias(text: str, aliases: Mapping[str, str]) -> tuple[str, int]:
    """The line with its alias replaced, and how many characters longer it is."""
    if not aliases:
        return text, 0
    before = split_partial(text).before
    replacement = aliases.get(before[0].text) if before and before[0].plain else None
    if replacement is None:
        return text, 0
    longer = replacement + text[before[0].end :]
    return longer, len(longer) - len(text)


def _analyse(text: str, registry: Registry[Any]) -> CompletionRequest:
    typed = split_partial(text)
    word = typed.word
    if typed.unclosed in (Unclosed.JSON, Unclosed.ESCAPE):
        return CompletionRequest(NoCompletion())
    if not typed.before:
        return CompletionRequest(CommandNames(), word.text, word.start)
    command = registry.get(typed.before[0].text)
    if command is None:
        return CompletionRequest(NoCompletion())
    found = positional(command, typed.before[1:])
    if isinstance(found, Option):
        return CompletionRequest(OptionValue(found), word.text, word.start)
    times = [item for item in command.parameters if item.kind is ParameterKind.TIME]
    if times:
        return _after_times(command, len(times), found, word, text, registry)
    ended = command.options_first and bool(found)
    if not ended and (looks_like_option(command, word) or (command.options and word.text == "-" and word.plain)):
        return CompletionRequest(OptionNames(command), word.text, word.start)
    return _argument(command, found, word)


def _after_times(
    command: AnyCommand, count: int, args: list[Word], word: Word, text: str, registry: Registry[Any]
) -> CompletionRequest:
    """In a command that begins with times."""
    used = split_times(args, count)
    if used is None:
        return analyse_time(args, word)
    rest = args[used:]
    after = command.parameters[count]
    if after.kind is not ParameterKind.LINE:
        return _argument(attrs.evolve(command, parameters=command.parameters[count:]), rest, word)
    if not rest:
        names = ((name, found.summary) for name, _ in after.choices if (found := registry.get(name)) is not None)
        return CompletionRequest(Keywords(tuple(names)), word.text, word.start)
    if rest[0].text.lower() not in dict(after.choices):
        return CompletionRequest(NoCompletion(), word.text, word.start)
    begin = rest[0].start
    request = _analyse(text[begin:], registry)
    return attrs.evolve(request, start=request.start + begin)


def positional(command: AnyCommand, words: Sequence[Word]) -> list[Word] | Option:
    """The words before the cursor that are not options; or the option, if the cursor is at an option's value."""
    found: list[Word] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if (command.options_first and found) or not looks_like_option(command, word):
            found.append(word)
            continue
        name, equals, _ = word.text.partition("=")
        option = command.option(name)
        if option is not None and option.value is not None and not equals:
            if not rest:
                return option
            rest.pop(0)
    return found


#: Kinds of parameters whose completion does not depend on earlier arguments.
_INDEPENDENT: Mapping[ParameterKind, CompletionKind] = {
    ParameterKind.COMMAND: CommandNames(),
    ParameterKind.CLASS: ClassNames(objects=True, events=False),
    ParameterKind.ANY_CLASS: ClassNames(objects=True, events=True),
    ParameterKind.TARGET: AnyOf((ObjectNames(None), ClassNames(objects=True, events=False))),
    ParameterKind.CONTEXT: ContextNames(),
    ParameterKind.SETTING: SettingNames(),
    ParameterKind.FILE: FileNames(),
}


def _argument(command: AnyCommand, args: list[Word], word: Word) -> CompletionRequest:
    parameter = parameter_at(command, len(args))
    if parameter is None:
        return CompletionRequest(NoCompletion())
    at_word = (word.text, word.start)
    match parameter.kind:
        case ParameterKind.EVENT_CLASS:
            return _events(args, word)
        case ParameterKind.OBJECT:
            return CompletionRequest(ObjectNames(_argument_of(command, args, ParameterKind.CLASS)), *at_word)
        case ParameterKind.SELECTION:
            first = command.parameters.index(parameter)
            return analyse_selection(args[0].text, args[first:], word, command.name)
        case ParameterKind.CALL:
            return _call(args, word)
        case ParameterKind.STATISTICS:
            return _statistics(command, parameter, args, word)
        case ParameterKind.COLUMN:
            everything = () if len(args) > 1 else (Keywords((("all", "everything"),)),)
            return CompletionRequest(AnyOf((ValueNames(args[0].text), *everything)), *after_comma(word))
        case ParameterKind.SERIES:
            return analyse_period(args[1:], word, ValueNames(args[0].text))
        case ParameterKind.PERIOD:
            return analyse_period(args, word, NoCompletion(), (*PERIOD_WORDS, *parameter.choices))
        case ParameterKind.SETTABLE:
            return _settable(args, word)
        case ParameterKind.SETTING_VALUE:
            return CompletionRequest(SettingValue(args[0].text), *at_word)
        case ParameterKind.TEXT:
            return CompletionRequest(NoCompletion())
        case ParameterKind.CHOICE:
            return CompletionRequest(Keywords(parameter.choices), *at_word)
        case _:
            return CompletionRequest(_INDEPENDENT[parameter.kind], *at_word)


def parameter_at(command: AnyCommand, number: int) -> Parameter | None:
    """The parameter of the positional argument `number`, or None."""
    if number < len(command.parameters):
        return command.parameters[number]
    last = command.parameters[-1] if command.parameters else None
    return last if last is not None and last.repeated else None


def _argument_of(command: AnyCommand, args: list[Word], takes: ParameterKind) -> str | None:
    """The argument of the first parameter of a kind, or None."""
    for parameter, word in zip(command.parameters, args, strict=False):
        if parameter.kind is takes:
            return word.text
    return None


def _events(args: Sequence[Word], word: Word) -> CompletionRequest:
    if any(item.plain and item.text.lower() in ("from", "to") for item in args):
        return analyse_period(args, word, NoCompletion(), (*PERIOD_WORDS, *_WHERE))
    where = next((number for number, item in enumerate(args) if keyword_of(item) == "where"), None)
    if where is None:
        kinds: tuple[CompletionKind, ...] = (
            ClassNames(objects=False, events=True),
            Keywords((*_WHERE, *PERIOD_WORDS)),
        )
        return CompletionRequest(AnyOf(kinds), word.text, word.start)
    classes = tuple(item.text for item in args[:where])
    return analyse_condition(EventValueNames(classes), args[where + 1 :], word, ())


def _call(args: Sequence[Word], word: Word) -> CompletionRequest:
    """After the target of a call: a condition, a method, its inputs."""
    target = args[0].text
    rest = args[1:]
    at_word = (word.text, word.start)
    if not rest:
        return CompletionRequest(AnyOf((MethodNames(target), Keywords((*_WHERE, *_ALL)))), *at_word)
    if keyword_of(rest[0]) == "where":
        # The end of the condition is known only when the line is complete: until then both may follow.
        inside = rest[1:]
        at = _method_after(inside)
        if at is None:
            request = analyse_condition(ValueNames(target), inside, word, ())
            if expectation_after(tokenize(inside)) in (Expected.OPERATOR, Expected.CONNECTIVE):
                kinds = (
                    (request.kind, MethodNames(target)) if request.kind != NoCompletion() else (MethodNames(target),)
                )
                return attrs.evolve(request, kind=AnyOf(kinds))
            return request
        return _inputs(target, inside[at].text, inside[at + 1 :], word)
    if rest[0].text.lower() == "all" and rest[0].plain:
        if len(rest) == 1:
            return CompletionRequest(MethodNames(target), *at_word)
        return _inputs(target, rest[1].text, rest[2:], word)
    return _inputs(target, rest[0].text, rest[1:], word)


def _method_after(inside: Sequence[Word]) -> int | None:
    """The number of the word that follows a condition, or None."""
    try:
        _, used = parse_words(inside, alone=False)
    except ConditionError:
        return None
    return used if used < len(inside) else None


def _inputs(target: str, method: str, before: Sequence[Word], word: Word) -> CompletionRequest:
    name = argument_name(word)
    if name is not None:
        value = word.text[len(name) + 1 :]
        return CompletionRequest(ArgumentValue(target, method, name), value, word.start + len(name) + 1)
    used = tuple(name for item in before if (name := argument_name(item)) is not None)
    return CompletionRequest(ArgumentNames(target, method, used, len(before) - len(used)), word.text, word.start)


def _statistics(command: AnyCommand, parameter: Parameter, args: Sequence[Word], word: Word) -> CompletionRequest:
    target = args[0].text
    at_word = (word.text, word.start)
    names: CompletionKind = ValueNames(target, numbers=True)
    if parameter.choices and len(args) == command.parameters.index(parameter):
        return CompletionRequest(AnyOf((Keywords(parameter.choices), names)), *at_word)
    return CompletionRequest(names, *at_word)


def _settable(args: Sequence[Word], word: Word) -> CompletionRequest:
    target = args[0].text
    name = argument_name(word)
    if name is not None:
        return CompletionRequest(SettableValue(target, name), word.text[len(name) + 1 :], word.start + len(name) + 1)
    used = tuple(name for item in args[1:] if (name := argument_name(item)) is not None)
    return CompletionRequest(SettableNames(target, used), word.text, word.start)
