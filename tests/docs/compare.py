"""Compares what a page shows with what was printed.

``...`` on a line of its own stands for any lines, within a line for any text. The texts that a mark names stand for
others, and so does every number, with its unit, if the mark is ``numbers``, and every plot, if it is ``plots``; blanks
and rules then have any length, since they depend on what varies.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

#: A number as people write it, with a unit whose size it depends on.
_QUANTITY = r"[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?"
_UNIT = r"(?: ?(?:[kMGTPE]i?B?|B|ns|µs|ms|s|min|h|d|days?|hours?|minutes?|seconds?)\b)?"
_CALENDAR = r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b"
_AXIS = "[┤│]"
_RULE = r"[─=+-]{4,}"


@attrs.frozen
class Expected:
    """What a page shows as output.

    Attributes:
        text: the output.
        varies: the texts of it that are others on another machine, or at another time; ``numbers`` for all numbers.
        any_order: its lines may come in any order.
        line: of the page, where it begins, from 1; 0 for nowhere.
    """

    text: str
    varies: tuple[str, ...] = ()
    any_order: bool = False
    line: int = 0

    def difference(self, printed: str) -> str:
        """What is wrong with what was printed, or nothing."""
        wanted = [line.rstrip() for line in self.text.splitlines()]
        seen = [line.rstrip() for line in printed.splitlines()]
        if "plots" in self.varies:
            wanted, seen = _flat(wanted), _flat(seen)
        patterns = [None if line.strip() == "..." else re.compile(_pattern(line, self.varies)) for line in wanted]
        if self.any_order:
            patterns.sort(key=lambda pattern: pattern is None)
            seen = _sorted_like(patterns, seen)
        reached = _match(patterns, seen)
        if reached is None:
            return ""
        line, at = reached
        shown = wanted[line] if line < len(wanted) else "nothing more"
        found = seen[at] if at < len(seen) else "nothing more"
        return "\n".join(
            [f"  expected: {shown}", f"  printed:  {found}", "Printed in all:", *(f"  {text}" for text in seen)]
        )


def _flat(lines: Sequence[str]) -> list[str]:
    """One line for each plot, since the height depends on the scale."""
    return [
        line
        for line, above in zip(lines, ["", *lines], strict=False)
        if not (re.search(_AXIS, line) and re.search(_AXIS, above))
    ]


def _sorted_like(patterns: Sequence[re.Pattern[str] | None], seen: Sequence[str]) -> list[str]:
    """The lines in the order of the patterns that they match; the others behind them."""
    rest = list(seen)
    found: list[str] = []
    for pattern in patterns:
        match = next((line for line in rest if pattern is not None and pattern.fullmatch(line)), None)
        if match is not None:
            rest.remove(match)
            found.append(match)
    return found + rest


def _match(patterns: Sequence[re.Pattern[str] | None], seen: Sequence[str]) -> tuple[int, int] | None:
    """None if all lines match; otherwise how many patterns and how many lines did."""
    places = {0}  # how many lines the patterns so far may have matched
    for number, pattern in enumerate(patterns):
        if pattern is None:
            after = set(range(min(places), len(seen) + 1))
        else:
            after = {at + 1 for at in places if at < len(seen) and pattern.fullmatch(seen[at])}
        if not after:
            return number, min(places)
        places = after
    return None if len(seen) in places else (len(patterns), max(places))


def _pattern(line: str, varies: Sequence[str]) -> str:
    if "plots" in varies and re.search(_AXIS, line):
        return f".*{_AXIS}.*"
    names = sorted((name for name in varies if name not in ("numbers", "plots")), key=len, reverse=True)
    choices = [("gap", r"\.\.\."), *(("name", rf"(?<!\w){re.escape(name)}(?!\w)") for name in names)]
    if "numbers" in varies:
        choices += [("number", _QUANTITY + _UNIT), ("calendar", _CALENDAR)]
    if varies:
        choices += [("rule", _RULE), ("bar", r"\s*\|\s*"), ("blank", r"\s+")]
    made, at = "", 0
    for match in re.finditer("|".join(f"({choice})" for _, choice in choices), line):
        assert match.lastindex is not None
        kind = choices[match.lastindex - 1][0]
        made += re.escape(line[at : match.start()]) + _ANY[kind]
        at = match.end()
    return made + re.escape(line[at:])


#: What matches where the page has something of this kind.
_ANY = {
    "gap": ".*",
    "name": r".+?",
    "number": f"{_QUANTITY}{_UNIT}",
    "calendar": _CALENDAR,
    "rule": _RULE,
    "bar": r"\s*\|\s*",
    "blank": r"\s+",
}
