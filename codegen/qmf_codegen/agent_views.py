"""Fourth pass, agents' side: classes to instrument a program with, and the results and events that it makes."""

from __future__ import annotations

from collections.abc import Mapping

from qmf.schema import Access, ClassSchema, EventSchema, Method, Property, Schema
from qmf_codegen.filters import describe, layout, types
from qmf_codegen.filters.layout import Code, Node
from qmf_codegen.naming import MemberNames, Names, output_names, parameter_names, plain_names
from qmf_codegen.views import (
    ClassView,
    EventView,
    MethodView,
    ModuleView,
    ResultView,
    declaration,
    event_field,
    fields_of,
    input_parameters,
    result_fields,
    signature,
)


def agent_view(schema: Schema, names: Names) -> ModuleView:
    """The view of the agent module."""
    constants = iter(names.constants)
    return ModuleView(
        what="Agent side",
        object_base="ManagedObject",
        event_base="Event",
        result_base="Result",
        classes=[_class(item, names, next(constants)) for item in schema.classes],
        events=[_event(item, names, next(constants)) for item in schema.events],
    )


def is_required(item: Property) -> bool:
    """True for properties that must be given when an object is made; the runtime base has the same rule."""
    return (item.index or item.access is Access.RC) and not item.optional and item.type.name != "objId"


def _class(item: ClassSchema, names: Names, constant: str) -> ClassView:
    members = names.members[item.name]
    name = names.classes[item.name]
    return ClassView(
        name=name,
        constant=constant,
        doc=describe.class_doc(item, members.fields),
        fields=[declaration(field, members.fields[field.name], types.descriptor(field)) for field in fields_of(item)],
        init=_init(item, members.fields) if item.properties else "",
        methods=[_method(method, members) for method in item.methods],
        results=[_result(method, name, members) for method in item.methods if method.outputs],
    )


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
    head = signature("__init__", parameters, "None")
    # By schema name, which leaves no doubt: `class_` may be one, too.
    others: list[tuple[str, Node]] = [("**", layout.Group("{", tuple(renamed), "}"))] if renamed else []
    body = layout.lay_out(layout.Group("super().__init__(", (*plain, *others), ")"), 8, before=8)
    return f"{head}\n        {body}"


def _method(item: Method, members: MemberNames) -> MethodView:
    names = parameter_names(item)
    python = {argument.name: types.value(argument.type) for argument in item.inputs}
    result = f"MaybeAwaitable[{members.results.get(item.name)}]"
    return MethodView(
        signature(members.methods[item.name], [Code("self"), *input_parameters(item, names, python)], result),
        describe.method_doc(item, names, output_names(item)),
        "raise NotImplementedError",
    )


def _result(item: Method, owner: str, members: MemberNames) -> ResultView:
    names = output_names(item)
    return ResultView(
        members.results[item.name], describe.result_doc(item, owner, names), result_fields(item, names, given=True)
    )


def _event(item: EventSchema, names: Names, constant: str) -> EventView:
    fields = plain_names([argument.name for argument in item.arguments])
    return EventView(
        name=names.events[item.name],
        constant=constant,
        doc=describe.event_doc(item, fields),
        fields=[event_field(argument, fields[argument.name], types.given(argument)) for argument in item.arguments],
    )
