"""Conditions on objects, as people type them above a table: ``orders msgDepth>100 name~^eu durable=true``.

Words must all hold. A word alone is searched for in the name of the object and in the columns that are shown, in any
case of letters; ``-word`` must not be found. With an operator it compares a value: ``=``, ``!=``, ``<``, ``<=``, ``>``,
``>=``, ``~`` (a regular expression) and ``!~``. Quotes keep blanks together. Numbers may have a prefix (``10k``,
``5Mi``), durations a unit (``5m``).
"""

from __future__ import annotations

import operator
import re
import shlex
from collections.abc import Callable, Mapping, Sequence

import attrs

from qmf.console.aio import ObjectId, RemoteObject
from qmf.errors import CallerError
from qmf.views.times import parse_duration
from qmf.views.units import parse_number
from qmf.web.pages.views.value_columns import ValueColumn

_COMPARISON = re.compile(r"([A-Za-z_]\w*)(!=|!~|<=|>=|=|~|<|>)(.*)", re.DOTALL)
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
#: What ends a number and no duration.
_PREFIXES = ("k", "i", "M", "G", "T")

Test = Callable[[RemoteObject], bool]
#: The text in which words are searched for.
SearchText = Callable[[RemoteObject], str]


class ConditionError(CallerError):
    """A condition is not valid; names the word."""


@attrs.frozen
class _Parts:
    words: tuple[str, ...]
    without: tuple[str, ...]
    tests: tuple[Test, ...]


def compile_condition(text: str, columns: Sequence[ValueColumn], search_text: SearchText) -> Test | None:
    """The test for a condition.

    Args:
        text: the condition; blank for all objects.
        columns: what can be compared.
        search_text: the text of an object that words are searched for in.

    Returns:
        the test; None if all objects pass.

    Raises:
        ConditionError: a word cannot be understood.
    """
    parts = _parse(text, {item.name.lower(): item for item in columns})
    tests = list(parts.tests)
    if parts.words or parts.without:
        tests.append(
            lambda obj: _contains(search_text(obj).lower(), parts.words, parts.without),
        )
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    return lambda obj: all(test(obj) for test in tests)


def _contains(text: str, words: Sequence[str], without: Sequence[str]) -> bool:
    return all(word in text for word in words) and not any(word in text for word in without)


def _parse(text: str, columns: Mapping[str, ValueColumn]) -> _Parts:
    try:
        pieces = shlex.split(text)
    except ValueError:
        raise ConditionError("a quote is not closed") from None
    words: list[str] = []
    without: list[str] = []
    tests: list[Test] = []
    for piece in pieces:
        match = _COMPARISON.fullmatch(piece)
        column = columns.get(match[1].lower()) if match is not None else None
        if match is not None and column is not None:
            tests.append(_comparison(column, match[2], match[3]))
        elif match is not None and match[2] not in ("=", "~"):
            raise ConditionError(f"there is no value {match[1]!r} to compare with {match[2]}")
        elif piece.startswith("-") and len(piece) > 1:
            without.append(piece[1:].lower())
        else:
            words.append(piece.lower())
    return _Parts(tuple(words), tuple(without), tuple(tests))


def _comparison(column: ValueColumn, sign: str, text: str) -> Test:
    read = column.read
    if sign in ("~", "!~"):
        try:
            pattern = re.compile(text)
        except (re.error, OverflowError, RecursionError) as error:
            raise ConditionError(f"{text!r} is not a regular expression: {error}") from None
        wanted = sign == "~"
        return lambda obj: (pattern.search(_shown(read(obj))) is not None) is wanted
    if sign in ("=", "!="):
        equal = _equality(column, text)
        return lambda obj: equal(read(obj)) is (sign == "=")
    limit = _number(column, text)
    compare = _COMPARE[sign]

    def test(obj: RemoteObject) -> bool:
        value = read(obj)
        return isinstance(value, int | float) and not isinstance(value, bool) and compare(value, limit)

    return test


def _equality(column: ValueColumn, text: str) -> Callable[[object], bool]:
    if column.is_number:
        number = _number(column, text)
        return lambda value: isinstance(value, int | float) and value == number
    wanted = text.lower()
    if column.type is not None and column.type.name == "bool":
        wanted = {"1": "true", "yes": "true", "y": "true", "0": "false", "no": "false", "n": "false"}.get(
            wanted, wanted
        )
    if column.is_reference:
        return lambda value: _names(_shown(value).lower(), wanted)
    return lambda value: _shown(value).lower() == wanted


def _names(name: str, wanted: str) -> bool:
    """True if `wanted` is the name of an object, or its last part."""
    return name == wanted or name.endswith(f":{wanted}")


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.object_name if isinstance(value, ObjectId) else str(value)


def _number(column: ValueColumn, text: str) -> int | float:
    text = text.strip()
    try:
        if column.is_duration and text[-1:].isalpha() and not text.endswith(_PREFIXES):
            return (-1 if text.startswith("-") else 1) * parse_duration(text.lstrip("+-"))
        return parse_number(text.removesuffix("%"))
    except ValueError:
        raise ConditionError(f"{text!r} is not a number to compare {column.name} with") from None
