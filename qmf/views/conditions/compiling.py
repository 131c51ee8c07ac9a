"""Turns the tree of a condition into a test of objects, and into a predicate with which agents answer fewer of them.

A word is found in the text of an object, a comparison is made by the type of the field. What an object lacks is not
equal to anything, and no pattern matches it: ``!=`` and ``!~`` are true of it, every other comparison is false.

Agents differ from that, and from each other (QMF2.md 4.4.2): to them nothing is true of a missing value, no order
exists between integers and fractions, case counts, and libqmf2 knows no patterns. The predicate has only what means
the same everywhere, so it can let through too much; the test is for what the agents answer.
"""

from __future__ import annotations

import contextlib
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from qmf.views.conditions.fields import Field, value_text
from qmf.views.conditions.literals import Ago, boolean, moment, number
from qmf.views.conditions.tree import And, Comparison, Condition, ConditionError, Has, Not, Operator, Or, Search
from qmf.views.units import is_number

Test = Callable[[Any], bool]
#: The field of a name, in any case of letters; raises `CallerError` for unknown ones.
FindField = Callable[[str], Field]

_ValueTest = Callable[[Any], bool]
_ORDER: Mapping[Operator, Callable[[Any, Any], bool]] = {
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
}
_REVERSED = {
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}
_EQUALITIES = (Operator.EQ, Operator.EXACT, Operator.NE)
_WIRE = {Operator.EQ: "eq", Operator.EXACT: "eq"} | {
    Operator.LT: "lt",
    Operator.LE: "le",
    Operator.GT: "gt",
    Operator.GE: "ge",
}
#: Deeper predicates are not sent: agents refuse more than 32 levels.
_DEEPEST = 20


@attrs.frozen
class ObjectFilter:
    """A condition that can be applied to objects.

    Attributes:
        test: for each object; None if all pass.
        predicate: for the agents, in wire form; all objects that pass fulfil it, and others may. Empty if they cannot
            help.
    """

    test: Test | None = None
    predicate: Sequence[object] = ()


def compile_filter(condition: Condition | None, find: FindField, search_text: Callable[[Any], str]) -> ObjectFilter:
    """The filter for a condition.

    Args:
        condition: the condition; None for all objects.
        find: finds the field of a name.
        search_text: the text of an object that words are searched for in.

    Raises:
        ConditionError: a text is not a value of its field, or not a regular expression.
        CallerError: what `find` raises for unknown names.
    """
    if condition is None:
        return ObjectFilter()
    return ObjectFilter(_Tests(find, search_text).test(condition), _predicate(condition, find))


# -- tests -------------------------------------------------------------------------------------------------------------


@attrs.frozen
class _Tests:
    find: FindField
    search_text: Callable[[Any], str]

    def test(self, condition: Condition) -> Test:
        match condition:
            case Search(text):
                return self._search([text], [])
            case Has(name):
                read = self.find(name).read
                return lambda obj: bool(read(obj))
            case Comparison(name, sign, text):
                return _comparison(self.find(name), sign, text)
            case Not(part):
                inner = self.test(part)
                return lambda obj: not inner(obj)
            case And(parts):
                return self._every(parts)
            case Or(parts):
                some = [self.test(part) for part in parts]
                return lambda obj: any(test(obj) for test in some)

    def _every(self, parts: Sequence[Condition]) -> Test:
        """All words are searched for at once: the text of an object is made once."""
        words = [part.text for part in parts if isinstance(part, Search)]
        without = [part.part.text for part in parts if isinstance(part, Not) and isinstance(part.part, Search)]
        others = [part for part in parts if not isinstance(part.part if isinstance(part, Not) else part, Search)]
        every = [self.test(part) for part in others]
        if words or without:
            every.append(self._search(words, without))
        return lambda obj: all(test(obj) for test in every)

    def _search(self, words: Sequence[str], without: Sequence[str]) -> Test:
        wanted, unwanted = [word.lower() for word in words], [word.lower() for word in without]
        search_text = self.search_text

        def test(obj: Any) -> bool:
            text = search_text(obj).lower()
            return all(word in text for word in wanted) and not any(word in text for word in unwanted)

        return test


def _comparison(field: Field, sign: Operator, text: str) -> Test:
    read = field.read
    if sign in (Operator.MATCH, Operator.NO_MATCH):
        test = _pattern(text)
    elif sign in _EQUALITIES:
        test = _equality(field, text, exact=sign is Operator.EXACT)
    else:
        test = _order(field, sign, text)
    wanted = sign not in (Operator.NE, Operator.NO_MATCH)

    def holds(obj: Any) -> bool:
        value = read(obj)
        return (value is not None and test(value)) is wanted

    return holds


