"""A condition and a class become a test: as a predicate for the agents where that is possible, else made here.

Agents see wire values only (QMF2.md 4.4.2), so conditions on references and on what is no value of the object (its
index, its agent) are tested here. So is whether a map or a list is empty, which no predicate can say. Names are found
in any case of letters; a name that no version of the class has is an error, and so is a value that is none of its type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import attrs

from qmf.errors import NotFoundError
from qmf.schema import ClassSchema, QmfType, Style, parse_value
from qmf_shell.objects.counters import is_counter
from qmf_shell.parsing.conditions import (
    And,
    Comparison,
    Condition,
    ConditionError,
    Not,
    Operator,
    Or,
    Truthy,
    truthy_names,
    value_names,
)
from qmf_shell.session.backend import ObjectKey, ObjectRecord
from qmf_shell.text import clean

#: What every object has besides its values.
COMMON_FIELDS = ("index", "agent", "broker", "class", "created", "updated")

#: Types that are times and no numbers.
TIME_TYPES = ("absTime", "deltaTime")

ObjectTest = Callable[[ObjectRecord], bool]
T = TypeVar("T")

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d)")
_NANOSECONDS = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9, "d": 86400e9}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([kMGT]i?)")
_FACTORS = {"k": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}
_BINARY = {"ki": 1024, "Mi": 1024**2, "Gi": 1024**3, "Ti": 1024**4}


@attrs.frozen
class ObjectField:
    """A value that objects of a class have.

    Attributes:
        name: its wire name, e.g. ``latencyAvg``; or one of `COMMON_FIELDS`.
        type: its type; None where no schema tells, and for `COMMON_FIELDS`.
        unit: of the value, or None.
        desc: what it is, or empty.
        statistic: it is measured.
        counter: it counts up for ever.
        element: the whole statistic that it is a part of, e.g. ``latency``; its own name otherwise.
    """

    name: str
    type: QmfType | None = None
    unit: str | None = None
    desc: str = ""
    statistic: bool = False
    counter: bool = False
    element: str = ""

    @property
    def is_number(self) -> bool:
        """Its values can be measured and drawn."""
        return self.type is not None and (
            self.type.is_integer
            or self.type.name in ("float", "double")
            or (self.statistic and self.type.style is not Style.DIRECT)
        )

    @property
    def is_reference(self) -> bool:
        """Its values are objects."""
        return self.type is not None and self.type.name == "objId"

    @property
    def is_collection(self) -> bool:
        """Its values hold others."""
        return self.type is not None and self.type.name in ("map", "list")


def fields_of(schema: ClassSchema) -> dict[str, ObjectField]:
    """Every wire value of a class by name, in schema order."""
    found: dict[str, ObjectField] = {}
    for item in schema.properties:
        found[item.name] = ObjectField(item.name, item.type, item.unit, item.desc or "", element=item.name)
    for statistic in schema.statistics:
        counter = is_counter(schema.package, statistic)
        for entry in statistic.entries:
            about = (statistic.desc or "") + entry.v1_suffix
            found[entry.name] = ObjectField(
                entry.name, statistic.type, statistic.unit, about.strip(), True, counter, statistic.name
            )
    return found


def find_field(schemas: Sequence[ClassSchema], name: str) -> ObjectField:
    """The value called `name` in one of several versions of a class, or of what every object has.

    A statistic with averages (mma) stands for its average.

    Raises:
        NotFoundError: none of them has it; tells which are similar.
    """
    found: dict[str, ObjectField] = {}
    for schema in schemas:
        for field in fields_of(schema).values():
            found.setdefault(field.name.lower(), field)
        for item in schema.statistics:
            if item.type.style is Style.MMA:
                found.setdefault(item.name.lower(), found[item.entries[-1].name.lower()])
    there = found.get(name.lower())
    if there is not None:
        return there
    if name.lower() in COMMON_FIELDS:
        return ObjectField(name.lower(), element=name.lower())
    owner = clean(schemas[0].name) if schemas else "object"
    raise NotFoundError(f"value of {owner}", clean(name), [field.name for field in found.values()])


def field_value(target: ObjectRecord, field: ObjectField) -> object:
    """The value of an object, or None."""
    if field.type is None and field.name in COMMON_FIELDS:
        identity = target.identity
        match field.name:
            case "index":
                return identity.index
            case "agent":
                return identity.key.agent
            case "broker":
                return identity.key.broker or target.broker or None
            case "class":
                return identity.class_key.name
            case "created":
                return target.created or None
            case _:
                return target.updated or None
    return target.values.get(field.name)


@attrs.frozen
class ObjectFilter:
    """A condition, ready.

    Attributes:
        predicate: for the agents; empty where they cannot help.
        test: for what they answer; None where the predicate says it all.
    """

    predicate: Sequence[object] = ()
    test: ObjectTest | None = None


def compile_filter(
    condition: Condition | None, schemas: Sequence[ClassSchema], resolve: Callable[[str, ObjectField], ObjectKey]
) -> ObjectFilter:
    """A condition on objects of a class.

    Args:
        condition: or None for all objects.
        schemas: the versions of the class.
        resolve: finds the object that a reference is compared with.

    Raises:
        NotFoundError: the class has no such value.
        ConditionError: a text is no value of the type, or no regular expression.
    """
    if condition is None:
        return ObjectFilter()
    fields = {name: find_field(schemas, name) for name in value_names(condition)}
    unseen = any(field.type is None or field.is_reference for field in fields.values())
    if unseen or any(fields[name].is_collection for name in truthy_names(condition)):
        return ObjectFilter(test=_test(condition, fields, resolve))
    return ObjectFilter(predicate=_predicate(condition, fields))


# -- for the agents ----------------------------------------------------------------------------------------------------

_WORDS = {
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
            return ["re_match", fields[name].name, ["quote", _pattern(text).pattern]]
        case Comparison(name, Operator.NO_MATCH, text):
            key = fields[name].name
            return ["and", ["exists", key], ["not", ["re_match", key, ["quote", _pattern(text).pattern]]]]
        case Comparison(name, operator, text):
            field = fields[name]
            return [_WORDS[operator], field.name, ["quote", literal(field, text)]]
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


# -- made here ---------------------------------------------------------------------------------------------------------


def _test(
    condition: Condition, fields: Mapping[str, ObjectField], resolve: Callable[[str, ObjectField], ObjectKey]
) -> ObjectTest:
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


def _comparison(
    field: ObjectField, operator: Operator, text: str, resolve: Callable[[str, ObjectField], ObjectKey]
) -> ObjectTest:
    if operator in (Operator.MATCH, Operator.NO_MATCH):
        pattern = _pattern(text)
        wanted = operator is Operator.MATCH

        def search(target: ObjectRecord) -> bool:
            value = field_value(target, field)
            shown = value.name if isinstance(value, ObjectKey) else value
            return shown is not None and (pattern.search(str(shown)) is not None) is wanted

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
    compare = _COMPARE[operator]

    def test(target: ObjectRecord) -> bool:
        value = field_value(target, field)
        try:
            return value is not None and compare(value, other)
        except TypeError:
            return False

    return test


_COMPARE: Mapping[Operator, Callable[..., bool]] = {
    Operator.EQ: lambda one, two: one == two,
    Operator.NE: lambda one, two: one != two,
    Operator.LT: lambda one, two: one < two,
    Operator.LE: lambda one, two: one <= two,
    Operator.GT: lambda one, two: one > two,
    Operator.GE: lambda one, two: one >= two,
}


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ConditionError(f"{text!r} is no regular expression: {error}") from None


# -- texts as values ---------------------------------------------------------------------------------------------------


def literal(field: ObjectField, text: str) -> object:
    """The value that a text stands for: of the slot's type, with ``10k``, ``5s`` and dates where they make sense.

    Raises:
        ConditionError: it stands for none.
    """
    kind = field.type
    if kind is None:
        return text
    if kind.base == "absTime" and not text.lstrip("-").isdigit():
        return _time(text)
    if (kind.base == "deltaTime" or field.unit == "nanosecond") and (match := _DURATION.fullmatch(text)):
        return round(float(match[1]) * _NANOSECONDS[match[2]])
    number = _sized(text)
    if field.statistic and kind.style is Style.MMA and not field.name.endswith("Count"):
        # Averages are sent as whole numbers by some agents and as fractions by others.
        try:
            value = number if number is not None else float(text)
            return int(value) if float(value).is_integer() else float(value)
        except ValueError:
            raise ConditionError(f"{text!r} is no value of {field.name}: not a number") from None
    try:
        if number is not None and kind.is_integer:
            return number
        return parse_value(kind, text)
    except ValueError as error:
        raise ConditionError(f"{text!r} is no value of {field.name} ({kind.name}): {error}") from None


def _sized(text: str) -> int | None:
    match = _SIZE.fullmatch(text)
    return round(float(match[1]) * (_FACTORS | _BINARY)[match[2]]) if match else None


def _time(text: str) -> int:
    """Nanoseconds since 1970 of a date, or of so long ago: ``2024-05-01``, ``2024-05-01T12:00``, ``5m``."""
    if match := _DURATION.fullmatch(text):
        ago = round(float(match[1]) * _NANOSECONDS[match[2]])
        return round(datetime.now(UTC).timestamp() * 1e9) - ago
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConditionError(f"{text!r} is no time: write 2024-05-01, 2024-05-01T12:00 or 5m (ago)") from None
    return round(moment.astimezone().timestamp() * 1e9)


def sorted_by(items: Sequence[T], key: Callable[[T], object], *, down: bool = False) -> list[T]:
    """Items by a value of any kind: numbers before texts; those without a value last, whichever way."""
    there = [(value, item) for item in items if (value := key(item)) is not None]
    missing = [item for item in items if key(item) is None]
    there.sort(key=lambda pair: _rank(pair[0]), reverse=down)
    return [item for _, item in there] + missing


def _rank(value: object) -> tuple[int, float, str]:
    if isinstance(value, int | float):
        return 0, float(value), ""
    return 1, 0.0, value.name if isinstance(value, ObjectKey) else str(value)
