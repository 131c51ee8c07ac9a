"""From a model to XML: the canonical form of a schema file.

`parse_schema(to_xml(schema))` gives an equal model. Its hashes, which cover the XML text, equal those of the original
file if that has the attributes in our order, spells values as we do, and uses no groups, which a model does not have.
Models received from agents may have properties that XML cannot express; `losses` lists them.

Needs no XML library, because agents and consoles use this module, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from qmf.schema.literals import format_value
from qmf.schema.model import Argument, ClassSchema, EventSchema, Method, Property, Schema, Statistic

_INDENT = "  "

#: Characters that XML 1.0 cannot express.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)

Attributes = Mapping[str, object]
DescribedElement = ClassSchema | EventSchema | Property | Statistic | Method | Argument


def to_xml(schema: Schema) -> str:
    """A schema as XML text, one element per line, with a newline at the end."""
    return "\n".join(_schema(schema)) + "\n"


def losses(schema: Schema) -> Iterator[str]:
    """What `to_xml` must change because XML cannot express it, one line each; empty for a schema read from XML."""
    unknown = [event.name for event in schema.events if event.severity is None]
    if unknown:
        yield f"unknown severities, written as inform: {', '.join(unknown)}"
    yield from _redefined_arguments(schema)
    for where, item in _described_elements(schema):
        if _NOT_XML.search(item.desc or ""):
            yield f"{where}: the description has characters that XML cannot express"
        if isinstance(item, Argument) and item.default is not None and _default(item) is None:
            yield f"{where}: the default {item.default!r} cannot be written"
    anywhere = [where for where, item in _described_elements(schema) if _refers_to_unknown(item)]
    if anywhere:
        yield f"unknown classes of references, written as any class: {', '.join(anywhere)}"


def _redefined_arguments(schema: Schema) -> Iterator[str]:
    arguments = _event_arguments(schema)
    for event in schema.events:
        for argument in event.arguments:
            if arguments[argument.name] != argument:
                yield f"event {event.name}: argument {argument.name} is written as defined by another event"


def _refers_to_unknown(item: object) -> bool:
    """True for a reference whose class is not known."""
    return isinstance(item, Property | Statistic) and _refers_to_anything(item) and not _is_general(item)


def _schema(schema: Schema) -> Iterator[str]:
    yield _tag("schema", {"package": schema.package, "desc": schema.desc}, close=False)
    for item in schema.classes:
        yield ""
        yield from _container("class", {"name": item.name, "desc": item.desc}, list(_members(item)))
    arguments = _event_arguments(schema)
    if arguments:
        yield ""
        yield from _container("eventArguments", {}, [_argument(item) for item in arguments.values()])
    if schema.events:
        yield ""
    for event in schema.events:
        yield _INDENT + _event(event)
    yield "</schema>"


def _members(item: ClassSchema) -> Iterator[str]:
    for member in item.properties:
        yield _property(member)
    for statistic in item.statistics:
        yield _statistic(statistic)
    for method in item.methods:
        yield from _method(method)


def _container(name: str, attributes: Attributes, lines: list[str]) -> Iterator[str]:
    if not lines:
        yield _INDENT + _tag(name, attributes)
        return
    yield _INDENT + _tag(name, attributes, close=False)
    for line in lines:
        yield _INDENT * 2 + line
    yield f"{_INDENT}</{name}>"


def _property(item: Property) -> str:
    return _tag(
        "property",
        {
            "name": item.name,
            "type": item.type.name,
            "access": item.access.value,
            "references": item.references,
            "isGeneralReference": _flag(_refers_to_anything(item) or item.general_reference),
            "index": _flag(item.index),
            "parentRef": _flag(item.parent_ref),
            "unit": item.unit,
            **_bounds(item),
            "optional": _flag(item.optional),
            "desc": item.desc,
        },
    )


def _statistic(item: Statistic) -> str:
    return _tag(
        "statistic",
        {
            "name": item.name,
            "type": item.type.name,
            "references": item.references,
            "isGeneralReference": _flag(_refers_to_anything(item)),
            "unit": item.unit,
            **_bounds(item),
            "assign": item.assign,
            "desc": item.desc,
        },
    )


def _method(item: Method) -> Iterator[str]:
    attributes = {"name": item.name, "desc": item.desc}
    if not item.arguments:
        yield _tag("method", attributes)
        return
    yield _tag("method", attributes, close=False)
    for argument in item.arguments:
        yield _INDENT + _argument(argument, direction=argument.direction.value)
    yield "</method>"


def _argument(item: Argument, *, direction: str | None = None) -> str:
    return _tag(
        "arg",
        {
            "name": item.name,
            "dir": direction,
            "type": item.type.name,
            "references": item.references,
            "unit": item.unit,
            **_bounds(item),
            "default": _default(item),
            "desc": item.desc,
        },
    )


def _event(item: EventSchema) -> str:
    severity = None if item.severity is None else item.severity.schema_name
    names = ", ".join(argument.name for argument in item.arguments)
    return _tag("event", {"name": item.name, "sev": severity, "args": names or None, "desc": item.desc})


def _event_arguments(schema: Schema) -> dict[str, Argument]:
    """The arguments of all events by name: in XML a name has one definition for all events."""
    found: dict[str, Argument] = {}
    for event in schema.events:
        for item in event.arguments:
            found.setdefault(item.name, item)
    return found


def _bounds(item: Property | Statistic | Argument) -> Attributes:
    numbers = {"min": item.minimum, "max": item.maximum, "maxLen": item.max_len}
    return {name: format_value(value) for name, value in numbers.items() if value is not None}


def _default(item: Argument) -> str | None:
    if item.default is None:
        return None
    try:
        return format_value(item.default)
    except ValueError:
        return None


def _refers_to_anything(item: Property | Statistic) -> bool:
    """True for a reference without a class, be it general or unknown."""
    return item.type.name == "objId" and item.references is None


def _is_general(item: Property | Statistic) -> bool:
    return isinstance(item, Property) and item.general_reference


def _flag(value: bool) -> str | None:
    return "y" if value else None


def _tag(name: str, attributes: Attributes, *, close: bool = True) -> str:
    text = "".join(f' {key}="{_escape(str(value))}"' for key, value in attributes.items() if value is not None)
    return f"<{name}{text}{'/' if close else ''}>"


def _escape(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text).translate(_ESCAPES)


def _described_elements(schema: Schema) -> Iterator[tuple[str, DescribedElement]]:
    """Everything that has a description, with its place."""
    for item in schema.classes:
        yield f"class {item.name}", item
        members: list[Property | Statistic | Method] = [*item.properties, *item.statistics, *item.methods]
        for member in members:
            yield f"{item.name}.{member.name}", member
        for method in item.methods:
            for argument in method.arguments:
                yield f"{item.name}.{method.name}.{argument.name}", argument
    for event in schema.events:
        yield f"event {event.name}", event
        for argument in event.arguments:
            yield f"event {event.name}.{argument.name}", argument
