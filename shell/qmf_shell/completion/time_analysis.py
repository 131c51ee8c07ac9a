"""Finds out what may be at the cursor where times are written: a pure function, as `analysis`."""

from __future__ import annotations

from collections.abc import Sequence

from qmf.views.conditions.words import Word
from qmf_shell.completion.kinds import (
    AnyOf,
    CompletionKind,
    CompletionRequest,
    Keywords,
    NoCompletion,
)
from qmf_shell.parsing.times import DAY_WORDS, PERIOD_WORDS, TIME_WORDS, takes_time

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
