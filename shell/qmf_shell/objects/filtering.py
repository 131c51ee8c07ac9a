"""Turns a condition on objects of a class into a test: a predicate for the agents if possible, else a function.

Agents can compare wire values only (QMF2.md 4.4.2), so conditions on references and on `COMMON_FIELDS` are tested here.
So is whether a map or a list is empty, which a predicate cannot express. A field that no version of the class has is an
error, and so is a text that is not a value of the field's type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import attrs

from qmf.schema import ClassSchema, Style, parse_value
from qmf.views.times import parse_duration
from qmf.views.units import parse_number
from qmf_shell.objects.fields import ObjectField, field_value, find_field
from qmf_shell.parsing.conditions import (
    COMPARE,
    And,
    Comparison,
    Condition,
    ConditionError,
    Not,
    Operator,
    Or,
    Truthy,
    compile_pattern,
    truthy_names,
    value_names,
)
from qmf_shell.session.backend import ObjectKey, ObjectRecord

ObjectTest = Callable[[ObjectRecord], bool]
#: Finds the object that a text names, to be compared with a field that is a reference.
ResolveField = Callable[[str, ObjectField], ObjectKey]


@attrs.frozen
class ObjectFilter:
    """A condition that can be applied to objects.

    Attributes:
        predicate: sent to the agents; empty if they cannot evaluate the condition.
        test: for the objects that they answer; None if the predicate is enough.
    """

    predicate: Sequence[object] = ()
    test: ObjectTest | None = None


def compile_filter(condition: Condition | None, schemas: Sequence[ClassSchema], resolve: ResolveField) -> ObjectFilter:
    """The filter for a condition on objects of a class.

    Args:
        condition: the condition; None for all objects.
        schemas: the versions of the class.
        resolve: finds the object that a reference is compared with.

    Raises:
        NotFoundError: the class has no such field.
        ConditionError: a text is not a value of the field's type, or not a regular expression.
    """
    if condition is None:
        return ObjectFilter()
    fields = {name: find_field(schemas, name) for name in value_names(condition)}
    local = any(field.type is None or field.is_reference for field in fields.values())
    if local or any(fields[name].is_collection for name in truthy_names(condition)):
        return ObjectFilter(test=_test(condition, fields, resolve))
    return ObjectFilter(predicate=_predicate(condition, fields))


def compile_test(condition: Condition, schemas: Sequence[ClassSchema], resolve: ResolveField) -> ObjectTest:
    """The function that tests a condition on objects of a class here, whatever the agents could do.

    Args:
        condition, schemas, resolve: as for `compile_filter`.

    Raises:
        NotFoundError, ConditionError: as `compile_filter`.
    """
    return _test(condition, {name: find_field(schemas, name) for name in value_names(condition)}, resolve)


# -- predicates for the agents -----------------------------------------------------------------------------------------

_PREDICATE_OPERATORS = {
    Operator.EQ: "eq",
    Operator.NE: "ne",
    Operator.LT: "lt",
    Operator.LE: "le",
    Operator.GT: "gt",
    Operator.GE: "ge",
}


def _predicate(condition: Condition, fields: Mapping[str, ObjectField]) -> list[object]:
    match condition:
        case Comparison(name, Operator.MATCH, text):
            return ["re_match", fields[name].name, ["quote", compile_pattern(text).pattern]]
        case Comparison(name, Operator.NO_MATCH, text):
            key = fields[name].name
            return ["and", ["exists", key], ["not", ["re_match", key, ["quote", compile_pattern(text).pattern]]]]
        case Comparison(name, operator, text):
            field = fields[name]
            return [_PREDICATE_OPERATORS[operator], field.name, ["quote", literal(field, text)]]
        case Truthy(name):
            key = fields[name].name
            empty = (["eq", key, ["quote", zero]] for zero in (False, 0, ""))
            return ["and", ["exists", key], ["not", *empty]]
        case Not(part):
            return ["not", _predicate(part, fields)]
        case And(parts):
            return ["and", *(_predicate(part, fields) for part in parts)]
        case Or(parts):
            return ["or", *(_predicate(part, fields) for part in parts)]


# -- tests made here ---------------------------------------------------------------------------------------------------


def _test(condition: Condition, fields: Mapping[str, ObjectField], resolve: ResolveField) -> ObjectTest:
    match condition:
        case Comparison(name, operator, text):
            return _comparison(fields[name], operator, text, resolve)
        case Truthy(name):
            field = fields[name]
            return lambda target: bool(field_value(target, field))
        case Not(part):
            inner = _test(part, fields, resolve)
            return lambda target: not inner(target)
        case And(parts):
            every = [_test(part, fields, resolve) for part in parts]
            return lambda target: all(test(target) for test in every)
        case Or(parts):
            some = [_test(part, fields, resolve) for part in parts]
            return lambda target: any(test(target) for test in some)


def _comparison(field: ObjectField, operator: Operator, text: str, resolve: ResolveField) -> ObjectTest:
    if operator in (Operator.MATCH, Operator.NO_MATCH):
        pattern = compile_pattern(text)
        expected = operator is Operator.MATCH

        def search(target: ObjectRecord) -> bool:
            value = field_value(target, field)
            shown = value.name if isinstance(value, ObjectKey) else value
            return shown is not None and (pattern.search(str(shown)) is not None) is expected

        return search
    other: object
    if field.is_reference:
        if operator not in (Operator.EQ, Operator.NE):
            raise ConditionError(f"{field.name} is a reference: compare it with =, != or ~")
        other = resolve(text, field)
    elif field.name in ("created", "updated"):
        other = _time(text)
    else:
        other = literal(field, text)
    compare = COMPARE[operator]

    def test(target: ObjectRecord) -> bool:
        value = field_value(target, field)
        try:
            return value is not None and compare(value, other)
        except TypeError:
            return False

    return test


# -- texts as values ---------------------------------------------------------------------------------------------------


def literal(field: ObjectField, text: str) -> object:
    """The value that a text stands for, of the field's type; also ``10k``, ``5s`` and dates.

    Raises:
        ConditionError: it is not a value of the type.
    """
    kind = field.type
    if kind is None:
        return text
    if kind.base == "absTime" and not text.lstrip("-").isdigit():
        return _time(text)
    if (kind.base == "deltaTime" or field.unit == "nanosecond") and (duration := _duration(text)) is not None:
        return duration
    number = _sized(text)
    if field.statistic and kind.style is Style.MMA and not field.name.endswith("Count"):
        # Averages are sent as whole numbers by some agents and as fractions by others.
        try:
            value = number if number is not None else float(text)
            return int(value) if float(value).is_integer() else float(value)
        except ValueError:
            raise ConditionError(f"{text!r} is not a value of {field.name}: not a number") from None
    try:
        if number is not None and kind.is_integer:
            return number
        return parse_value(kind, text)
    except ValueError as error:
        raise ConditionError(f"{text!r} is not a value of {field.name} ({kind.name}): {error}") from None


def _sized(text: str) -> int | None:
    """The number of a text with a prefix, such as ``10k``."""
    try:
        return round(parse_number(text)) if text[-1:].isalpha() else None
    except ValueError:
        return None


def _duration(text: str) -> int | None:
    try:
        return parse_duration(text)
    except ValueError:
        return None


def _time(text: str) -> int:
    """Nanoseconds since 1970 of a date, or of a duration before now: ``2024-05-01``, ``2024-05-01T12:00``, ``5m``."""
    if (ago := _duration(text)) is not None:
        return round(datetime.now(UTC).timestamp() * 1e9) - ago
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConditionError(f"{text!r} is not a time: write 2024-05-01, 2024-05-01T12:00 or 5m (ago)") from None
    return round(moment.astimezone().timestamp() * 1e9)
