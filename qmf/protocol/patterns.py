"""Regular expressions that come from a peer.

Python's matcher goes back and tries again, and a pattern of twenty characters can keep it busy for years. An agent
matches on behalf of whoever may query it, inside somebody's program, so patterns that can do that are refused before
use: those with a repetition inside a repetition (exponential), and those with many repetitions in a row (a power of the
text's length). The check looks at the pattern's text alone and errs on the side of refusing: what it does not know,
such as comments and the verbose mode, is refused as well, for it could hide the rest.
"""

from __future__ import annotations

import math
import re

import attrs

from qmf.errors import ProtocolError

#: Longest pattern in characters; what people type to find things is shorter.
MAX_PATTERN = 256

#: Most places where the matcher has a choice: repetitions, optional parts, groups with alternatives. Enough for
#: ``^(eu|us).*queue-[0-9]+$``.
MAX_CHOICES = 3

#: Longest text that is searched, in characters: that of the longest `sstr`, which names are. Longer text never matches.
MAX_TEXT = 255

#: Most steps that a pattern may take, and all patterns of a predicate together. A step compares one character, in one
#: to three nanoseconds: a quarter of a second at worst.
MAX_STEPS = 100_000_000

#: Steps that compiling takes: at least, for each character, and for each set of characters where case does not matter.
_COMPILING, _READING, _FOLDING = 50_000, 400, 2_500_000

_COUNT = r"\{(?:[0-9]+,?[0-9]*|,[0-9]*)\}"  # other braces mean themselves
_REPEAT = re.compile(rf"([*+?]|{_COUNT})[?+]?")  # lazy or possessive: part of the same repetition
_MANY = re.compile(rf"[*+]|{_COUNT}")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_FLAGS = re.compile(r"\(\?([aimsuL]+)\)")
_OPEN = re.compile(r"\((?:\?(?:P<\w+>|[:=!]|<[=!]|([aimsuL]+):)|(?!\?))")
_START = re.compile(r"(?:\(\?[aisuL]+\))?(?:\^|\\A)")
_BACK = re.compile(r"\\[1-9]")


@attrs.frozen
class Pattern:
    """A peer's pattern.

    Attributes:
        regex: the pattern.
        steps: how many compiling it and searching one text may take, roughly and at worst.
    """

    regex: re.Pattern[str]
    steps: int


def compile_pattern(pattern: str, limit: int = MAX_STEPS) -> Pattern:
    """Compile a peer's pattern.

    Args:
        pattern: a regular expression.
        limit: most steps that it may take.

    Raises:
        ProtocolError: not a regular expression, or one that could take very long.
    """
    if len(pattern) > MAX_PATTERN:
        raise ProtocolError(f"regular expression of {len(pattern)} characters; the limit is {MAX_PATTERN}")
    cost = _Cost(pattern)
    cost.check(limit)
    try:
        return Pattern(re.compile(pattern), cost.steps)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        raise ProtocolError(f"regular expression {pattern[:40]!r}: {error}") from error


def search(pattern: Pattern, text: str) -> bool:
    """Whether the pattern occurs in the text."""
    return len(text) <= MAX_TEXT and pattern.regex.search(text) is not None


class _Cost:
    """What a pattern may cost, found in one pass over its text."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        # For each open group, the pattern itself first: whether there is a choice inside, and its alternatives but one.
        self._choice, self._alternatives = [False], [0]
        #: Places with a choice; of these, repetitions; and how many ways the others make.
        self._choices = self._repetitions = 0
        self._ways = 1
        self._flags = ""
        self._sets = 0

    def check(self, limit: int) -> None:
        """Raise `ProtocolError` if the pattern may take very long, or more steps than the limit."""
        pos = 0
        while pos < len(self._pattern):
            pos = self._item(pos)
        if self._choices > MAX_CHOICES:
            raise self._refusal(f"more than {MAX_CHOICES} repetitions and choices")
        if self.steps > limit:
            raise self._refusal("could take too long")

    @property
    def steps(self) -> int:
        """Steps at worst: every way to divide the text among the repetitions, and then all that is left to compare."""
        anchored = _START.match(self._pattern) and not self._alternatives[0] and "m" not in self._flags
        parts = self._repetitions + (not anchored)  # a match may start anywhere
        ways = math.comb(MAX_TEXT + parts, parts) * self._ways * (1 + self._alternatives[0])
        size = max(len(self._pattern), 1)
        return (ways + _READING) * size + _COMPILING + _FOLDING * self._sets * ("i" in self._flags)

    def _item(self, pos: int) -> int:
        """Take what starts at a place; gives the place behind it."""
        pattern = self._pattern
        char = pattern[pos]
        if char == "\\":
            self._repetitions += _BACK.match(pattern, pos) is not None  # as long as what it repeats
            return pos + 2
        if char == "[" and (found := _CLASS.match(pattern, pos)):
            self._sets += 1
            return found.end()
        if char == "(":
            return self._open(pos)
        if char == "|":
            self._alternatives[-1] += 1
        elif char == ")" and len(self._choice) > 1:
            self._close(pos + 1)
        elif found := _REPEAT.match(pattern, pos):
            self._repeat(found)
            return found.end()
        return pos + 1

    def _open(self, pos: int) -> int:
        if found := _FLAGS.match(self._pattern, pos):
            self._flags += found[1]
            return found.end()
        found = _OPEN.match(self._pattern, pos)
        if found is None:
            raise self._refusal(f"{self._pattern[pos : pos + 3]} is not supported")
        self._flags += found[1] or ""
        self._choice.append(False)
        self._alternatives.append(0)
        return found.end()

    def _close(self, pos: int) -> None:
        more = self._alternatives.pop()
        self._choices += more > 0
        self._ways *= 1 + more
        inside = self._choice.pop() or more > 0
        if inside and _MANY.match(self._pattern, pos):
            raise self._refusal("repetition or choice inside a repetition")
        self._choice[-1] |= inside

    def _repeat(self, found: re.Match[str]) -> None:
        self._choice[-1] = True
        self._choices += 1
        if found[1] == "?":
            self._ways *= 2
        elif found.end() < len(self._pattern) or found[1].startswith("{"):
            self._repetitions += 1  # nothing can fail behind the last one

    def _refusal(self, reason: str) -> ProtocolError:
        return ProtocolError(f"regular expression {self._pattern[:40]!r}: {reason}")
