"""Invented schemas: hypothesis strategies for models, and a writer that makes XML of them."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TypeVar
from uuid import UUID
from xml.sax.saxutils import quoteattr

import attrs
from hypothesis import strategies as st

from qmf.schema import (
    TYPES,
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
    Severity,
    Statistic,
    Style,
)

#: Apache's own schema files and captured messages, which lie beside the checkout.
APACHE = Path(__file__).resolve().parents[3] / "shared" / "protocol" / "schemas"
VECTORS = APACHE.parent / "vectors"
#: The schemas that we ship.
SHIPPED = Path(__file__).resolve().parents[2] / "schemas"

DIRECT = [item for item in TYPES.values() if item.style is Style.DIRECT]
COUNTERS = [item for item in TYPES.values() if item.style is not Style.DIRECT]

# Words that mean something to Python or to generated code, some with the underscore that they would get, among others.
_WORDS = """
    class class_ class__ def import import_ lambda None True self self_ super schema schema_ str int int_ bool float
    type list Attribute Attribute_ Event event Result ManagedObject ObjectId UUID uuid Mapping Sequence attrs attr
    match print property cls Any Ref object SCHEMA PACKAGE TYPES Schema Agent xHigh x xLow name name_ a A
"""
NAMES = st.one_of(st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,12}", fullmatch=True), st.sampled_from(_WORDS.split()))

# Texts that code generators stumble over, and anything else that XML can hold.
_HARD_TEXTS = [
    'say "hello"',
    'ends with "',
    '"""',
    "'''",
    "it's",
    "\\",
    "back\\slash \\n \\x41 \\N{BULLET} \\u",
    "two\nlines\tand a tab\r",
    "{{ jinja }} {% raw %} {# no #} ${x} %s {0}",
    "??/ ??' trigraphs",
    "Größe der Schlange – 長さ 🐍 e\u0301 \u200b\u202e\u2028\ufeff",
    "",
    "   ",
    "# noqa",
    "word" * 60,
    "many words " * 40,
    "'\"" * 70,
    "長" * 90,
]
_NOT_XML = "".join(map(chr, (*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF)))
_CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters=_NOT_XML)
TEXTS = st.one_of(st.sampled_from(_HARD_TEXTS), st.text(_CHARACTERS, max_size=150))

T = TypeVar("T")


