"""What could stand at the cursor: a pure function from the text of a line to a kind of suggestion.

Knows commands, but no class, object or agent: names are `suggestions`' concern.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from qmf_shell.completion.kinds import (
    AnyOf,
    ArgumentNames,
    ArgumentValue,
    ClassNames,
    CommandNames,
    EventValueNames,
    Files,
    Keywords,
    MethodNames,
    Nothing,
    ObjectNames,
    OptionNames,
    OptionValue,
    Question,
    SettableNames,
    SettableValue,
    SettingNames,
    SettingValue,
    ValueNames,
    ValueOf,
    Wanted,
)
from qmf_shell.parsing.binding import looks_like_option
from qmf_shell.parsing.command import Command, Option, Parameter, Registry, Takes
from qmf_shell.parsing.conditions import ConditionError, Token, parse, tokens
from qmf_shell.parsing.method_arguments import named
from qmf_shell.parsing.selection import keyword
from qmf_shell.parsing.words import Open, Word, is_comment, split_typed

SELECTION_WORDS = (
    ("where", "only those that a condition is true of"),
    ("sort", "in the order of a value"),
    ("columns", "which values to show"),
    ("limit", "how many at most"),
    ("active", "without those that were destroyed"),
)
_OPERATORS = (
    ("=", "equal"),
    ("!=", "not equal"),
    ("<", "less"),
    ("<=", "less or equal"),
    (">", "greater"),
    (">=", "greater or equal"),
    ("~", "has in it, by regular expression"),
    ("!~", "has not in it"),
)
_JOINS = (("and", "both"), ("or", "one of them"))
_NOT = (("not", "the opposite"),)
_ORDERS = (("desc", "the largest first"), ("asc", "the smallest first"))
_BY = (("by", ""),)
_WHERE = (SELECTION_WORDS[0],)
_ALL = (("all", "all objects of the class"),)


def analyse(text: str, registry: Registry, aliases: Mapping[str, str] | None = None) -> Question:
    """What could stand at the end of `text`, the line up to the cursor. Never fails.

    Args:
        text: the line.
        registry: the commands.
        aliases: words that stand for the front of a command.
    """
    if is_comment(text) and text.strip():
        return Question(Nothing())
    text, shift = _expanded(text, aliases or {})
    question = _analyse(text, registry)
    return attrs.evolve(question, start=max(0, question.start - shift)) if shift else question


def _expanded(text: str, aliases: Mapping[str, str]) -> tuple[str, int]:
    """The line with its alias replaced, and by how much it is longer."""
    if not aliases:
        return text, 0
    before = split_typed(text).before
    stands = aliases.get(before[0].text) if before and before[0].plain else None
    if stands is None:
        return text, 0
    longer = stands + text[before[0].end :]
    return longer, len(longer) - len(text)


def _analyse(text: str, registry: Registry) -> Question:
    typed = split_typed(text)
    word = typed.word
    if typed.open in (Open.JSON, Open.ESCAPE):
        return Question(Nothing())
    if not typed.before:
        return Question(CommandNames(), word.text, word.start)
    command = registry.get(typed.before[0].text)
    if command is None:
        return Question(Nothing())
    found = positional(command, typed.before[1:])
    if isinstance(found, Option):
        return Question(OptionValue(found), word.text, word.start)
    ended = command.options_first and bool(found)
    if not ended and (looks_like_option(command, word) or (command.options and word.text == "-" and word.plain)):
        return Question(OptionNames(command), word.text, word.start)
    return _argument(command, found, word)


def positional(command: Command, words: Sequence[Word]) -> list[Word] | Option:
    """The words before the cursor that are no options; the option where the cursor is at an option's value."""
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


def _argument(command: Command, given: list[Word], word: Word) -> Question:
    parameter = parameter_at(command, len(given))
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
            return _events(given, word)
        case Takes.OBJECT:
            return Question(ObjectNames(_given_for(command, given, Takes.CLASS)), *at_word)
        case Takes.TARGET:
            return Question(AnyOf((ObjectNames(None), ClassNames(objects=True, events=False))), *at_word)
        case Takes.SELECTION:
            front = command.parameters.index(parameter)
            return _selection(given[0].text, given[front:], word, command.name)
        case Takes.CALL:
            return _call(given, word)
        case Takes.STATISTICS:
            return _statistics(command, parameter, given, word)
        case Takes.SETTABLE:
            return _settable(given, word)
        case Takes.SETTING:
            return Question(SettingNames(), *at_word)
        case Takes.CHOICE:
            return Question(SettingValue(given[0].text), *at_word)
        case Takes.FILE:
            return Question(Files(), *at_word)
        case Takes.WORDS:
            return Question(Keywords(parameter.words), *at_word)
        case _:
            return Question(Nothing())


def parameter_at(command: Command, number: int) -> Parameter | None:
    """The parameter that the positional argument `number` is for, or None."""
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


# -- what follows a class ----------------------------------------------------------------------------------------------


def _selection(target: str, before: Sequence[Word], word: Word, command: str) -> Question:
    """After a class: ids, then keywords, then what belongs to the last keyword."""
    at_word = (word.text, word.start)
    used = [key for item in before if (key := keyword(item)) is not None]
    free = tuple(pair for pair in SELECTION_WORDS if pair[0] not in used)
    if not used:
        of_class = None if target.isdigit() else target
        kinds: list[Wanted] = [ObjectNames(of_class)] if command != "export" else []
        # After an object there are more objects; after a class, keywords too.
        return Question(AnyOf((*kinds, Keywords(free))), *at_word)
    last = max(number for number, item in enumerate(before) if keyword(item) is not None)
    inside = before[last + 1 :]
    match keyword(before[last]):
        case "where":
            return _condition(ValueNames(target), inside, word, free)
        case "sort":
            names: tuple[Wanted, ...] = (ValueNames(target),)
            if not inside:
                return Question(AnyOf((*names, Keywords(_BY))), *at_word)
            orders = () if inside[-1].text.lower() in ("by", "asc", "desc") else (Keywords(_ORDERS),)
            return Question(AnyOf((*orders, *names, Keywords(free))), *_after_comma(word))
        case "columns":
            more = (Keywords(free),) if inside else (Keywords((("all", "everything"),)),)
            return Question(AnyOf((ValueNames(target), *more)), *_after_comma(word))
        case "limit":
            return Question(Keywords(free) if inside else Nothing(), *at_word)
        case _:
            return Question(Keywords(free), *at_word)


