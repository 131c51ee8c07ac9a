"""Conditions as trees: words to search for and comparisons, joined by ``and``, ``or`` and ``not``.

Knows no class: `compiling` gives names and values their types. The text of a tree is parsed to the same tree.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator

import attrs

from qmf.errors import CallerError
from qmf.views.conditions.words import quote_word

KEYWORDS = ("and", "or", "not", "has")
_PLAIN = re.compile(r"\w[\w./:%+-]*")


class ConditionError(CallerError):
    """A condition is not valid.

    Attributes:
        reason: what is wrong, with the column if it is known.
        column: where in the text, from 1; None if it is about a value.
    """

    def __init__(self, reason: str, column: int | None = None) -> None:
        self.reason = reason
        self.column = column
        super().__init__(reason, column)

    def __str__(self) -> str:
        return self.reason


class Operator(enum.Enum):
    """How a value is compared with another."""

    EQ = "="
    EXACT = "=="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    MATCH = "~"
    NO_MATCH = "!~"


@attrs.frozen
class Search:
    """A word is found in the texts of an object, in any case of letters."""

    text: str

    def __str__(self) -> str:
        return _word_text(self.text)


@attrs.frozen
class Has:
    """An object has a value that is neither false, nor zero, nor empty."""

    name: str

    def __str__(self) -> str:
        return f"has {self.name}"


@attrs.frozen
class Comparison:
    """A value is compared with another, which is written as a text."""

    name: str
    operator: Operator
    text: str

    def __str__(self) -> str:
        return f"{self.name} {self.operator.value} {_word_text(self.text)}"


@attrs.frozen
class Not:
    """A condition is false."""

    part: Condition

    def __str__(self) -> str:
        return f"not {_inside(self.part)}"


@attrs.frozen
class And:
    """All of several conditions are true."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " and ".join(map(_inside, self.parts))


@attrs.frozen
class Or:
    """At least one of several conditions is true."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " or ".join(map(_inside, self.parts))


Condition = Search | Has | Comparison | Not | And | Or


def value_names(condition: Condition) -> Iterator[str]:
    """The names of values in a condition, in order."""
    match condition:
        case Comparison(name, _, _) | Has(name):
            yield name
        case Not(part):
            yield from value_names(part)
        case And(parts) | Or(parts):
            for item in parts:
                yield from value_names(item)


def searched_words(condition: Condition) -> Iterator[str]:
    """The words that are searched for in a condition, in order."""
    match condition:
        case Search(text):
            yield text
        case Not(part):
            yield from searched_words(part)
        case And(parts) | Or(parts):
            for item in parts:
                yield from searched_words(item)


def _inside(part: Condition) -> str:
    return f"({part})" if isinstance(part, And | Or) else str(part)


def _word_text(text: str) -> str:
    return text if _PLAIN.fullmatch(text) and text.lower() not in KEYWORDS else quote_word(text)
