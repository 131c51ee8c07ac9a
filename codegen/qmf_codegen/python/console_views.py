"""Second pass of Python, consoles' side: proxies of remote objects, their results, and events."""

from __future__ import annotations

from qmf.schema import Access, ClassSchema, EventSchema, Method, Property, Schema
from qmf_codegen.python import types
from qmf_codegen.python.naming import (
    RESERVED_IN_EVENTS,
    MemberNames,
    Names,
    free_name,
    output_names,
    parameter_names,
    plain_names,
)
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

#: Names that we add to those of the schema. A schema may use them too: ours then get an underscore.
SET, TIMEOUT = "set", "timeout"


def console_view(schema: Schema, names: Names) -> ModuleView:
    """The view of the console module."""
    constants = iter(names.constants)
    return ModuleView(
        title="Console side",
        object_base="TypedObject",
        event_base="TypedEvent",
        result_base="TypedResult",
        classes=[_class(item, names, next(constants)) for item in schema.classes],
        events=[_event(item, names, next(constants)) for item in schema.events],
    )


def _class(item: ClassSchema, names: Names, constant: str) -> ClassView:
    members = names.members[item.name]
    name = names.classes[item.name]
    settable = [field for field in item.properties if field.access is Access.RW]
    methods = [_method(method, members) for method in item.methods]
    return ClassView(
        name=name,
        constant=constant,
        fields=[
            declaration(field, members.fields[field.name], types.console_descriptor(field)) for field in fields_of(item)
        ],
        methods=[_set_method(settable, members), *methods] if settable else methods,
        results=[_result(method, name, members) for method in item.methods if method.outputs],
    )


def _set_method(settable: list[Property], members: MemberNames) -> MethodView:
    """The method that sets properties, which has a keyword argument for each."""
    fields = {item.name: members.fields[item.name] for item in settable}
    timeout = free_name(TIMEOUT, fields.values())
    values = ", ".join(f'"{name}": {python}' for name, python in fields.items())
    return MethodView(
        keyword="async def",
        name=free_name(SET, (*members.fields.values(), *members.methods.values())),
        parameters=[
            "self",
            "*",
            *(f"{fields[item.name]}: {types.settable_type(item)} = UNSET" for item in settable),
            _timeout(timeout),
        ],
        result="None",
        body=f"await self._qmf_set({timeout}, {{{values}}})",
        doc="Set properties, all or none; those that are not given stay unchanged.",
    )


def _method(item: Method, members: MemberNames) -> MethodView:
    names = parameter_names(item)
    timeout = free_name(TIMEOUT, names.values())
    python = {argument.name: types.console_input_type(argument) for argument in item.inputs}
    result = members.results.get(item.name)
    arguments = [f'"{item.name}"', timeout, str(result), *(names[argument.name] for argument in item.inputs)]
    return MethodView(
        keyword="async def",
        name=members.methods[item.name],
        parameters=[
            "self",
            *input_parameters(item, names, python, long_defaults=True),
            "*",
            _timeout(timeout),
        ],
        result=str(result),
        body=f"{'return ' if result else ''}await self._qmf_call({', '.join(arguments)})",
    )


def _timeout(name: str) -> str:
    return f"{name}: float | None = None"


def _result(item: Method, owner: str, members: MemberNames) -> RecordView:
    names = output_names(item)
    fields = {names[output.name]: types.value_type(output.type) for output in item.outputs}
    return result_view(item, members.results[item.name], owner, fields)


def _event(item: EventSchema, names: Names, constant: str) -> RecordView:
    fields = plain_names([argument.name for argument in item.arguments], RESERVED_IN_EVENTS)
    return RecordView(
        name=names.events[item.name],
        constant=constant,
        fields=[
            event_field(argument, fields[argument.name], types.value_type(argument.type)) for argument in item.arguments
        ],
    )
