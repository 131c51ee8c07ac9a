"""Finds out what may be at the cursor in a selection (ids, keywords, the parts of a condition), and in times."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from qmf.views.conditions.tokens import ConditionToken, tokenize
from qmf.views.conditions.words import Word
from qmf_shell.completion.kinds import (
    AnyOf,
    CompletionKind,
    CompletionRequest,
    EventValueNames,
    Keywords,
    NoCompletion,
    ObjectNames,
    ValueNames,
    ValueOf,
)
from qmf_shell.parsing.selection import keyword_of
from qmf_shell.parsing.times import DAY_WORDS, PERIOD_WORDS, TIME_WORDS, takes_time

SELECTION_WORDS = (
    ("where", "only objects for which a condition is true"),
    ("sort", "in the order of a value"),
    ("columns", "which values to show"),
    ("limit", "how many at most"),
    ("active", "without destroyed objects"),
    ("wide", "statistics with their high and low values"),
)
_OPERATORS = (
    ("=", "equal, in any case of letters"),
    ("==", "exactly equal"),
    ("!=", "not equal"),
    ("<", "less"),
    ("<=", "less or equal"),
    (">", "greater"),
    (">=", "greater or equal"),
    ("~", "matches a regular expression"),
    ("!~", "does not match it"),
)
_CONNECTIVES = (("and", "both are true"), ("or", "at least one is true"))
_BEFORE = (("not", "the opposite"), ("has", "the value is neither missing nor false, zero or empty"))
_ORDERS = (("desc", "the largest first"), ("asc", "the smallest first"))
_BY = (("by", ""),)


def analyse_selection(target: str, before: Sequence[Word], word: Word, command: str) -> CompletionRequest:
    """After a class: ids, then keywords, then what follows the last keyword.

    Args:
        target: the class or object, as the user wrote it.
        before: the finished words after it.
        word: the word at the cursor.
        command: name of the command.
    """
    at_word = (word.text, word.start)
    used = [key for item in before if (key := keyword_of(item)) is not None]
    free = tuple(pair for pair in SELECTION_WORDS if pair[0] not in used)
    if not used:
        of_class = None if target.isdigit() else target
        kinds: list[CompletionKind] = [ObjectNames(of_class)] if command != "export" else []
        # After an object there may be more objects; after a class, keywords, too.
        return CompletionRequest(AnyOf((*kinds, Keywords(free))), *at_word)
    last = max(number for number, item in enumerate(before) if keyword_of(item) is not None)
    inside = before[last + 1 :]
    match keyword_of(before[last]):
        case "where":
            return analyse_condition(ValueNames(target), inside, word, free)
        case "sort":
            names: tuple[CompletionKind, ...] = (ValueNames(target),)
            if not inside:
                return CompletionRequest(AnyOf((*names, Keywords(_BY))), *at_word)
            orders = () if inside[-1].text.lower() in ("by", "asc", "desc") else (Keywords(_ORDERS),)
            return CompletionRequest(AnyOf((*orders, *names, Keywords(free))), *after_comma(word))
        case "columns":
            more = (Keywords(free),) if inside else (Keywords((("all", "everything"),)),)
            return CompletionRequest(AnyOf((ValueNames(target), *more)), *after_comma(word))
        case "limit":
            return CompletionRequest(Keywords(free) if inside else NoCompletion(), *at_word)
        case _:
            return CompletionRequest(Keywords(free), *at_word)


def after_comma(word: Word) -> tuple[str, int]:
    """The part of a name in ``a,b,na`` that is typed, and its column."""
    if word.plain != len(word.text) or "," not in word.text:
        return word.text, word.start
    front = word.text.rpartition(",")[0]
    return word.text[len(front) + 1 :], word.start + len(front) + 1


def analyse_condition(
    values: ValueNames | EventValueNames, inside: Sequence[Word], word: Word, free: tuple[tuple[str, str], ...]
) -> CompletionRequest:
    """Within a condition: a name, an operator, a value, or a connective.

    Args:
        values: the names that may be compared.
        inside: the finished words of the condition.
        word: the word at the cursor.
        free: keywords that may follow the condition.
    """
    split = tokenize([*inside, word] if word.text or word.end > word.start else inside)
    at_cursor = split and split[-1].word == len(inside) and not split[-1].sign
    typed = split.pop() if at_cursor else None
    prefix, start = (typed.text, typed.column - 1) if typed else ("", word.end)
    target = values.target if isinstance(values, ValueNames) else ""
    match expectation_after(split):
        case Expected.FACTOR:
            return CompletionRequest(AnyOf((values, Keywords(_BEFORE))), prefix, start)
        case Expected.NAME:
            return CompletionRequest(values, prefix, start)
        case Expected.OPERATOR:
            inside_word = typed is None and word.end > word.start
            return CompletionRequest(
                NoCompletion() if inside_word else AnyOf((Keywords((*_OPERATORS, *_CONNECTIVES)), Keywords(free))),
                prefix,
                start,
            )
        case Expected.VALUE:
            name = split[-2].text if len(split) > 1 else ""
            return CompletionRequest(ValueOf(target, name) if target else NoCompletion(), prefix, start)
        case Expected.CONNECTIVE:
            return CompletionRequest(AnyOf((Keywords((*_CONNECTIVES, *free)),)), prefix, start)


class Expected(enum.Enum):
    """What may follow in a condition."""

    FACTOR = "factor"
    NAME = "name"
    OPERATOR = "operator"  #: or a connective
    VALUE = "value"
    CONNECTIVE = "connective"


def expectation_after(found: Sequence[ConditionToken]) -> Expected:
    """What may follow these tokens of a condition."""
    expected = Expected.FACTOR
    for token in found:
        if token.operator is not None:
            expected = Expected.VALUE
        elif token.value or expected is Expected.NAME or (token.sign and token.text == ")"):
            expected = Expected.CONNECTIVE
        elif token.is_keyword("has"):
            expected = Expected.NAME
        elif token.sign or any(token.is_keyword(word) for word in ("and", "or", "not")):
            expected = Expected.FACTOR
        else:
            expected = Expected.CONNECTIVE if token.quoted else Expected.OPERATOR
    return expected


_TIMES = Keywords(TIME_WORDS)


def split_times(args: Sequence[Word], count: int) -> int | None:
    """How many words the first `count` times take; None if the cursor is still at one of them."""
    used = 0
    for _ in range(count):
        found = takes_time([word.text for word in args[used:]])
        if not found:
            return None
        used += found
    return used


def analyse_time(args: Sequence[Word], word: Word) -> CompletionRequest:
    """At a time of a command that begins with times."""
    clock = bool(args) and args[-1].text.lower() in DAY_WORDS
    return CompletionRequest(NoCompletion() if clock else _TIMES, word.text, word.start)


def analyse_period(
    args: Sequence[Word], word: Word, free: CompletionKind, words: tuple[tuple[str, str], ...] = PERIOD_WORDS
) -> CompletionRequest:
    """Among arguments with ``from TIME`` and ``to TIME``.

    Args:
        args: the words before the cursor.
        word: the word at the cursor.
        free: what may follow before the first of these keywords.
        words: the keywords, each with its meaning; what follows the others is a number.
    """
    names = [name for name, _ in words]
    used = [item.text.lower() for item in args if item.plain and item.text.lower() in names]
    left = tuple(pair for pair in words if pair[0] not in used)
    if not used:
        return CompletionRequest(AnyOf((free, Keywords(left))), word.text, word.start)
    last = max(at for at, item in enumerate(args) if item.text.lower() in names)
    after = [item.text for item in args[last + 1 :]]
    if args[last].text.lower() not in ("from", "to"):
        kind: CompletionKind = Keywords(left) if after else NoCompletion()
    elif not after:
        kind = _TIMES
    else:
        kind = Keywords(left) if takes_time(after) == len(after) else NoCompletion()
    return CompletionRequest(kind, word.text, word.start)
