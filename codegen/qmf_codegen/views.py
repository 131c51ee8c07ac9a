"""Fourth pass: what templates show, as plain values in which every text is final.

This module holds the values, and what both sides share; `agent_views` and `console_views` fill them for each side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from qmf.schema import Argument, ClassSchema, Method, Property, Schema, Statistic
from qmf_codegen.filters import layout, literals, types
from qmf_codegen.filters.layout import Code, Node
from qmf_codegen.naming import Names


@attrs.frozen
class Field:
    """One line of a class: a descriptor, or a field of an event or result.

    Attributes:
        name: its Python name.
        code: the rest of the line, e.g. ``= Attribute[str]("name")`` or ``: int``.
    """

    name: str
    code: str


@attrs.frozen
class MethodView:
    """A method: its first lines, its docstring, and the statement that it consists of."""

    signature: str
    doc: str
    body: str


@attrs.frozen
class ResultView:
    """The class of a method's outputs. Its schema is the method's, so it has no constant."""

    name: str
    doc: str
    fields: Sequence[Field]
    constant: str = ""


@attrs.frozen
class ClassView:
    """A class of objects, as an agent has them or as a console sees them.

    Attributes:
        constant: its schema's name in the schema module.
        init: `__init__` without indentation, or nothing for a class that has none of its own.
    """

    name: str
    constant: str
    doc: str
    fields: Sequence[Field]
    init: str
    methods: Sequence[MethodView]
    results: Sequence[ResultView]


@attrs.frozen
class EventView:
    """An event class."""

    name: str
    constant: str
    doc: str
    fields: Sequence[Field]


@attrs.frozen
class Constant:
    """A constant of the schema module and its expression."""

    name: str
    code: str


@attrs.frozen(kw_only=True)
class ModuleView:
    """The classes of one side, with the base classes that they have there.

    Attributes:
        what: what the module is, for its docstring.
        object_base, event_base, result_base: names of base classes.
        classes, events: in schema order.
    """

    what: str
    object_base: str
    event_base: str
    result_base: str
    classes: Sequence[ClassView]
    events: Sequence[EventView]

    @property
    def names(self) -> list[str]:
        """Every class of the module."""
        names = [item.name for item in self.events]
        for item in self.classes:
            names += [item.name, *(result.name for result in item.results)]
        return names


@attrs.frozen(kw_only=True)
class PackageView:
    """What one schema file and all its modules have in common.

    Attributes:
        source: name of the schema file.
        package: the QMF package.
        schema: for docstrings.
        constants: of the schema module, `SCHEMA` included.
    """

    source: str
    package: str
    schema: Schema
    constants: Sequence[Constant]


def package_view(schema: Schema, names: Names, source: str) -> PackageView:
    """The view of a schema from file `source`."""
    return PackageView(
        source=source, package=schema.package, schema=schema, constants=_constants(schema, names.constants)
    )


def _constants(schema: Schema, names: Sequence[str]) -> list[Constant]:
    nodes: list[Node] = [*map(literals.class_schema, schema.classes), *map(literals.event_schema, schema.events)]
    result = [
        Constant(name, layout.lay_out(node, before=len(name) + 3, explode=True))
        for name, node in zip(names, nodes, strict=True)
    ]
    split = len(schema.classes)
    whole = literals.schema(schema, names[:split], names[split:])
    return [*result, Constant("SCHEMA", layout.lay_out(whole, before=len("SCHEMA = ")))]


def fields_of(item: ClassSchema) -> list[Property | Statistic]:
    """Everything that objects of a class have values for."""
    return [*item.properties, *item.statistics]


def declaration(item: Property | Statistic, name: str, descriptor: str) -> Field:
    """The line that declares a property or statistic."""
    return Field(name, f" = {descriptor}({layout.string(item.name)})")


def event_field(item: Argument, name: str, python: str) -> Field:
    """A field of an event, with its default if that is short."""
    text = f": {python}"
    if literals.is_short(item.default):
        text += f" = {layout.flat(literals.literal(item.default, item.type))}"
    return Field(name, text)


def input_parameters(
    method: Method, names: Mapping[str, str], python: Mapping[str, str], *, long_defaults: bool = False
) -> list[Node]:
    """Parameters for the inputs of a method, which are passed by position: only the last ones can have defaults.

    Args:
        method: whose.
        names: of the parameters, by schema name.
        python: their types, by schema name.
        long_defaults: a default that is too long for a signature is None there, and filled in by whoever is called.
    """
    parameters: list[Node] = []
    optional = True
    for item in reversed(method.inputs):
        text = f"{names[item.name]}: {python[item.name]}"
        short = literals.is_short(item.default)
        optional = optional and (short or (long_defaults and item.default is not None))
        if optional and short:
            text += f" = {layout.flat(literals.literal(item.default, item.type))}"
        elif optional:
            text += " = None" if text.endswith("| None") else " | None = None"
        parameters.insert(0, Code(text))
    return parameters


def signature(name: str, parameters: Sequence[Node], result: str, *, start: str = "def") -> str:
    """The first lines of a method, as far as the colon."""
    group = layout.Group(f"{start} {name}(", tuple(("", parameter) for parameter in parameters), ")")
    return f"{layout.lay_out(group, 4, before=4, after=len(result) + 5)} -> {result}:"


def result_fields(method: Method, names: Mapping[str, str], *, given: bool) -> list[Field]:
    """Fields of a method's result; `given` where a program makes it, and may give an object for a reference."""
    kind = types.given if given else types.received
    return [Field(names[item.name], f": {kind(item)}") for item in method.outputs]