def _pattern(text: str) -> _ValueTest:
    try:
        search = re.compile(text).search
    except (re.error, OverflowError, RecursionError) as error:
        raise ConditionError(f"{text!r} is not a regular expression: {error}") from None
    return lambda value: search(value_text(value)) is not None


def _equality(field: Field, text: str, *, exact: bool) -> _ValueTest:
    known = None if field.parse is None else field.parse(text)
    if known is not None:
        return lambda value: bool(value == known)
    if field.is_bool:
        wanted = boolean(field, text)
        return lambda value: value is wanted
    if field.is_time and isinstance(ago := moment(field, text), Ago):
        return lambda value: bool(value == ago.now())
    if field.is_number or field.is_time:
        equal = moment(field, text) if field.is_time else number(field, text)
        return lambda value: is_number(value) and bool(value == equal)
    if exact:
        return lambda value: value_text(value) == text
    lower = text.lower()
    if field.is_reference:
        return lambda value: f":{value_text(value)}".lower().endswith(f":{lower}")
    if field.type is None:
        return _equality_by_value(field, text)
    return lambda value: value_text(value).lower() == lower


def _equality_by_value(field: Field, text: str) -> _ValueTest:
    """For values of unknown types: each as what it is."""
    lower = text.lower()
    as_number, as_bool = _number_or_none(field, text), None
    with contextlib.suppress(ConditionError):
        as_bool = boolean(field, text)

    def equal(value: object) -> bool:
        if isinstance(value, bool):
            return value is as_bool
        return (is_number(value) and value == as_number) or value_text(value).lower() == lower

    return equal


def _order(field: Field, sign: Operator, text: str) -> _ValueTest:
    compare = _ORDER[_REVERSED[sign] if field.reverse else sign]
    known = None if field.parse is None else field.parse(text)
    if known is not None:
        return lambda value: isinstance(value, type(known)) and compare(value, known)
    if field.is_bool or field.is_reference:
        what, signs = ("a reference", "=, != or ~") if field.is_reference else ("true or false", "= or !=")
        raise ConditionError(f"{field.name} is {what}: compare it with {signs}")
    if field.is_time:
        limit = moment(field, text)
        if isinstance(limit, Ago):
            return lambda value: is_number(value) and compare(value, limit.now())
        return lambda value: is_number(value) and compare(value, limit)
    if field.is_number:
        most = number(field, text)
        return lambda value: is_number(value) and compare(value, most)
    if field.type is not None:
        return lambda value: compare(value_text(value), text)
    as_number = _number_or_none(field, text)

    def by_value(value: object) -> bool:
        if is_number(value):
            return as_number is not None and compare(value, as_number)
        return isinstance(value, str) and compare(value, text)

    return by_value


def _number_or_none(field: Field, text: str) -> int | float | None:
    try:
        return number(field, text)
    except ConditionError:
        return None


# -- predicates --------------------------------------------------------------------------------------------------------


def _predicate(condition: Condition, find: FindField, depth: int = 0) -> list[object]:
    """What agents can test of a condition; empty for nothing."""
    if depth > _DEEPEST:
        return []
    match condition:
        case Comparison(name, sign, text):
            value = _wire_value(find(name), sign, text)
            return [] if value is None else [_WIRE[sign], find(name).wire_name, ["quote", value]]
        case Has(name):
            return _wire_has(find(name))
        case And(parts):
            every = [part for item in parts if (part := _predicate(item, find, depth + 1))]
            return ["and", *every] if len(every) > 1 else [item for part in every for item in part]
        case Or(parts):
            some = [_predicate(item, find, depth + 1) for item in parts]
            return ["or", *some] if all(some) else []
        case _:
            return []


def _wire_value(field: Field, sign: Operator, text: str) -> int | str | None:
    """What a field is compared with at the agent, if that means the same there; else None."""
    if not field.wire_name or field.parse is not None or field.type is None or sign not in _WIRE:
        return None
    if field.type.is_string:
        return text if sign is Operator.EXACT else None
    if field.is_bool:
        return boolean(field, text)
    if not field.type.is_integer:
        return None
    value = moment(field, text) if field.is_time else number(field, text)
    return value if isinstance(value, int) and -(2**63) <= value < 2**64 else None


def _wire_has(field: Field) -> list[object]:
    kind = field.type
    if not field.wire_name or kind is None:
        return []
    if field.is_bool:
        return ["eq", field.wire_name, ["quote", True]]
    if kind.is_string or field.is_number or field.is_time:
        return ["ne", field.wire_name, ["quote", "" if kind.is_string else 0]]
    return []
