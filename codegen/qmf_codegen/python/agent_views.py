"""Second pass of Python, agents' side: classes to instrument a program with, their results, and events."""

from __future__ import annotations

from collections.abc import Mapping

from qmf.schema import Access, ClassSchema, EventSchema, Method, Property, Schema
from qmf_codegen.python import types
from qmf_codegen.python.naming import MemberNames, Names, output_names, parameter_names, plain_names
from qmf_codegen.python.views import (
    ClassView,
    MethodView,
    ModuleView,
    RecordView,
    declaration,
    event_field,
    fields_of,
    input_parameters,
    result_view,
)


def agent_view(schema: Schema, names: Names) -> ModuleView:
    """The view of the agent module."""
    constants = iter(names.constants)
    return ModuleView(
        title="Agent side",
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
    methods = [_method(method, members) for method in item.methods]
    return ClassView(
        name=name,
        constant=constant,
        fields=[
            declaration(field, members.fields[field.name], types.agent_descriptor(field)) for field in fields_of(item)
        ],
        methods=[_init(item, members.fields), *methods] if item.properties else methods,
        results=[_result(method, name, members) for method in item.methods if method.outputs],
    )


def _init(item: ClassSchema, names: Mapping[str, str]) -> MethodView:
    """The constructor, whose keyword arguments are the properties."""
    parameters = ["self", "*"]
    plain: list[str] = []
    renamed: list[str] = []
    for field in item.properties:
        name = names[field.name]
        if is_required(field):
            parameters.append(f"{name}: {types.agent_input_type(field)}")
        else:
            parameters.append(f"{name}: {types.agent_input_type(field, optional=True)} = None")
        if name == field.name:
            plain.append(f"{name}={name}")
        else:
            renamed.append(f'"{field.name}": {name}')
    # By schema name, which is not ambiguous: `class_` may be the schema name of another property.
    arguments = [*plain, *([f"**{{{', '.join(renamed)}}}"] if renamed else [])]
    return MethodView(
        name="__init__", parameters=parameters, result="None", body=f"super().__init__({', '.join(arguments)})"
    )


def _method(item: Method, members: MemberNames) -> MethodView:
    names = parameter_names(item)
    python = {argument.name: types.value_type(argument.type) for argument in item.inputs}
    return MethodView(
        name=members.methods[item.name],
        parameters=["self", *input_parameters(item, names, python)],
        result=f"MaybeAwaitable[{members.results.get(item.name)}]",
        body="raise NotImplementedError",
    )


def _result(item: Method, owner: str, members: MemberNames) -> RecordView:
    names = output_names(item)
    fields = {names[output.name]: types.agent_input_type(output) for output in item.outputs}
    return result_view(item, members.results[item.name], owner, fields)


def _event(item: EventSchema, names: Names, constant: str) -> RecordView:
    fields = plain_names([argument.name for argument in item.arguments])
    return RecordView(
        name=names.events[item.name],
        constant=constant,
        fields=[
            event_field(argument, fields[argument.name], types.agent_input_type(argument))
            for argument in item.arguments
        ],
    )
