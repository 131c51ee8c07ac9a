"""On whose behalf management is used: the client that sent a request, even if it is gone now; and its refusals."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Never, ParamSpec, TypeVar

import attrs

from qmf.agent import AccessRequest, Action, ErrorCode, MethodError, current_caller
from qmf.agent.requests.method_handler import SET_PROPERTIES
from qmf.broker.client_info import ClientInfo
from qmf.broker.local_bus import sender_of_message
from qmf.broker.operations import policy as operations_policy
from qmf.broker.operations.forwarders import ForwardingError
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import ObjectType, OperationRefused
from qmf.broker.operations.principal import LOCAL, Principal

#: What stands for the address of a caller in the broker's own process.
_WITHIN = "management"
#: What the methods of queues are asked for, where the queue is not there to be asked about.
_OF_QUEUES = {"purge": operations_policy.Action.PURGE, "reroute": operations_policy.Action.REROUTE}
#: Subjects of queries that are not asked for.
_SCHEMAS = ("SCHEMA", "SCHEMA_ID")

_P = ParamSpec("_P")
_R = TypeVar("_R")


def answers_refusals(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """A method whose caller is told, as by qpidd, what the policy refuses, and what cannot be changed of forwarding."""

    @wraps(method)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return method(*args, **kwargs)
        except OperationRefused as error:
            raise MethodError(f"unauthorized-access: {error}", ErrorCode.FORBIDDEN) from error
        except ForwardingError as error:
            raise MethodError(str(error)) from error

    return call


@attrs.frozen(eq=False)
class CallerClient:
    """A `BrokerClient` for what a console does by calling methods."""

    info: ClientInfo


def current_principal(user: str | None = None) -> Principal:
    """Who sent the request that is answered: a client of the broker, or a program in its process.

    Args:
        user: of a program in the process; None for that of the method that runs.
    """
    if (sender := sender_of_message()) is not None:
        return Principal.of(CallerClient(sender))
    caller = current_caller()
    user = user or (caller.user_id if caller else None) or ""
    return Principal.of(CallerClient(ClientInfo(_WITHIN, user=user, protocol=LOCAL)))


def decide(operations: Operations, request: AccessRequest) -> bool | str:
    """Ask the policy for a request to the agent, with the words of qpidd's ACL files.

    Returns:
        True if it is allowed, or not asked for: schemas are not secret, and of a class that is unknown there are no
        objects. Else the reason, for the console.
    """
    principal, key = current_principal(request.user_id), request.class_key
    named = key.name if key is not None else ""
    package, class_name, name = ("" if key is None else key.package, named, named)
    if (object_id := request.object_id) is not None:
        name = object_id.object_name
        if key is None:  # there is no such object, or the query names no class: this agent's ids have it
            package, class_name, *_ = *name.split(":"), "", ""
    try:
        if request.action in (Action.METHOD, Action.SET):
            operations.ask_method(principal, request.method or SET_PROPERTIES, package, class_name)
            if key is None and (asked := _OF_QUEUES.get(request.method or "")) is not None:
                operations.ask_missing(principal, asked, ObjectType.QUEUE, name.partition(":")[2].partition(":")[2])
        elif class_name and (request.what is None or request.what.value not in _SCHEMAS):
            operations.ask_query(principal, name, class_name)
    except OperationRefused as error:
        return f"unauthorized-access: {error}"
    return True


#: qpidd's texts, by code.
_TEXTS = {
    ErrorCode.UNKNOWN_OBJECT: "UnknownObject",
    ErrorCode.NOT_IMPLEMENTED: "NotImplemented",
    ErrorCode.INVALID_PARAMETER: "InvalidParameter",
}


def refusal(code: ErrorCode, reason: str) -> MethodError:
    """An error with one of qpidd's own codes and its text, and the reason."""
    return MethodError(f"{_TEXTS[code]}: {reason}", code)


def not_implemented(name: str, reason: str = "") -> Callable[..., Never]:
    """A method that raises `MethodError`.

    Args:
        name: class and method, as in ``Session.close``.
        reason: why; by default that qpidd has none either.
    """

    def refuse(*_args: object, **_kwargs: object) -> Never:
        raise refusal(ErrorCode.NOT_IMPLEMENTED, f"{name}: {reason or 'qpidd has none, either'}")

    return refuse
