"""Fourth pass, consoles' side: proxies of remote objects, and the results and events that a console receives."""

from __future__ import annotations

from qmf.schema import Access, ClassSchema, EventSchema, Method, Property, Schema
from qmf_codegen.filters import describe, layout, types
from qmf_codegen.filters.layout import Code, Node
from qmf_codegen.naming import (
    RESERVED_IN_EVENTS,
    MemberNames,
    Names,
    free_name,
    output_names,
    parameter_names,
    plain_names,
)
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

#: Names of ours beside those of the schema, which come first: they give way with an underscore.
SET, TIMEOUT = "set", "timeout"


def console_view(schema: Schema, names: Names) -> ModuleView:
    """The view of the console module."""
    constants = iter(names.constants)
    return ModuleView(
        what="Console side",
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
        doc=describe.class_doc(item, members.fields),
        fields=[
            declaration(field, members.fields[field.name], types.remote_descriptor(field)) for field in fields_of(item)
        ],
        init="",
        methods=[_set(settable, members), *methods] if settable else methods,
        results=[_result(method, name, members) for method in item.methods if method.outputs],
    )


def _set(settable: list[Property], members: MemberNames) -> MethodView:
    """The method that sets properties, which has a keyword argument for each."""
    fields = {item.name: members.fields[item.name] for item in settable}
    timeout = free_name(TIMEOUT, fields.values())
    given: list[tuple[str, Node]] = [(f"{layout.string(name)}: ", Code(python)) for name, python in fields.items()]
    call = layout.Group("await self._qmf_set(", (("", Code(timeout)), ("", layout.Group("{", tuple(given), "}"))), ")")
    parameters = [
        *(f"{fields[item.name]}: {types.settable(item)} = UNSET" for item in settable),
        _timeout(timeout),
    ]
    return MethodView(
        signature(
            free_name(SET, (*members.fields.values(), *members.methods.values())),
            [Code("self"), Code("*"), *map(Code, parameters)],
            "None",
            start="async def",
        ),
        describe.set_doc(settable, fields, timeout),
        layout.lay_out(call, 8, before=8),
    )


def _method(item: Method, members: MemberNames) -> MethodView:
    names = parameter_names(item)
    timeout = free_name(TIMEOUT, names.values())
    python = {argument.name: types.asked(argument) for argument in item.inputs}
    result = members.results.get(item.name)
    parameters = input_parameters(item, names, python, long_defaults=True)
    inputs = [names[argument.name] for argument in item.inputs]
    call = layout.Group(
        f"{'return ' if result else ''}await self._qmf_call(",
        tuple(("", Code(text)) for text in (layout.string(item.name), timeout, str(result), *inputs)),
        ")",
    )
    return MethodView(
        signature(
            members.methods[item.name],
            [Code("self"), *parameters, Code("*"), Code(_timeout(timeout))],
            str(result),
            start="async def",
        ),
        describe.method_doc(item, names, output_names(item), timeout),
        layout.lay_out(call, 8, before=8),
    )


def _timeout(name: str) -> str:
    return f"{name}: float | None = None"


def _result(item: Method, owner: str, members: MemberNames) -> ResultView:
    names = output_names(item)
    return ResultView(
        members.results[item.name], describe.result_doc(item, owner, names), result_fields(item, names, given=False)
    )


def _event(item: EventSchema, names: Names, constant: str) -> EventView:
    fields = plain_names([argument.name for argument in item.arguments], RESERVED_IN_EVENTS)
    return EventView(
        name=names.events[item.name],
        constant=constant,
        doc=describe.event_doc(item, fields),
        fields=[event_field(argument, fields[argument.name], types.received(argument)) for argument in item.arguments],
    )
