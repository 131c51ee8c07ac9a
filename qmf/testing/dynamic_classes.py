"""Managed classes made from a schema at run time, for agents without generated classes.

They behave like generated classes, but have no types. Methods call a function of the caller.
"""

from __future__ import annotations

import inspect
import keyword
import types
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from qmf.agent import (
    Attribute,
    Counter,
    CounterAttribute,
    Event,
    HiLo,
    HiLoAttribute,
    ManagedObject,
    Mma,
    MmaAttribute,
    ReferenceAttribute,
    Result,
)
from qmf.agent.model.managed_object import layout_of
from qmf.errors import CallerError
from qmf.schema import ClassSchema, EventSchema, Method, Property, Statistic, Style

THolder = TypeVar("THolder", Event, Result)

#: Implements methods: called with the object, the method's name and its inputs by name; returns its outputs.
Answer = Mapping[str, object] | None
Dispatch = Callable[[ManagedObject, str, Mapping[str, object]], Answer | Awaitable[Answer]]

_BY_STYLE: Mapping[Style, Callable[[str], object]] = {
    Style.DIRECT: Attribute,
    Style.COUNT: CounterAttribute,
    Style.HILO: HiLoAttribute,
    Style.MMA: MmaAttribute,
}


def managed_class(schema: ClassSchema, dispatch: Dispatch) -> type[ManagedObject]:
    """A class of managed objects for a schema.

    Args:
        schema: the class.
        dispatch: implements its methods.

    Returns:
        a subclass of `ManagedObject`. Values are attributes of the same names, with ``_`` appended to Python keywords;
        methods always have a ``_`` appended, as the agent expects.
    """
    members: dict[str, object] = {f"{method.name}_": _method(method, dispatch) for method in schema.methods}
    values: list[Property | Statistic] = [*schema.properties, *schema.statistics]
    for item in values:
        name = f"{item.name}_" if keyword.iskeyword(item.name) else item.name
        while name in members:
            name += "_"
        members[name] = _descriptor(item)
    return types.new_class(
        schema.name, (ManagedObject,), exec_body=lambda body: body.update(_qmf_schema_=schema, **members)
    )


def event_maker(schema: EventSchema) -> Callable[[Mapping[str, object]], Event]:
    """A function that makes events of a class.

    Returns:
        a function that makes an event from its arguments by name; it raises CallerError if one is missing or unknown.
    """
    names = [item.name for item in schema.arguments]
    required = [item.name for item in schema.arguments if item.type.name != "objId"]
    make = _holder(Event, schema.name, names, _qmf_schema_=schema)

    def make_checked(values: Mapping[str, object]) -> Event:
        event = make(values)
        if missing := [name for name in required if name not in values]:
            raise CallerError(f"{schema.name} needs its argument {missing[0]!r}")
        return event

    return make_checked


def assign(obj: ManagedObject, name: str, value: object) -> None:
    """Set a value of an object, of any style.

    Args:
        obj: any managed object.
        name: its schema name.
        value: for a hilo number its value, or ``(value, high, low)``; for an mma its samples.

    Raises:
        CallerError: no such value, or it cannot be set.
    """
    field = layout_of(type(obj)).field(name)
    accessor = getattr(obj, field.python_name)
    match accessor:
        case Mma():
            if not isinstance(value, (list, tuple)):
                raise CallerError(f"{field.where} needs a list of samples, not {value!r}")
            for sample in value:
                accessor.sample(sample)
        case HiLo() if isinstance(value, tuple):
            now, high, low = value
            for number in (high, low, now):
                accessor.set(number)
        case Counter():
            if not isinstance(value, int):
                raise CallerError(f"{field.where} must be an integer, not {value!r}")
            accessor.set(value)
        case _:
            setattr(obj, field.python_name, value)


def _descriptor(item: Property | Statistic) -> object:
    if item.type.name == "objId":
        return ReferenceAttribute(item.name)
    return _BY_STYLE[item.type.style](item.name)


def _method(method: Method, dispatch: Dispatch) -> Callable[..., Any]:
    names = [item.name for item in method.inputs]
    make = _holder(Result, method.name, [item.name for item in method.outputs])

    async def call(self: ManagedObject, *inputs: object) -> Result | None:
        found = dispatch(self, method.name, dict(zip(names, inputs, strict=True)))
        outputs = await found if inspect.isawaitable(found) else found
        if not method.outputs and outputs is None:
            return None
        return make(outputs or {})

    return call


def _holder(
    base: type[THolder], name: str, fields: Iterable[str], **members: object
) -> Callable[[Mapping[str, object]], THolder]:
    """A function that makes instances of a subclass of `base` with these fields, with ``_`` appended to their names.

    Fields that are not given are None. Not attrs, whose classes cannot have a field `class`.
    """
    empty = {f"{field}_": None for field in fields}
    cls = type(name, (base,), {**empty, **members})

    def make(values: Mapping[str, object]) -> THolder:
        if unknown := sorted(field for field in values if f"{field}_" not in empty):
            raise CallerError(f"{name} has no argument {unknown[0]!r}")
        holder: THolder = cls()
        vars(holder).update({f"{field}_": value for field, value in values.items()})
        return holder

    return make