def _maybe(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    return st.none() | strategy


# Hypothesis looks through a strategy when it first draws from it, which takes longer than to draw. So those that need
# not be made for each value are made once.
_MAYBE_TEXT = _maybe(TEXTS)
_DIRECT_TYPES, _ALL_TYPES = st.sampled_from(DIRECT), st.sampled_from(DIRECT + COUNTERS)
_ACCESSES, _DIRECTIONS, _SEVERITIES = st.sampled_from(Access), st.sampled_from(Direction), st.sampled_from(Severity)
_ONE_TO_THREE = st.lists(NAMES, min_size=1, max_size=3)
_CLASS_NAMES = st.lists(NAMES, min_size=1, max_size=3, unique_by=str.lower)
_UP_TO_THREE, _UP_TO_FOUR, _UP_TO_EIGHT = (st.lists(NAMES, max_size=most, unique=True) for most in (3, 4, 8))
_FINITE = st.floats(allow_nan=False, allow_infinity=False, width=32).map(lambda number: number + 0.0)  # no -0.0
_JSON_VALUES: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
#: Values of the types that have no bounds.
_UNBOUNDED: dict[str, st.SearchStrategy[object]] = {
    "bool": st.booleans(),
    "uuid": st.uuids(),
    "map": st.dictionaries(TEXTS, _JSON_VALUES, max_size=3),
    "list": st.lists(_JSON_VALUES, max_size=3),
}


@functools.cache
def _lengths(type: QmfType) -> st.SearchStrategy[int | None]:
    assert type.max_bytes is not None
    return _maybe(st.integers(1, type.max_bytes))


@st.composite
def _bounds(draw: st.DrawFn, type: QmfType) -> dict[str, int | float | None]:
    if type.is_string:
        return {"max_len": draw(_lengths(type))}
    numbers: st.SearchStrategy[int] | st.SearchStrategy[float]
    if type.is_integer:
        numbers = st.integers(type.minimum, type.maximum)
    elif type.name in ("float", "double"):
        numbers = _FINITE
    else:
        return {}
    low, high = sorted([draw(numbers), draw(numbers)])
    return {"minimum": draw(st.sampled_from([None, low])), "maximum": draw(st.sampled_from([None, high]))}


def values(
    type: QmfType, *, minimum: float | None = None, maximum: float | None = None, max_len: int | None = None
) -> st.SearchStrategy[object]:
    """Values of a type within bounds; not for `objId`."""
    if type.is_string:
        limit = min(max_len or 255, 255)
        return TEXTS.filter(lambda text: len(text.encode()) <= limit) | st.just("")
    if type.is_integer:
        low = type.minimum if minimum is None else int(minimum)
        return st.integers(low, type.maximum if maximum is None else int(maximum))
    if type.name in ("float", "double"):
        return st.floats(minimum, maximum, allow_nan=False, width=32)
    return _UNBOUNDED[type.name]


@st.composite
def _arguments(draw: st.DrawFn, classes: list[str], *, event: bool) -> tuple[Argument, ...]:
    result = []
    for name in draw(_UP_TO_FOUR):
        type = draw(_DIRECT_TYPES)
        direction = Direction.IN if event else draw(_DIRECTIONS)
        bounds = draw(_bounds(type))
        default = None
        if direction is not Direction.OUT and type.name != "objId":
            default = draw(_maybe(values(type, **bounds)))  # type: ignore[arg-type]
        result.append(
            Argument(
                name=name,
                type=type,
                direction=direction,
                default=default,
                unit=draw(_MAYBE_TEXT),
                desc=draw(_MAYBE_TEXT),
                references=draw(_maybe(_references(classes))) if type.name == "objId" else None,
                **bounds,  # type: ignore[arg-type]
            )
        )
    return tuple(result)


def _references(classes: list[str]) -> st.SearchStrategy[Reference]:
    return st.builds(Reference, st.just(None), st.sampled_from(classes)) | st.just(Reference("org.other", "Thing"))


@st.composite
def _properties(draw: st.DrawFn, names: list[str], classes: list[str]) -> tuple[Property, ...]:
    result = []
    parent = False
    for name in names:
        type = draw(_DIRECT_TYPES)
        index = draw(st.booleans())
        general = type.name == "objId" and draw(st.booleans())
        parent_ref = type.name == "objId" and not parent and draw(st.booleans())
        parent = parent or parent_ref
        result.append(
            Property(
                name=name,
                type=type,
                access=draw(_ACCESSES),
                index=index,
                optional=not index and draw(st.booleans()),
                parent_ref=parent_ref,
                references=draw(_references(classes)) if type.name == "objId" and not general else None,
                general_reference=general,
                unit=draw(_MAYBE_TEXT),
                desc=draw(_MAYBE_TEXT),
                **draw(_bounds(type)),  # type: ignore[arg-type]
            )
        )
    return tuple(result)


@st.composite
def _statistics(draw: st.DrawFn, names: list[str], taken: set[str], classes: list[str]) -> tuple[Statistic, ...]:
    result: list[Statistic] = []
    taken = set(taken)
    for name in names:
        type = draw(_ALL_TYPES)
        item = Statistic(
            name=name,
            type=type,
            unit=draw(_MAYBE_TEXT),
            desc=draw(_MAYBE_TEXT),
            references=draw(_references(classes)) if type.name == "objId" else None,
            **draw(_bounds(type)),  # type: ignore[arg-type]
        )
        wire_names = {name, *(n for entry in item.entries for n in (entry.name, entry.v1_name))}
        if wire_names & taken:
            continue
        taken |= wire_names
        sources = [s.name for s in result if s.type.is_integer and s.type.style is not Style.MMA and s.assign is None]
        if type.style is Style.COUNT and sources and draw(st.booleans()):
            first, second = draw(st.sampled_from(sources)), draw(st.sampled_from(sources))
            item = attrs.evolve(item, assign=draw(st.sampled_from([first, f"{first} - {second}", f"{first}+{second}"])))
        result.append(item)
    return tuple(result)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    """Any valid schema without hashes."""
    package = ".".join(draw(_ONE_TO_THREE))
    class_names = draw(_CLASS_NAMES)
    classes = []
    for name in class_names:
        names = draw(_UP_TO_EIGHT)
        split = draw(st.integers(0, len(names)))
        properties = draw(_properties(names[:split], class_names))
        method_names = draw(_UP_TO_THREE)
        classes.append(
            ClassSchema(
                package=package,
                name=name,
                properties=properties,
                statistics=draw(_statistics(names[split:], set(names[:split]), class_names)),
                methods=tuple(
                    Method(name=n, desc=draw(_MAYBE_TEXT), arguments=draw(_arguments(class_names, event=False)))
                    for n in method_names
                ),
                desc=draw(_MAYBE_TEXT),
            )
        )
    arguments = draw(_arguments(class_names, event=True))
    events = [
        EventSchema(
            package=package,
            name=name,
            severity=draw(_SEVERITIES),
            arguments=tuple(item for item in arguments if draw(st.booleans())),
            desc=draw(_MAYBE_TEXT),
        )
        for name in draw(_UP_TO_THREE)
    ]
    return Schema(package=package, classes=tuple(classes), events=tuple(events), desc=draw(_MAYBE_TEXT))


def without_hashes(schema: Schema) -> Schema:
    """The schema as it was before it had hashes."""
    return attrs.evolve(
        schema,
        classes=tuple(attrs.evolve(item, hash=None) for item in schema.classes),
        events=tuple(attrs.evolve(item, hash=None) for item in schema.events),
    )


def to_xml(schema: Schema, *, grouped: bool = False) -> bytes:
    """Write a schema as XML.

    Args:
        grouped: put the members of each class into a group of its own, which the class uses.
    """
    lines = [_tag("schema", {"package": schema.package, "desc": schema.desc}, close=False)]
    for number, item in enumerate(schema.classes):
        members = [
            *(_property(p) for p in item.properties),
            *(_statistic(s) for s in item.statistics),
            *(line for method in item.methods for line in _method(method)),
        ]
        if grouped:
            lines += [f'<group name="g{number}">', *members, "</group>"]
            members = [f'<group use="g{number}"/>']
        lines += [_tag("class", {"name": item.name, "desc": item.desc}, close=False), *members, "</class>"]
    lines.append("<eventArguments>")
    arguments = {argument.name: argument for event in schema.events for argument in event.arguments}
    lines += [_argument(argument) for argument in arguments.values()]
    lines.append("</eventArguments>")
    for event in schema.events:
        assert event.severity is not None
        names = ", ".join(argument.name for argument in event.arguments)
        lines.append(
            _tag("event", {"name": event.name, "sev": event.severity.schema_name, "args": names, "desc": event.desc})
        )
    lines.append("</schema>")
    return "\n".join(lines).encode()


def _tag(name: str, attributes: dict[str, object], *, close: bool = True) -> str:
    text = "".join(f" {key}={quoteattr(str(value))}" for key, value in attributes.items() if value is not None)
    return f"<{name}{text}{'/' if close else ''}>"


def _flag(value: bool) -> str | None:
    return "y" if value else None


def _common(item: Property | Statistic | Argument) -> dict[str, object]:
    return {
        "name": item.name,
        "type": item.type.name,
        "unit": item.unit,
        "desc": item.desc,
        "references": item.references,
        "min": None if item.minimum is None else repr(item.minimum),
        "max": None if item.maximum is None else repr(item.maximum),
        "maxLen": item.max_len,
    }


def _property(item: Property) -> str:
    flags = {
        "index": _flag(item.index),
        "optional": _flag(item.optional),
        "parentRef": _flag(item.parent_ref),
        "isGeneralReference": _flag(item.general_reference),
    }
    return _tag("property", {**_common(item), "access": item.access.value, **flags})


def _statistic(item: Statistic) -> str:
    return _tag("statistic", {**_common(item), "assign": item.assign})


def _method(item: Method) -> list[str]:
    start = _tag("method", {"name": item.name, "desc": item.desc}, close=False)
    return [start, *(_argument(argument) for argument in item.arguments), "</method>"]


def _argument(item: Argument) -> str:
    return _tag("arg", {**_common(item), "dir": item.direction.value, "default": default_text(item.default)})


def default_text(value: object) -> str | None:
    """A default as XML has it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return json.dumps(value)
    return str(value) if isinstance(value, UUID) else repr(value)
