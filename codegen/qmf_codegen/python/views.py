"""What templates show, as plain values in which every text is final.

This module holds the values, and what both sides share; `agent_views` and `console_views` fill them for each side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from qmf.schema import Argument, ClassSchema, Method, Property, Schema, Statistic
from qmf_codegen.python import expressions


@attrs.frozen
class FieldView:
    """One line of a class: a descriptor, or a field of an event or result.

    Attributes:
        name: its Python name.
        code: the rest of the line, e.g. ``= Attribute[str]()`` or ``: int``.
    """

    name: str
    code: str


@attrs.frozen(kw_only=True)
class MethodView:
    """A method.

    Attributes:
        keyword: ``def`` or ``async def``.
        name: its Python name.
        parameters: source of each parameter, `self` included.
        result: its return type.
        body: the statement that it consists of.
        doc: its docstring; empty where the runtime base composes it from the schema.
    """

    keyword: str = "def"
    name: str
    parameters: Sequence[str]
    result: str
    body: str
    doc: str = ""


@attrs.frozen(kw_only=True)
class RecordView:
    """A class of events, or of a method's outputs.

    Attributes:
        name: its Python name.
        fields: its fields.
        constant: name of an event's schema in the schema module; empty for outputs.
        doc: its docstring; empty where the runtime base composes it from the schema.
    """

    name: str
    fields: Sequence[FieldView]
    constant: str = ""
    doc: str = ""


@attrs.frozen(kw_only=True)
class ClassView:
    """A class of objects, as an agent has them or as a console sees them.

    Attributes:
        name: its Python name.
        constant: its schema's name in the schema module.
        fields: properties and statistics.
        methods: in schema order, after those that are not in the schema.
        results: the classes of methods' outputs.
    """

    name: str
    constant: str
    fields: Sequence[FieldView]
    methods: Sequence[MethodView]
    results: Sequence[RecordView]


@attrs.frozen
class ConstantView:
    """A constant of the schema module and its expression."""

    name: str
    code: str


@attrs.frozen(kw_only=True)
class ModuleView:
    """The classes of one side, with the base classes that they have there.

    Attributes:
        title: beginning of the module's docstring.
        object_base, event_base, result_base: names of base classes.
        classes, events: in schema order.
    """

    title: str
    object_base: str
    event_base: str
    result_base: str
    classes: Sequence[ClassView]
    events: Sequence[RecordView]

    @property
    def names(self) -> list[str]:
        """Every class of the module."""
        names = [item.name for item in self.events]
        for item in self.classes:
            names += [item.name, *(result.name for result in item.results)]
        return names


def constants(schema: Schema, names: Sequence[str]) -> list[ConstantView]:
    """The constants of the schema module, `SCHEMA` included; `names` are those of classes and events."""
    package = {"package": "PACKAGE"}
    result = [ConstantView(name, expressions.call(item, **package)) for name, item in zip(names, schema, strict=True)]
    split = len(schema.classes)
    whole = expressions.call(
        schema,
        **package,
        classes=expressions.sequence(names[:split]),
        events=expressions.sequence(names[split:]),
    )
    return [*result, ConstantView("SCHEMA", whole)]


def fields_of(item: ClassSchema) -> list[Property | Statistic]:
    """Everything that objects of a class have values for."""
    return [*item.properties, *item.statistics]


def declaration(item: Property | Statistic, name: str, descriptor: str) -> FieldView:
    """The line that declares a property or statistic; its schema name stands there only if it differs."""
    return FieldView(name, f" = {descriptor}({'' if name == item.name else expressions.string(item.name)})")


def event_field(item: Argument, name: str, python: str) -> FieldView:
    """A field of an event of type `python`, with its default if that is short."""
    default = f" = {expressions.expression(item.default)}" if expressions.is_short(item.default) else ""
    return FieldView(name, f": {python}{default}")


def input_parameters(
    method: Method, names: Mapping[str, str], python: Mapping[str, str], *, long_defaults: bool = False
) -> list[str]:
    """Parameters for the inputs of a method, which are passed by position: only the last ones can have defaults.

    Args:
        method: the method.
        names: names of the parameters, by schema name.
        python: their types, by schema name.
        long_defaults: a default that is too long for a signature is None there, and the callee uses the real one.
    """
    parameters: list[str] = []
    optional = True
    for item in reversed(method.inputs):
        text = f"{names[item.name]}: {python[item.name]}"
        short = expressions.is_short(item.default)
        optional = optional and (short or (long_defaults and item.default is not None))
        if optional and short:
            text += f" = {expressions.expression(item.default)}"
        elif optional:
            text += " = None" if text.endswith("| None") else " | None = None"
        parameters.insert(0, text)
    return parameters


def result_view(method: Method, name: str, owner: str, fields: Mapping[str, str]) -> RecordView:
    """The class `name` of the outputs of a method of class `owner`; `fields` are their types, by Python name."""
    return RecordView(
        name=name,
        fields=[FieldView(field, f": {python}") for field, python in fields.items()],
        doc=f"Outputs of `{owner}.{method.name}`.",
    )
