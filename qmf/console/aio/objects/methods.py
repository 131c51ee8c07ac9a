"""Methods and properties: inputs checked and made ready for the wire, outputs typed by the schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from qmf.codec import typed as sized
from qmf.console.aio.objects.class_fields import schema_name, typed
from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.errors import ConstraintError, NotFoundError
from qmf.protocol import ObjectId, to_wire
from qmf.schema import Access, Argument, ClassSchema, Method, Property, Style, check_value


def bind_inputs(owner: str, method: Method, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
    """The inputs of a call by name, ready for the wire.

    Args:
        owner: name of the class, for messages.
        method: the method.
        args: inputs by position, in schema order.
        kwargs: inputs by name.

    Raises:
        NotFoundError: no input of that name.
        ConstraintError: too many inputs; or one that is given twice, missing, or not of its type.
    """
    inputs = method.inputs
    where = f"{owner}.{method.name}"
    names = [item.name for item in inputs]
    if len(args) > len(inputs):
        takes = f"takes {', '.join(names) or 'no arguments'}"
        raise ConstraintError(where, takes, tuple(args), f"must be given at most {len(inputs)} arguments")
    given = dict(zip(names, args, strict=False))
    for written, value in kwargs.items():
        name = schema_name(written)
        if name not in names:
            raise NotFoundError(f"argument of {where}({', '.join(names)})", name, names)
        if name in given:
            what = f"argument '{name}' of {where}"
            raise ConstraintError(what, "given by position", value, "must not be given by name, too")
        given[name] = value
    return {item.name: _input(item, given, where) for item in inputs}


class PreparedMethod:
    """A method with prepared checks of its inputs and types of its outputs, made once and used for every call.

    Attributes:
        schema: the class of the method.
        method: the method.
    """

    __slots__ = ("_checks", "_types", "method", "schema")

    def __init__(self, schema: ClassSchema, method: Method) -> None:
        self.schema = schema
        self.method = method
        self._checks = [(item.name, _simple_check(item)) for item in method.inputs]
        self._types = {item.name: item.type for item in method.outputs}

    def bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
        """The same as `bind_inputs`, but faster for simple values given by position, as in most calls."""
        checks = self._checks
        if kwargs or len(args) != len(checks):
            return bind_inputs(self.schema.key.name, self.method, args, kwargs)
        inputs: dict[str, object] = {}
        for (name, check), value in zip(checks, args, strict=True):
            accepted = check(value)
            if accepted is None:
                return bind_inputs(self.schema.key.name, self.method, args, kwargs)
            inputs[name] = accepted
        return inputs

    def typed_outputs(self, values: Mapping[str, object], agent: str) -> dict[str, object]:
        """The outputs of a call, converted to their types; those not in the schema stay as they were sent."""
        types = self._types
        return {name: typed(types[name], value, agent) if name in types else value for name, value in values.items()}


def _simple_check(item: Argument) -> Callable[[object], object]:
    """A function that returns simple values of an input, ready for the wire; None for values that need a full check."""
    kind = item.type
    if kind.style is Style.DIRECT and kind.minimum is not None and kind.maximum is not None:
        low = kind.minimum if item.minimum is None else max(kind.minimum, item.minimum)
        high = kind.maximum if item.maximum is None else min(kind.maximum, item.maximum)
        return lambda value: sized(kind, value) if type(value) is int and low <= value <= high else None
    if kind.style is Style.DIRECT and kind.max_bytes is not None:
        longest = kind.max_bytes if item.max_len is None else min(kind.max_bytes, item.max_len)
        return lambda value: value if type(value) is str and len(value) <= longest and value.isascii() else None
    return lambda _: None


def _input(item: Argument, given: Mapping[str, object], owner: str) -> object:
    where = f"argument '{item.name}' of {owner}"
    value = given.get(item.name)
    if value is None:
        value = item.default
    if value is None:
        raise ConstraintError(where, item.type.name, None, "must be given")
    return _wire(item, value, where)


def property_values(schema: ClassSchema, values: Mapping[str, object]) -> dict[str, object]:
    """Property values by name, ready for the wire.

    Raises:
        NotFoundError: no such property.
        ConstraintError: not read-write, or a value that doesn't fit.
    """
    result: dict[str, object] = {}
    for written, value in values.items():
        name = schema_name(written)
        item = schema.property(name)
        if item is None:
            raise NotFoundError(f"property of {schema.key.name}", name, [item.name for item in schema.properties])
        where = f"{schema.key.name}.{name}"
        if item.access is not Access.RW:
            raise ConstraintError(
                where, f"{item.type.name}, access {item.access.value}", value, "cannot be set by a console"
            )
        if value is None and item.optional:
            result[name] = None
        else:
            result[name] = _wire(item, value, where)
    return result


def _wire(item: Argument | Property, value: object, where: str) -> object:
    if isinstance(value, RemoteObject):
        value = value.object_id
    if item.type.name == "objId":
        if not isinstance(value, ObjectId):
            raise ConstraintError(where, "objId", value, "must be a remote object or its id")
        return value
    value = check_value(item.type, value, where=where, minimum=item.minimum, maximum=item.maximum, max_len=item.max_len)
    if item.type.style is Style.DIRECT:
        return sized(item.type, value)
    return to_wire(item.type, value, where)
