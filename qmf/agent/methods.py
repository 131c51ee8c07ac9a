"""Method requests: checked against the schema, run, and their results checked as well (QMF2.md 4.5).

Rules:

* Arguments: unknown and missing ones are refused by name. qpidd fills a missing one with zero; a console that forgot
  one is told so here. The schema's default is used where there is one.
* Synchronous methods run on the event loop and must not block; `async` ones run beside it. Arguments are passed by
  position, in schema order.
* `NotImplementedError` becomes code 3, `MethodError` its own code, any other exception code 7 with one line of text.
  The traceback goes to the log, never to the bus.
* ``_set_properties`` sets properties with access RW: our extension; no schema can declare such a name.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any

import attrs

from qmf.agent.checks import make_check
from qmf.agent.model import ManagedObject, Result, argument_check, python_name, typed_arguments
from qmf.agent.objects import ObjectStore
from qmf.agent.outbox import Outbox
from qmf.agent.refusal import MethodError, Refusal, one_line
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

    def __init__(self, store: ObjectStore, outbox: Outbox, tally: Tally, *, limit: int, timeout: float | None) -> None:
        """Set up.

        Args:
            store, outbox, tally: of the agent.
            limit: calls that run at the same time; more wait for their turn.
            timeout: seconds for one call, or None. Only what awaits can be interrupted.
        """
        self._store = store
        self._outbox = outbox
        self._tally = tally
        self._free = asyncio.Semaphore(limit)
        self._timeout = timeout

    async def answer(self, request: Envelope, call: MethodRequest) -> None:
        """Run one call in the current task and answer it.

        Raises:
            Refusal: the call is invalid or failed.
        """
        self._tally.add("method_calls")
        async with self._free:
            _caller.set(Caller(request.user_id, request.reply_to))
            obj = self._find(call)
            if call.method == SET_PROPERTIES:
                outputs = await self._set_properties(obj, call.arguments)
            else:
                outputs = await self._call(obj, call)
        await self._outbox.answer(request, MethodResponse(arguments=outputs))

    def _find(self, call: MethodRequest) -> ManagedObject:
        if call.object_id is None:
            raise Refusal(ErrorCode.INVALID_PARAMETER, f"method {call.method} needs an '_object_id'")
        obj = self._store.find(call.object_id)
        if obj is None:
            raise Refusal(ErrorCode.UNKNOWN_OBJECT, f"no object found with id {call.object_id}")
        return obj

    async def _call(self, obj: ManagedObject, call: MethodRequest) -> dict[str, object]:
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
        result = await self._run(where, lambda: function(*arguments))
        return _check_result(method, result, where)

    async def _set_properties(self, obj: ManagedObject, values: Mapping[str, object]) -> dict[str, object]:
        """All are checked before the first is set."""
        checked = {name: _check_property(obj, name, value) for name, value in values.items()}
        for name, value in checked.items():
            where = f"{obj._qmf_layout.schema.name}.{name}"
            await self._run(where, lambda name=name, value=value: obj._qmf_set_property(name, value))  # type: ignore[misc]
        return {}

    async def _run(self, where: str, function: Callable[[], Any | Awaitable[Any]]) -> Any:
        """Run what an application wrote, and turn all that it may do into a result or a `Refusal`."""
        try:
            async with asyncio.timeout(self._timeout) as limit:
                result = function()
                return await result if inspect.isawaitable(result) else result
        except MethodError as error:
            raise Refusal(error.code, error.text) from error
        except NotImplementedError as error:
            text = str(error) or f"{where} is not implemented"
            raise Refusal(ErrorCode.NOT_IMPLEMENTED, text) from error
        except asyncio.CancelledError as error:
            raise Refusal(ErrorCode.EXCEPTION, f"{where} was cancelled") from error
        except TimeoutError as error:
            if not limit.expired():
                raise self._failed(where, error) from error
            raise Refusal(ErrorCode.EXCEPTION, f"{where} took longer than {self._timeout:g} s") from error
        except Exception as error:
            raise self._failed(where, error) from error

    def _failed(self, where: str, error: Exception) -> Refusal:
        _log.error("%s failed", where, exc_info=error)
        return Refusal(ErrorCode.EXCEPTION, one_line(error))


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
