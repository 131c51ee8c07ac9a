"""Values: those received converted to the types of the schema; those to send checked and made ready for the wire."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from qmf.codec import WRAPPERS
from qmf.codec import wrap_value as sized
from qmf.errors import ConstraintError, NotFoundError, ProtocolError
from qmf.protocol import BROKER, ObjectId, from_wire, to_wire
from qmf.schema import TYPES, Access, Argument, ClassSchema, Method, Property, QmfType, Style, check_value

#: The Python type that received values of a base type usually have: `convert_value` returns values of it as they are.
PLAIN_TYPES: Mapping[str, type] = {
    **{kind.base: int for kind in TYPES.values() if kind.is_integer},
    **{"sstr": str, "lstr": str, "bool": bool, "double": float, "uuid": UUID},
}


def plain_type(kind: QmfType) -> type | None:
    """The Python type of received values that need no conversion; None when all of them do."""
    return PLAIN_TYPES.get(kind.base)


def schema_name(name: str) -> str:
    """The schema's name for an attribute of a program: a Python keyword has a ``_`` appended there (``class_``)."""
    return name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name


def convert_value(kind: QmfType, value: object, agent: str) -> object:
    """A value from the wire, converted to its schema type; references without an agent name belong to `agent`.

    A value that doesn't fit the type is returned unchanged: an agent's mistake must not hide it.
    """
    if value is None or value.__class__ is PLAIN_TYPES.get(kind.base):
        return value
    try:
        result = from_wire(kind, value)
    except ProtocolError:
        return value
    if isinstance(result, ObjectId):
        return with_agent(result, agent)
    return result


def with_agent(object_id: ObjectId, agent: str) -> ObjectId:
    """The id with the name of its agent, which qpidd leaves out or writes as ``broker`` (QMF2.md 5.1)."""
    if object_id.agent_name and object_id.agent_name != BROKER:
        return object_id
    return ObjectId(object_id.object_name, agent, object_id.agent_epoch)


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

    __slots__ = ("_checks", "_plain", "_types", "method", "schema")

    def __init__(self, schema: ClassSchema, method: Method) -> None:
        self.schema = schema
        self.method = method
        self._checks = [(item.name, _simple_check(item)) for item in method.inputs]
        self._types = {item.name: item.type for item in method.outputs}
        self._plain = {name: plain_type(kind) for name, kind in self._types.items()}

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

    def typed_outputs(self, values: Mapping[str, object], agent: str) -> Mapping[str, object]:
        """The outputs of a call, converted to their types; those not in the schema stay as they were sent."""
        types, plain = self._types, self._plain
        for name, value in values.items():
            if value.__class__ is not plain.get(name):
                break
        else:
            return values
        return {
            name: convert_value(types[name], value, agent) if name in types else value for name, value in values.items()
        }


def _simple_check(item: Argument) -> Callable[[object], object]:
    """A function that returns simple values of an input, ready for the wire; None for values that need a full check."""
    kind = item.type
    if kind.style is Style.DIRECT and kind.minimum is not None and kind.maximum is not None:
        low = kind.minimum if item.minimum is None else max(kind.minimum, item.minimum)
        high = kind.maximum if item.maximum is None else min(kind.maximum, item.maximum)
        wrapper = WRAPPERS.get(kind.base, int)
        return lambda value: wrapper(value) if type(value) is int and low <= value <= high else None
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
    if item.type.name == "objId":
        value = getattr(value, "object_id", value)  # of a remote object
        if not isinstance(value, ObjectId):
            raise ConstraintError(where, "objId", value, "must be a remote object or its id")
        return value
    value = check_value(item.type, value, where=where, minimum=item.minimum, maximum=item.maximum, max_len=item.max_len)
    if item.type.style is Style.DIRECT:
        return sized(item.type, value)
    return to_wire(item.type, value, where)
