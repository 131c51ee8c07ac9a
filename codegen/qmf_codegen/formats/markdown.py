"""A schema as a reference page in Markdown: tables for each class, its methods, and the events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from qmf.schema import Argument, ClassSchema, Method, Property, Reference, Schema, Statistic
from qmf.schema.documentation import bounds, sentence
from qmf_codegen import headers
from qmf_codegen.python.expressions import expression, is_short

TableRow = Sequence[str]

_SPECIAL = re.compile(r"([\\*_\[\]<>|])")


def document(schema: Schema, source: str) -> str:
    """The reference page of a schema from file `source`."""
    return "\n\n".join(_blocks(schema, source)) + "\n"


def _blocks(schema: Schema, source: str) -> Iterator[str]:
    yield headers.markup(source)
    yield f"# Package {_code(schema.package)}"
    yield from _paragraph(schema.desc)
    if schema.classes:
        yield "## Classes"
        yield _table(("class", "description"), [(_link(item.name), text(item.desc)) for item in schema.classes])
    for item in schema.classes:
        yield from _class(item, {other.name for other in schema.classes})
    if schema.events:
        yield "## Events"
        rows = [
            (
                _code(event.name),
                "" if event.severity is None else event.severity.schema_name,
                ", ".join(_code(argument.name) for argument in event.arguments),
                text(event.desc),
            )
            for event in schema.events
        ]
        yield _table(("event", "severity", "arguments", "description"), rows)
        arguments = {argument.name: argument for event in schema.events for argument in event.arguments}
        if arguments:
            yield "Arguments of events:"
            yield _table(("argument", "type", "unit", "rules", "description"), map(_argument, arguments.values()))


def _class(item: ClassSchema, classes: set[str]) -> Iterator[str]:
    yield f"## Class {item.name}"
    yield from _paragraph(item.desc)
    if item.properties:
        yield "Properties:"
        rows = [_property(field, classes) for field in item.properties]
        yield _table(("property", "type", "access", "unit", "rules", "description"), rows)
    if item.statistics:
        yield "Statistics:"
        yield _table(("statistic", "type", "unit", "rules", "description"), map(_statistic, item.statistics))
    for method in item.methods:
        yield from _method(method)


def _method(item: Method) -> Iterator[str]:
    inputs, outputs = (", ".join(argument.name for argument in items) for items in (item.inputs, item.outputs))
    yield f"### Method {_code(f'{item.name}({inputs})' + (f' -> {outputs}' if outputs else ''))}"
    yield from _paragraph(item.desc)
    if item.arguments:
        rows = [
            (row[0], argument.direction.value, *row[1:]) for argument in item.arguments for row in [_argument(argument)]
        ]
        yield _table(("argument", "dir", "type", "unit", "rules", "description"), rows)


def _property(item: Property, classes: set[str]) -> TableRow:
    flags = {
        "index": item.index,
        "optional": item.optional,
        "parent": item.parent_ref,
        "any class": item.general_reference,
    }
    rules = [*bounds(item), *(name for name, value in flags.items() if value)]
    if item.references is not None:
        rules.append(f"refers to {_reference(item.references, classes)}")
    return _code(item.name), item.type.name, item.access.value, text(item.unit), ", ".join(rules), text(item.desc)


def _statistic(item: Statistic) -> TableRow:
    rules = [*bounds(item)]
    if item.assign is not None:
        rules.append(f"= {_code(item.assign)}")
    return _code(item.name), item.type.name, text(item.unit), ", ".join(rules), text(item.desc)


def _argument(item: Argument) -> TableRow:
    rules = [*bounds(item)]
    if item.references is not None:
        rules.append(f"refers to {_reference(item.references, set())}")
    if item.default is not None:
        shown = expression(item.default) if is_short(item.default) else "..."
        rules.append(f"default {_code(shown)}")
    return _code(item.name), item.type.name, text(item.unit), ", ".join(rules), text(item.desc)


def _reference(item: Reference, classes: set[str]) -> str:
    return _link(item.name) if item.package is None and item.name in classes else _code(str(item))


def _link(name: str) -> str:
    """A link to a class on the same page, by the anchor of its heading."""
    return f"[{name.replace('_', chr(92) + '_')}](#class-{name.lower()})"


def _paragraph(desc: str | None) -> Iterator[str]:
    if desc and desc.strip():
        yield text(sentence(desc))


def _table(head: TableRow, rows: Iterable[TableRow]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def text(value: str | None) -> str:
    """Text of a schema on one line, escaped; text in pairs of backticks stays code."""
    line = " ".join((value or "").split())
    parts = line.split("`")
    if len(parts) % 2 == 0 or "" in parts[1::2]:
        return _SPECIAL.sub(r"\\\1", line).replace("`", "\\`")
    return "`".join(_plain(part) if number % 2 == 0 else _in_code(part) for number, part in enumerate(parts))


def _code(value: str) -> str:
    """Text as code, whatever characters it has."""
    line = " ".join(value.split())
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{_in_code(line)}{pad}{fence}"


def _plain(value: str) -> str:
    return _SPECIAL.sub(r"\\\1", value)


def _in_code(value: str) -> str:
    # In tables this character ends a cell even within code.
    return value.replace("|", "\\|")
