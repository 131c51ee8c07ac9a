"""Python values and schema values as expressions."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from qmf.schema import (
    Access,
    Argument,
    ClassSchema,
    Direction,
    EventSchema,
    Method,
    Property,
    QmfType,
    Reference,
    Schema,
    Statistic,
)
from qmf_codegen.filters.layout import Code, Node, Text, call, flat, tuple_of

#: A longer default would blow up a signature.
_MAX_LITERAL = 40


def literal(value: object, type: QmfType) -> Node:
    """The default of an argument."""
    match value:
        case str():
            return Text(value)
        case bool() | int():
            return Code(repr(value))
        case float():
            # The formatter's spelling of exponents.
            return Code(repr(value).replace("e+", "e") if math.isfinite(value) else f'float("{value}")')
        case UUID():
            return call("UUID", Text(str(value)))
        case Mapping() | Sequence():
            return _nested(value, type)
    raise TypeError(f"no default of type {type.name} can be {value!r}")


def is_short(value: object) -> bool:
    """True for a default that can stand in a signature: immutable, and a few characters long."""
    match value:
        case str():
            return len(flat(Text(value))) <= _MAX_LITERAL
        case bool() | int():
            return True
        case float():
            return math.isfinite(value)
    return False


def property_(item: Property) -> Node:
    """A property of a class schema."""
    named = _head(item)
    if item.access is not Access.RO:
        named["access"] = Code(f"Access.{item.access.name}")
    named |= _flags(index=item.index, optional=item.optional, parent_ref=item.parent_ref)
    named |= _flags(general_reference=item.general_reference)
    return call("Property", **named, **_tail(item))


def statistic(item: Statistic) -> Node:
    """A statistic of a class schema."""
    assign: dict[str, Node] = {} if item.assign is None else {"assign": Text(item.assign)}
    return call("Statistic", **_head(item), **assign, **_tail(item))


def argument(item: Argument) -> Node:
    """An argument of a method or event schema."""
    named = _head(item)
    if item.direction is not Direction.IN:
        named["direction"] = Code(f"Direction.{item.direction.name}")
    if item.default is not None:
        named["default"] = literal(item.default, item.type)
    return call("Argument", **named, **_tail(item))


def method(item: Method) -> Node:
    """A method of a class schema."""
    return call("Method", name=Text(item.name), **_list("arguments", map(argument, item.arguments)), **_desc(item.desc))


def class_schema(item: ClassSchema) -> Node:
    """A whole class schema."""
    return call(
        "ClassSchema",
        package=Code("PACKAGE"),
        name=Text(item.name),
        **_hash(item.hash),
        **_list("properties", map(property_, item.properties)),
        **_list("statistics", map(statistic, item.statistics)),
        **_list("methods", map(method, item.methods)),
        **_desc(item.desc),
    )


def event_schema(item: EventSchema) -> Node:
    """A whole event schema."""
    severity: dict[str, Node] = {} if item.severity is None else {"severity": Code(f"Severity.{item.severity.name}")}
    return call(
        "EventSchema",
        package=Code("PACKAGE"),
        name=Text(item.name),
        **severity,
        **_hash(item.hash),
        **_list("arguments", map(argument, item.arguments)),
        **_desc(item.desc),
    )


def _nested(value: Mapping[object, object] | Sequence[object], type: QmfType) -> Node:
    if not value:
        return Code(repr(value))
    # As JSON rather than as nested displays: a string can be cut anywhere.
    return call("parse_value", Code(f'TYPES["{type.name}"]'), Text(json.dumps(value)))


def _head(item: Property | Statistic | Argument) -> dict[str, Node]:
    return {"name": Text(item.name), "type": Code(f'TYPES["{item.type.name}"]')}


def _tail(item: Property | Statistic | Argument) -> dict[str, Node]:
    named: dict[str, Node] = {}
    if item.references is not None:
        named["references"] = _reference(item.references)
    if item.unit is not None:
        named["unit"] = Text(item.unit)
    numbers = {"minimum": item.minimum, "maximum": item.maximum, "max_len": item.max_len}
    named |= {key: literal(number, item.type) for key, number in numbers.items() if number is not None}
    return named | _desc(item.desc)


def _reference(reference: Reference) -> Node:
    package = Code("None") if reference.package is None else Text(reference.package)
    return call("Reference", package, Text(reference.name))


def _flags(**flags: bool) -> dict[str, Node]:
    return {name: Code("True") for name, value in flags.items() if value}


def _list(name: str, items: Iterable[Node]) -> dict[str, Node]:
    found = list(items)
    return {name: tuple_of(*found)} if found else {}


def _desc(desc: str | None) -> dict[str, Node]:
    return {} if desc is None else {"desc": Text(desc)}


def _hash(value: UUID | None) -> dict[str, Node]:
    return {} if value is None else {"hash": call("UUID", Text(str(value)))}


def schema(item: Schema, classes: Sequence[str], events: Sequence[str]) -> Node:
    """A whole schema; its classes and events are named by their constants."""
    return call(
        "Schema",
        package=Code("PACKAGE"),
        **_list("classes", map(Code, classes)),
        **_list("events", map(Code, events)),
        **_desc(item.desc),
    )
