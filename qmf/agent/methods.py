"""Method requests: checked against the schema, run, and their results checked as well (QMF2.md 4.5).

Rules:

* Arguments: unknown and missing ones are refused by name. qpidd fills a missing one with zero; a console that forgot
  one is told so here. The schema's default is used where there is one.
* Synchronous methods run on the event loop and must not block; `async` ones run beside it. Arguments are passed by
  position, in schema order.
* `NotImplementedError` becomes code 3, `MethodError` its own code, any other exception code 7 with one line of text.
  The traceback goes to the log, and to the bus only if the agent was made with `debug`.
* Whoever waits longer than the time limit, for a turn or for the end, gets code 7. What comes too late is logged.
* ``_set_properties`` sets properties with access RW: our extension; no schema can declare such a name.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextvars import ContextVar
from functools import partial

import attrs

from qmf.agent.access import Action, Gate
from qmf.agent.arguments import Result, argument_check, python_name, typed_arguments
from qmf.agent.checks import make_check
from qmf.agent.model import ManagedObject
from qmf.agent.outbox import Outbox
from qmf.agent.refusal import Refusal
from qmf.agent.running import Runner
from qmf.agent.sources import Sources
from qmf.agent.tally import Tally
from qmf.errors import ConstraintError, NotFoundError, ProtocolError
from qmf.protocol import Envelope, ErrorCode, MethodRequest, MethodResponse, from_wire
from qmf.schema import Access, Argument, Method, Property, QmfType

_log = logging.getLogger("qmf.agent")

#: Name of the request that sets properties.
SET_PROPERTIES = "_set_properties"


@attrs.frozen
class Caller:
    """Who called a method.

    Attributes:
        user_id: as the broker vouches for, or None where it says nothing. A console can put what it likes here unless
            the broker checks it.
        reply_to: where the answer goes.
    """

    user_id: str | None
    reply_to: str | None


_caller: ContextVar[Caller | None] = ContextVar("qmf_caller", default=None)


def current_caller() -> Caller | None:
    """Who called the method, or sets the property, that is running; None outside of any."""
    return _caller.get()


class Methods:
    """Runs the methods of one agent's objects."""

    def __init__(
        self, sources: Sources, outbox: Outbox, gate: Gate, tally: Tally, *, limit: int, timeout: float | None
    ) -> None:
        """Set up.

        Args:
            sources, outbox, gate, tally: of the agent.
            limit: calls that run at the same time; more wait for their turn.
            timeout: seconds for one call, or None. Only what awaits can be interrupted.
        """
        self._sources = sources
        self._outbox = outbox
        self._gate = gate
        self._tally = tally
        self._runner = Runner(limit, timeout)

    async def answer(self, request: Envelope, call: MethodRequest) -> None:
        """Run one call in the current task and answer it.

        Raises:
            Refusal: the call is invalid or failed.
        """
        self._tally.add("method_calls")
        _caller.set(Caller(request.user_id, request.reply_to))
        obj = await self._find(call)
        if call.method == SET_PROPERTIES:
            outputs = await self._set_properties(request, obj, call.arguments)
        else:
            outputs = await self._call(request, obj, call)
        await self._outbox.answer(request, MethodResponse(arguments=outputs))

    async def _find(self, call: MethodRequest) -> ManagedObject:
        if call.object_id is None:
            raise Refusal(ErrorCode.INVALID_PARAMETER, f"method {call.method} needs an '_object_id'")
        obj = await self._sources.find(call.object_id)
        if obj is None:
            raise Refusal(ErrorCode.UNKNOWN_OBJECT, f"no object found with id {call.object_id}")
        return obj

    async def _call(self, request: Envelope, obj: ManagedObject, call: MethodRequest) -> dict[str, object]:
        schema = obj._qmf_layout.schema
        where = f"{schema.name}.{call.method}"
        method = schema.method(call.method)
        if method is None:
            error = NotFoundError(f"{schema.name} method", call.method, (item.name for item in schema.methods))
            raise Refusal(ErrorCode.UNKNOWN_METHOD, str(error))
        arguments = _check_arguments(method, call.arguments, where)
        function = getattr(obj, python_name(type(obj), method.name), None)
        if not callable(function):
            raise Refusal(ErrorCode.NOT_IMPLEMENTED, f"{where} is not implemented")
        await self._gate.check(
            request,
            Action.METHOD,
            class_key=schema.key,
            object_id=obj._qmf_id,
            method=method.name,
            arguments={item.name: value for item, value in zip(method.inputs, arguments, strict=True)},
        )
        result = await self._runner.run(where, lambda: function(*arguments))
        return _check_result(method, result, where)

    async def _set_properties(
        self, request: Envelope, obj: ManagedObject, values: Mapping[str, object]
    ) -> dict[str, object]:
        """All are checked before the first is set."""
        checked = {name: _check_property(obj, name, value) for name, value in values.items()}
        schema = obj._qmf_layout.schema
        await self._gate.check(request, Action.SET, class_key=schema.key, object_id=obj._qmf_id, arguments=checked)
        for name, value in checked.items():
            await self._runner.run(f"{schema.name}.{name}", partial(obj._qmf_set_property, name, value))
        return {}


