"""Conditions on objects, as trees: comparisons, joined by ``and``, ``or`` and ``not``.

This module knows no class: `objects.filtering` gives names and values their types.
"""

from __future__ import annotations

import enum
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from qmf.errors import CallerError


class ConditionError(CallerError):
    """A condition is not valid; the message contains the column."""


class Operator(enum.Enum):
    """How a value is compared with another."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    MATCH = "~"
    NO_MATCH = "!~"


#: The comparisons of two values; the other operators search for a pattern.
COMPARE: Mapping[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
}


def compile_pattern(text: str) -> re.Pattern[str]:
    """The regular expression of a comparison with ``~`` or ``!~``.

    Raises:
        ConditionError: the text is not a regular expression.
    """
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ConditionError(f"{text!r} is not a regular expression: {error}") from None


@attrs.frozen
class Comparison:
    """A value is compared with another, which is written as a text."""

    name: str
    operator: Operator
    text: str


@attrs.frozen
class Truthy:
    """A value is true: neither false, nor zero, nor empty."""

    name: str


@attrs.frozen
class Not:
    """A condition is false."""

    part: Condition


@attrs.frozen
class And:
    """All of several conditions are true."""

    parts: tuple[Condition, ...]


@attrs.frozen
class Or:
    """At least one of several conditions is true."""

    parts: tuple[Condition, ...]


Condition = Comparison | Truthy | Not | And | Or


def truthy_names(condition: Condition) -> Iterator[str]:
    """The names in a condition that are not compared with anything, in order."""
    match condition:
        case Truthy(name):
            yield name
        case Not(part):
            yield from truthy_names(part)
        case And(parts) | Or(parts):
            for item in parts:
                yield from truthy_names(item)


def value_names(condition: Condition) -> Iterator[str]:
    """All names in a condition, in order."""
    match condition:
        case Comparison(name, _, _) | Truthy(name):
            yield name
        case Not(part):
            yield from value_names(part)
        case And(parts) | Or(parts):
            for item in parts:
                yield from value_names(item)
