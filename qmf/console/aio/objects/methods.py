"""Method calls and property updates: inputs are checked before anything is sent; outputs are typed by the schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from qmf.codec import typed as sized
from qmf.console.aio.agents.registry import AgentRegistry
from qmf.console.aio.objects.class_fields import Values, schema_name, typed
from qmf.console.aio.objects.remote_object import Args, CallResult, RemoteObject
from qmf.console.aio.rpc.channel import RpcChannel
from qmf.errors import ConstraintError, NotFoundError
from qmf.protocol import MethodRequest, MethodResponse, ObjectId, to_wire
from qmf.schema import Access, Argument, ClassSchema, Method, Property, Style, check_value

#: Name of the method that sets properties at agents of this project. No schema name starts with ``_``.
SET_PROPERTIES = "_set_properties"

#: How many methods' signatures are kept.
MAX_SIGNATURES = 500


class MethodCalls:
    """Calls methods of remote objects and sets their properties."""

    def __init__(self, rpc: RpcChannel, agents: AgentRegistry, timeout: float) -> None:
        """Make the calls; `timeout` is in seconds, for calls that do not specify it."""
        self._rpc = rpc
        self._agents = agents
        self._timeout = timeout
        self._signatures: dict[tuple[int, str], MethodSignature] = {}

    async def call(
        self, target: RemoteObject, method: str, args: Args, kwargs: Values, timeout: float | None
    ) -> CallResult:
        """Call a method of an object; see `RemoteObject.call`."""
        inputs = self.check(target, method, args, kwargs)
        values = await self._invoke(target, method, inputs, timeout)
        signature = self._signature(target, method)
        return CallResult(typed_outputs(signature.method if signature else None, values, target.agent))

    def check(self, target: RemoteObject, method: str, args: Args, kwargs: Values) -> dict[str, object]:
        """The inputs of a call, checked and ready for the wire; see `RemoteObject.call`."""
        owner = target.class_key.name if target.class_key else "object"
        signature = self._signature(target, method)
        if signature is not None:
            return signature.bind(owner, args, kwargs)
        if target.schema is not None:
            raise NotFoundError(f"method of {owner}", method, [item.name for item in target.schema.methods])
        if args:
            raise ConstraintError(f"{owner}.{method}", "no schema", args, "must be given arguments by name")
        return dict(kwargs)

    async def assign(self, target: RemoteObject, values: Values, timeout: float | None) -> dict[str, object]:
        """Set properties of an object; see `RemoteObject.set`."""
        sent = property_values(target.schema, values) if target.schema else dict(values)
        await self._invoke(target, SET_PROPERTIES, sent, timeout)
        return sent

    def _signature(self, target: RemoteObject, method: str) -> MethodSignature | None:
        """A method of an object's class; None when there is no schema, or no such method in it."""
        schema = target.schema
        if schema is None:
            return None
        # The signature keeps its schema alive, so that no other one gets the id.
        known = self._signatures.get((id(schema), method))
        if known is None and (found := schema.method(method)) is not None:
            if len(self._signatures) >= MAX_SIGNATURES:
                self._signatures.clear()
            known = self._signatures[id(schema), method] = MethodSignature(schema, found)
        return known

    async def _invoke(self, target: RemoteObject, method: str, inputs: Values, timeout: float | None) -> Values:
        self._rpc.check_connected()
        agent = self._agents.find(target.agent)
        owner = target.class_key.name if target.class_key else "object"
        parts = await self._rpc.request(
            agent,
            MethodRequest(method=method, object_id=target.object_id, arguments=inputs),
            MethodResponse,
            what=f"method {method} of {owner} {target.object_id}",
            timeout=self._timeout if timeout is None else timeout,
        )
        return parts[-1].arguments


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


class MethodSignature:
    """A method with prepared checks of its inputs, made once and used for every call.

    Attributes:
        schema: the class of the method.
        method: the method.
    """

    __slots__ = ("_checks", "method", "schema")

    def __init__(self, schema: ClassSchema, method: Method) -> None:
        self.schema = schema
        self.method = method
        self._checks = [(item.name, _simple_check(item)) for item in method.inputs]

    def bind(self, owner: str, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
        """The same as `bind_inputs`, but faster for simple values given by position, as in most calls."""
        checks = self._checks
        if kwargs or len(args) != len(checks):
            return bind_inputs(owner, self.method, args, kwargs)
        inputs: dict[str, object] = {}
        for (name, check), value in zip(checks, args, strict=True):
            accepted = check(value)
            if accepted is None:
                return bind_inputs(owner, self.method, args, kwargs)
            inputs[name] = accepted
        return inputs


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


def typed_outputs(method: Method | None, values: Mapping[str, object], agent: str) -> dict[str, object]:
    """The outputs of a call, converted to their types; outputs that the schema doesn't list stay as they were sent."""
    types = {item.name: item.type for item in method.outputs} if method else {}
    return {name: typed(types[name], value, agent) if name in types else value for name, value in values.items()}


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
