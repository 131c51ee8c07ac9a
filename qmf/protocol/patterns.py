"""Regular expressions that come from a peer.

Python's matcher goes back and tries again, and a pattern of twenty characters can keep it busy for years. An agent
matches on behalf of whoever may query it, inside somebody's program, so patterns that can do that are refused before
use: those with a repetition inside a repetition (exponential), and those with many repetitions in a row (a power of the
text's length). The check looks at the pattern's text alone and errs on the side of refusing.
"""

from __future__ import annotations

import re

from qmf.errors import ProtocolError

#: Longest pattern in characters; what people type to find things is shorter.
MAX_PATTERN = 256

#: Most repetitions in a pattern: enough for ``^a.*b.*c.*d$`` and such; each one more multiplies the worst case by the
#: length of the text.
MAX_REPEATS = 4

#: Longest text that is searched, in characters. Names are shorter; longer text does not match.
MAX_TEXT = 1024

_GROUP_REPEAT = re.compile(r"[*+]|\{[\d,]")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a peer's pattern.

    Raises:
        ProtocolError: not a regular expression, or one that could take very long.
    """
    if len(pattern) > MAX_PATTERN:
        raise ProtocolError(f"regular expression of {len(pattern)} characters; the limit is {MAX_PATTERN}")
    _check_cost(pattern)
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        raise ProtocolError(f"regular expression {pattern[:40]!r}: {error}") from error


def search(pattern: re.Pattern[str], text: str) -> bool:
    """Whether the pattern occurs in the text."""
    return len(text) <= MAX_TEXT and pattern.search(text) is not None


def _check_cost(pattern: str) -> None:
    # For each open group: whether it holds a repetition or an alternative.
    groups: list[bool] = [False]
    repeats = 0
    pos = 0
    while pos < len(pattern):
        char = pattern[pos]
        pos += 1
        if char == "\\":
            pos += 1
        elif char == "[" and (found := _CLASS.match(pattern, pos - 1)):
            pos = found.end()
        elif char == "(":
            groups.append(False)
        elif char == "|":
            groups[-1] = True
        elif char == ")" and len(groups) > 1:
            costly = groups.pop()
            if costly and _GROUP_REPEAT.match(pattern, pos):
                raise ProtocolError(f"regular expression {pattern[:40]!r}: repetition or choice inside a repetition")
            groups[-1] |= costly
        elif _GROUP_REPEAT.match(pattern, pos - 1):
            groups[-1] = True
            repeats += 1
    if repeats > MAX_REPEATS:
        raise ProtocolError(f"regular expression {pattern[:40]!r}: more than {MAX_REPEATS} repetitions")