def _after_comma(word: Word) -> tuple[str, int]:
    """What is typed of a name in ``a,b,na``, and where it begins."""
    if word.plain != len(word.text) or "," not in word.text:
        return word.text, word.start
    front = word.text.rpartition(",")[0]
    return word.text[len(front) + 1 :], word.start + len(front) + 1


def _condition(
    values: ValueNames | EventValueNames, inside: Sequence[Word], word: Word, free: tuple[tuple[str, str], ...]
) -> Question:
    """Within a condition: a name, an operator, a value, or what joins it to the next."""
    split = tokens([*inside, word] if word.text or word.end > word.start else inside)
    at_cursor = split and split[-1].word == len(inside) and not split[-1].sign
    typed = split.pop() if at_cursor else None
    prefix, start = (typed.text, typed.column - 1) if typed else ("", word.end)
    target = values.target if isinstance(values, ValueNames) else ""
    match _expects(split):
        case "name":
            return Question(AnyOf((values, Keywords(_NOT))), prefix, start)
        case "operator":
            glued = typed is None and word.end > word.start
            return Question(
                Nothing() if glued else AnyOf((Keywords((*_OPERATORS, *_JOINS)), Keywords(free))), prefix, start
            )
        case "value":
            name = split[-2].text if len(split) > 1 else ""
            return Question(ValueOf(target, name) if target else Nothing(), prefix, start)
        case _:
            return Question(AnyOf((Keywords((*_JOINS, *free)),)), prefix, start)


def _expects(found: Sequence[Token]) -> str:
    """What may follow these tokens of a condition: a name, an operator (or a join), a value, or a join."""
    state = "name"
    for token in found:
        if state == "name":
            if not (token.says("not") or (token.sign and token.text == "(")):
                state = "operator"
        elif token.sign and token.text == ")":
            state = "join"
        elif state == "operator" and token.sign:
            state = "value"
        elif state in ("operator", "join"):
            state = "name"
        else:
            state = "join"
    return state


# -- other arguments ---------------------------------------------------------------------------------------------------


def _events(given: Sequence[Word], word: Word) -> Question:
    where = next((number for number, item in enumerate(given) if keyword(item) == "where"), None)
    if where is None:
        kinds: tuple[Wanted, ...] = (ClassNames(objects=False, events=True), Keywords(_WHERE))
        return Question(AnyOf(kinds), word.text, word.start)
    classes = tuple(item.text for item in given[:where])
    return _condition(EventValueNames(classes), given[where + 1 :], word, ())


def _call(given: Sequence[Word], word: Word) -> Question:
    """After the target of a call."""
    target = given[0].text
    rest = given[1:]
    at_word = (word.text, word.start)
    if not rest:
        return Question(AnyOf((MethodNames(target), Keywords((*_WHERE, *_ALL)))), *at_word)
    if keyword(rest[0]) == "where":
        # Which word the condition ends with is seen when the line is whole: until then both may follow.
        inside = rest[1:]
        at = _method_after(inside)
        if at is None:
            question = _condition(ValueNames(target), inside, word, ())
            if _expects(tokens(inside)) in ("operator", "join"):
                kinds = (
                    (question.wanted, MethodNames(target)) if question.wanted != Nothing() else (MethodNames(target),)
                )
                return attrs.evolve(question, wanted=AnyOf(kinds))
            return question
        return _inputs(target, inside[at].text, inside[at + 1 :], word)
    if rest[0].text.lower() == "all" and rest[0].plain:
        if len(rest) == 1:
            return Question(MethodNames(target), *at_word)
        return _inputs(target, rest[1].text, rest[2:], word)
    return _inputs(target, rest[0].text, rest[1:], word)


def _method_after(inside: Sequence[Word]) -> int | None:
    """The number of the word after a condition, where it is followed by one."""
    try:
        _, used = parse(inside)
    except ConditionError:
        return None
    return used if used < len(inside) else None


def _inputs(target: str, method: str, before: Sequence[Word], word: Word) -> Question:
    name = named(word)
    if name is not None:
        value = word.text[len(name) + 1 :]
        return Question(ArgumentValue(target, method, name), value, word.start + len(name) + 1)
    used = tuple(name for item in before if (name := named(item)) is not None)
    return Question(ArgumentNames(target, method, used, len(before) - len(used)), word.text, word.start)


def _statistics(command: Command, parameter: Parameter, given: Sequence[Word], word: Word) -> Question:
    target = given[0].text
    at_word = (word.text, word.start)
    names: Wanted = ValueNames(target, numbers=True)
    if parameter.words and len(given) == command.parameters.index(parameter):
        return Question(AnyOf((Keywords(parameter.words), names)), *at_word)
    return Question(names, *at_word)


def _settable(given: Sequence[Word], word: Word) -> Question:
    target = given[0].text
    name = named(word)
    if name is not None:
        return Question(SettableValue(target, name), word.text[len(name) + 1 :], word.start + len(name) + 1)
    used = tuple(name for item in given[1:] if (name := named(item)) is not None)
    return Question(SettableNames(target, used), word.text, word.start)
