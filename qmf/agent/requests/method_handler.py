"""Method requests: checked against the schema, run, and their results checked as well (QMF2.md 4.5).

Rules:

* Unknown and missing arguments are errors with the name of the argument (qpidd fills a missing one with zero), unless
  the schema has a default.
* Synchronous methods run on the event loop and must not block, or by option on threads; `async` ones run as tasks.
  Arguments are passed by position, in schema order.
* `NotImplementedError` becomes code 3, `MethodError` its own code, any other exception code 7 with one line of text.
  The traceback is logged, and sent to the console only if the agent was made with `debug`.
* A call beyond the time limit, waiting or running, is answered with code 7. A late result is logged.
* A call whose message's time to live has ended since it arrived is not started: its caller has given up.
* ``_set_properties`` sets properties with access RW: an extension; no schema can declare such a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from functools import partial

import attrs

from qmf.agent.layout import object_state
from qmf.agent.layout.checks import make_check
from qmf.agent.layout.class_layout import ClassLayout
from qmf.agent.metrics import AgentMetrics
from qmf.agent.model.arguments import python_name
from qmf.agent.model.managed_object import ManagedObject
from qmf.agent.objects.object_sources import ObjectSources
from qmf.agent.request_errors import RequestRefused, one_line
from qmf.agent.requests.access import AccessControl, Action
from qmf.agent.requests.call_audit import CallAuditor
from qmf.agent.requests.call_runner import CallExpired, CallRunner
from qmf.agent.requests.method_signature import MethodSignature, invalid_parameter, to_schema_type
from qmf.agent.sending.message_sender import MessageSender
from qmf.errors import ConstraintError, NotFoundError
from qmf.protocol import Envelope, ErrorCode, MethodRequest, MethodResponse
from qmf.schema import Access, Property

#: Name of the request that sets properties.
SET_PROPERTIES = "_set_properties"


@attrs.frozen
class Caller:
    """The console that called a method.

    Attributes:
        user_id: its user, as set by the broker, or None without any. If the broker does not check it, consoles can set
            any.
        reply_to: address of the answer.
        on_behalf_of: the user of the console's own whom it calls for, as the console says; None for its own user.
    """

    user_id: str | None
    reply_to: str | None
    on_behalf_of: str | None = None


_caller: ContextVar[Caller | None] = ContextVar("qmf_caller", default=None)


def current_caller() -> Caller | None:
    """The caller of the method or property change that is running; None outside of these."""
    return _caller.get()


class MethodHandler:
    """Runs the methods of one agent's objects."""

    def __init__(
        self,
        sources: ObjectSources,
        sender: MessageSender,
        access: AccessControl,
        metrics: AgentMetrics,
        *,
        limit: int,
        timeout: float | None,
        threads: bool = False,
        auditor: CallAuditor | None = None,
    ) -> None:
        """Set up.

        Args:
            limit: calls that run at the same time; more calls wait.
            timeout: seconds for one call, or None. Only methods that await can be interrupted.
            threads: run methods that are not ``async`` on threads.
            auditor: reports calls as events, or None.
        """
        self._auditor = auditor
        self._sources = sources
        self._sender = sender
        self._access = access
        self._metrics = metrics
        self._runner = CallRunner(limit, timeout, threads=threads)
        self._signatures: dict[tuple[ClassLayout, str], MethodSignature] = {}

    def close(self) -> None:
        """Start nothing more on threads."""
        self._runner.close()

    async def answer(self, request: Envelope, call: MethodRequest, expires: float | None = None) -> None:
        """Run one call in the current task and answer it.

        Args:
            expires: the time of the loop until which its caller waits, or None.

        Raises:
            RequestRefused: the call is invalid or failed.
        """
        self._metrics.add("method_calls")
        try:
            await self._answer(request, call, expires)
        except CallExpired as expired:
            self._metrics.add("calls_expired")
            self._metrics.warn_once("expired", "%s", expired.text)
            raise

    async def _answer(self, request: Envelope, call: MethodRequest, expires: float | None) -> None:
        _caller.set(Caller(request.user_id, request.reply_to, call.on_behalf_of))
        if self._auditor is None:
            outputs = await self._run(request, call, expires)
        else:
            outputs = await self._run_and_report(request, call, expires, self._auditor)
        await self._sender.answer(request, MethodResponse(arguments=outputs))

    async def _run_and_report(
        self, request: Envelope, call: MethodRequest, expires: float | None, auditor: CallAuditor
    ) -> dict[str, object]:
        begin = auditor.clock.monotonic()
        report = partial(auditor.report, request.user_id, request.reply_to, call, begin)
        try:
            outputs = await self._run(request, call, expires)
        except RequestRefused as refusal:
            report(code=refusal.code, text=refusal.text)
            raise
        except Exception as error:
            # A bug, which the caller gets with the same code.
            report(code=ErrorCode.EXCEPTION, text=one_line(error))
            raise
        report(results=outputs)
        return outputs

    async def _run(self, request: Envelope, call: MethodRequest, expires: float | None) -> dict[str, object]:
        obj = await self._find(request, call)
        if call.method == SET_PROPERTIES:
            return await self._set_properties(request, obj, call.arguments, expires)
        return await self._call(request, obj, call, expires)

    async def _find(self, request: Envelope, call: MethodRequest) -> ManagedObject:
        if call.object_id is None:
            raise RequestRefused(ErrorCode.INVALID_PARAMETER, f"method {call.method} needs an '_object_id'")
        obj = await self._sources.find(call.object_id)
        if obj is None:
            # Who may not call it does not learn either whether the object is there.
            action = Action.SET if call.method == SET_PROPERTIES else Action.METHOD
            await self._access.check(request, action, object_id=call.object_id, method=call.method)
            raise RequestRefused(ErrorCode.UNKNOWN_OBJECT, f"no object found with id {call.object_id}")
        return obj

    async def _call(
        self, request: Envelope, obj: ManagedObject, call: MethodRequest, expires: float | None
    ) -> dict[str, object]:
        signature = self._signature(object_state.layout(obj), call.method)
        method, where = signature.method, signature.where
        arguments = signature.arguments(call.arguments)
        function = getattr(obj, python_name(type(obj), method.name), None)
        if not callable(function):
            raise RequestRefused(ErrorCode.NOT_IMPLEMENTED, f"{where} is not implemented")
        if self._access.is_active:
            await self._access.check(
                request,
                Action.METHOD,
                class_key=object_state.layout(obj).key,
                object_id=object_state.object_id(obj),
                method=method.name,
                arguments={item.name: value for item, value in zip(method.inputs, arguments, strict=True)},
            )
        return signature.result(await self._runner.run(where, partial(function, *arguments), expires))

    def _signature(self, layout: ClassLayout, name: str) -> MethodSignature:
        known = self._signatures.get((layout, name))
        if known is not None:
            return known
        schema = layout.schema
        method = schema.method(name)
        if method is None:
            error = NotFoundError(f"{schema.name} method", name, (item.name for item in schema.methods))
            raise RequestRefused(ErrorCode.UNKNOWN_METHOD, str(error))
        signature = self._signatures[layout, name] = MethodSignature(schema, method)
        return signature

    async def _set_properties(
        self, request: Envelope, obj: ManagedObject, values: Mapping[str, object], expires: float | None
    ) -> dict[str, object]:
        """All values are checked before the first is set; if one is refused, those set before it are set back."""
        checked = {name: _check_property(obj, name, value) for name, value in values.items()}
        schema = object_state.layout(obj).schema
        await self._access.check(
            request, Action.SET, class_key=schema.key, object_id=object_state.object_id(obj), arguments=checked
        )
        before: dict[str, object] = {}
        try:
            for name, value in checked.items():
                old = getattr(obj, object_state.layout(obj).field(name).python_name)
                await self._runner.run(f"{schema.name}.{name}", partial(obj._qmf_set_property, name, value), expires)
                before[name] = old
                expires = None  # half of the values are no answer
        except BaseException:
            for name, old in reversed(before.items()):
                await self._runner.run(f"{schema.name}.{name}", partial(obj._qmf_set_property, name, old))
            raise
        return {}


def _check_property(obj: ManagedObject, name: str, value: object) -> object:
    schema = object_state.layout(obj).schema
    found = schema.property(name)
    if found is None:
        if schema.statistic(name) is not None:
            raise RequestRefused(ErrorCode.FORBIDDEN, f"{schema.name}.{name} is a statistic and cannot be set")
        error = NotFoundError(f"{schema.name} property", name, (item.name for item in schema.properties))
        raise invalid_parameter(str(error))
    return _check_writable(found, value, f"{schema.name}.{name}")


def _check_writable(item: Property, value: object, where: str) -> object:
    if item.access is not Access.RW:
        raise RequestRefused(ErrorCode.FORBIDDEN, f"{where} cannot be set: its access is {item.access.value}")
    if item.index:
        raise RequestRefused(ErrorCode.FORBIDDEN, f"{where} cannot be set: it is part of the object's id")
    try:
        if value is not None:
            value = to_schema_type(item.type, value, where)
        return make_check(item, where, optional=item.optional)(value)
    except ConstraintError as error:
        raise invalid_parameter(str(error)) from error
