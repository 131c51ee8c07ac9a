"""The period of a command about the past: ``from TIME`` and ``to TIME`` among its arguments."""

from __future__ import annotations

import time
from collections.abc import Sequence

import attrs

from qmf.views.conditions.words import Word
from qmf_shell.parsing.times import PERIOD_WORDS, TimeError, TimeReference, parse_period, takes_time

_KEYWORDS = tuple(name for name, _ in PERIOD_WORDS)


@attrs.frozen
class Period:
    """A period of time.

    Attributes:
        first, last: times in nanoseconds since 1970, both included.
    """

    first: int
    last: int


def split_period(words: Sequence[Word]) -> tuple[list[Word], Period | None]:
    """The words without ``from TIME`` and ``to TIME``, and the period; None where there is neither.

    The period ends now, and begins an hour before its end, unless the words say otherwise.

    Raises:
        TimeError: no time follows.
        PeriodError: it ends before it begins.
    """
    rest: list[Word] = []
    found: dict[str, list[str]] = {}
    at = 0
    while at < len(words):
        word = words[at]
        name = word.text.lower()
        at += 1
        if name not in _KEYWORDS or word.plain != len(word.text) or name in found:
            rest.append(word)
            continue
        after = [item.text for item in words[at:]]
        used = takes_time(after)
        if not used:
            raise TimeError(after[0] if after else "")
        found[name] = after[:used]
        at += used
    if not found:
        return rest, None
    return rest, Period(*parse_period(found.get("from", ()), found.get("to", ()), TimeReference(time.time_ns())))
