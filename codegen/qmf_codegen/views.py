"""Fourth pass: what templates show, as plain values in which every text is final."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from qmf.schema import Access, Argument, ClassSchema, EventSchema, Method, Property, Schema, Statistic
from qmf_codegen.filters import describe, layout, literals, types
from qmf_codegen.filters.layout import Code, Node
from qmf_codegen.naming import MemberNames, Names, names_of, output_names, parameter_names, plain_names


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
    """A method of a managed class: first lines and docstring."""

    signature: str
    doc: str


@attrs.frozen
class ResultView:
    """The class of a method's outputs. Its schema is the method's, so it has no constant."""

    name: str
    doc: str
    fields: Sequence[Field]
    constant: str = ""


@attrs.frozen
class ClassView:
    """A managed class.

    Attributes:
        constant: its schema's name in the schema module.
        init: `__init__` without indentation, or nothing for a class without properties.
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
class PackageView:
    """Everything about one schema that the templates of all its modules use.

    Attributes:
        source: name of the schema file.
        package: the QMF package.
        schema: for docstrings.
        constants: of the schema module, `SCHEMA` included.
        classes, events: of the agent module.
    """

    source: str
    package: str
    schema: Schema
    constants: Sequence[Constant]
    classes: Sequence[ClassView]
    events: Sequence[EventView]


def view_of(schema: Schema, source: str) -> PackageView:
    """Make the view of a schema from file `source`."""
    names = names_of(schema)
    class_constants = names.constants[: len(schema.classes)]
    event_constants = names.constants[len(schema.classes) :]
    return PackageView(
        source=source,
        package=schema.package,
        schema=schema,
        constants=_constants(schema, class_constants, event_constants),
        classes=[_class(item, names, name) for item, name in zip(schema.classes, class_constants, strict=True)],
        events=[_event(item, names, name) for item, name in zip(schema.events, event_constants, strict=True)],
    )


def _constants(schema: Schema, classes: Sequence[str], events: Sequence[str]) -> list[Constant]:
    nodes: list[tuple[str, Node]] = [
        *zip(classes, map(literals.class_schema, schema.classes), strict=True),
        *zip(events, map(literals.event_schema, schema.events), strict=True),
    ]
    result = [Constant(name, layout.lay_out(node, before=len(name) + 3, explode=True)) for name, node in nodes]
    whole = literals.schema(schema, classes, events)
    return [*result, Constant("SCHEMA", layout.lay_out(whole, before=len("SCHEMA = ")))]


def _class(item: ClassSchema, names: Names, constant: str) -> ClassView:
    members = names.members[item.name]
    name = names.classes[item.name]
    declared: list[Property | Statistic] = [*item.properties, *item.statistics]
    return ClassView(
        name=name,
        constant=constant,
        doc=describe.class_doc(item, members.fields),
        fields=[_declaration(field, members.fields[field.name]) for field in declared],
        init=_init(item, members.fields) if item.properties else "",
        methods=[_method(method, members) for method in item.methods],
        results=[_result(method, name, members) for method in item.methods if method.outputs],
    )


def _declaration(item: Property | Statistic, name: str) -> Field:
    return Field(name, f" = {types.descriptor(item)}({layout.string(item.name)})")


def _init(item: ClassSchema, names: Mapping[str, str]) -> str:
    """The constructor, whose keyword arguments are the properties."""
    parameters: list[Node] = [Code("self"), Code("*")]
    plain: list[tuple[str, Node]] = []
    renamed: list[tuple[str, Node]] = []
    for field in item.properties:
        name = names[field.name]
        if is_required(field):
            parameters.append(Code(f"{name}: {types.given(field)}"))
        else:
            parameters.append(Code(f"{name}: {types.given(field, optional=True)} = None"))
        if name == field.name:
            plain.append((f"{name}=", Code(name)))
        else:
            renamed.append((f"{layout.string(field.name)}: ", Code(name)))
    head = _signature("__init__", parameters, "None")
    # By schema name, which leaves no doubt: `class_` may be one, too.
    others: list[tuple[str, Node]] = [("**", layout.Group("{", tuple(renamed), "}"))] if renamed else []
    body = layout.lay_out(layout.Group("super().__init__(", (*plain, *others), ")"), 8, before=8)
    return f"{head}\n        {body}"


def is_required(item: Property) -> bool:
    """True for properties that must be given when an object is made; the runtime base has the same rule."""
    return (item.index or item.access is Access.RC) and not item.optional and item.type.name != "objId"


def _method(item: Method, members: MemberNames) -> MethodView:
    parameters: list[Node] = [Code("self")]
    names = parameter_names(item)
    for number, argument in enumerate(item.inputs):
        text = f"{names[argument.name]}: {types.value(argument.type)}"
        # Arguments come by position, so only the last ones can have defaults.
        if all(literals.is_short(other.default) for other in item.inputs[number:]):
            text += f" = {layout.flat(literals.literal(argument.default, argument.type))}"
        parameters.append(Code(text))
    result = members.results.get(item.name)
    signature = _signature(members.methods[item.name], parameters, f"MaybeAwaitable[{result}]")
    return MethodView(signature, describe.method_doc(item, names, output_names(item)))


def _result(item: Method, owner: str, members: MemberNames) -> ResultView:
    names = output_names(item)
    fields = [Field(names[argument.name], f": {types.given(argument)}") for argument in item.outputs]
    return ResultView(members.results[item.name], describe.result_doc(item, owner, names), fields)


def _event(item: EventSchema, names: Names, constant: str) -> EventView:
    fields = plain_names([argument.name for argument in item.arguments])
    return EventView(
        name=names.events[item.name],
        constant=constant,
        doc=describe.event_doc(item, fields),
        fields=[Field(fields[argument.name], _event_field(argument)) for argument in item.arguments],
    )


def _event_field(item: Argument) -> str:
    text = f": {types.given(item)}"
    if literals.is_short(item.default):
        text += f" = {layout.flat(literals.literal(item.default, item.type))}"
    return text


def _signature(name: str, parameters: Sequence[Node], result: str) -> str:
    group = layout.Group(f"def {name}(", tuple(("", parameter) for parameter in parameters), ")")
    return f"{layout.lay_out(group, 4, before=4, after=len(result) + 5)} -> {result}:"