def _check_arguments(method: Method, given: Mapping[str, object], where: str) -> list[object]:
    unknown = sorted(set(given) - {item.name for item in method.inputs})
    if unknown:
        raise _invalid(f"{where} has no input argument {unknown[0]!r}")
    return [_check_argument(item, given.get(item.name), where) for item in method.inputs]


def _check_argument(item: Argument, value: object, where: str) -> object:
    if value is None:
        if item.default is None:
            raise _invalid(f"argument {item.name!r} of {where} ({item.type.name}) is missing")
        return item.default
    name = f"argument {item.name!r} of {where}"
    try:
        return argument_check(item, where)(_from_wire(item.type, value, name))
    except ConstraintError as error:
        raise _invalid(str(error)) from error


def _check_result(method: Method, result: object, where: str) -> dict[str, object]:
    """Outputs for the wire. What does not fit is a fault of the agent's program, and is logged there."""
    if not method.outputs and result is None:
        return {}
    if not isinstance(result, Result):
        wanted = "a Result" if method.outputs else "None"
        text = f"{where} returned {type(result).__name__} instead of {wanted}"
    else:
        try:
            return typed_arguments(result, method.outputs, where)
        except (ConstraintError, AttributeError) as error:
            text = f"{where} returned an invalid result: {error}"
    _log.error("%s", text)
    raise Refusal(ErrorCode.EXCEPTION, text)


def _check_property(obj: ManagedObject, name: str, value: object) -> object:
    schema = obj._qmf_layout.schema
    found = schema.property(name)
    if found is None:
        if schema.statistic(name) is not None:
            raise Refusal(ErrorCode.FORBIDDEN, f"{schema.name}.{name} is a statistic and cannot be set")
        error = NotFoundError(f"{schema.name} property", name, (item.name for item in schema.properties))
        raise _invalid(str(error))
    return _check_writable(found, value, f"{schema.name}.{name}")


def _check_writable(item: Property, value: object, where: str) -> object:
    if item.access is not Access.RW:
        raise Refusal(ErrorCode.FORBIDDEN, f"{where} cannot be set: its access is {item.access.value}")
    if item.index:
        raise Refusal(ErrorCode.FORBIDDEN, f"{where} cannot be set: it is part of the object's id")
    try:
        if value is not None:
            value = _from_wire(item.type, value, where)
        return make_check(item, where, optional=item.optional)(value)
    except ConstraintError as error:
        raise _invalid(str(error)) from error


def _from_wire(type: QmfType, value: object, where: str) -> object:
    try:
        return from_wire(type, value)
    except ProtocolError as error:
        raise ConstraintError(where, type.name, value, f"must be a valid {type.name}") from error


def _invalid(text: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_PARAMETER, text)
