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

#: Most places where the matcher has a choice: repetitions, optional parts, groups with alternatives. Enough for
#: ``^(eu|us).*queue-[0-9]+$``. Each place multiplies the worst case by the length of the text: three of them and 255
#: characters take half a second at worst, four would take half a minute.
MAX_CHOICES = 3

#: Longest text that is searched, in characters: that of the longest `sstr`, which names are. Longer text never matches.
MAX_TEXT = 255

_REPEAT = re.compile(r"[*+?]|\{[\d,][^}]*\}")
_MANY = re.compile(r"[*+]|\{[\d,]")
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
    def refuse(reason: str) -> ProtocolError:
        return ProtocolError(f"regular expression {pattern[:40]!r}: {reason}")

    # For each open group, the pattern itself first: whether there is a choice inside, and whether it has alternatives.
    choice, alternatives = [False], [False]
    choices = 0
    pos = 0
    while pos < len(pattern):
        char = pattern[pos]
        if char == "\\":
            pos += 2
        elif char == "[" and (found := _CLASS.match(pattern, pos)):
            pos = found.end()
        elif char == "(":
            choice.append(False)
            alternatives.append(False)
            pos += 2 if pattern.startswith("(?", pos) else 1  # the question mark of an extension is no repetition
        elif char == "|":
            alternatives[-1] = True
            pos += 1
        elif char == ")" and len(choice) > 1:
            pos += 1
            choices += alternatives[-1]
            inside = alternatives.pop() | choice.pop()
            if inside and _MANY.match(pattern, pos):
                raise refuse("repetition or choice inside a repetition")
            choice[-1] |= inside
        elif found := _REPEAT.match(pattern, pos):
            pos = found.end()
            pos += pattern.startswith(("?", "+"), pos)  # lazy or possessive: part of the same repetition
            choice[-1] = True
            choices += 1
        else:
            pos += 1
    if choices > MAX_CHOICES:
        raise refuse(f"more than {MAX_CHOICES} repetitions and choices")
