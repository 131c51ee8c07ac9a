"""On whose behalf management is used: the client that sent a request, though it may be gone now; and whether it may."""

from __future__ import annotations

import attrs

from qmf.agent import AccessRequest, Action, current_caller
from qmf.agent.requests.method_handler import SET_PROPERTIES
from qmf.broker.client_info import ClientInfo
from qmf.broker.local_bus import sender_of_message
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.operations.principal import LOCAL, Principal

#: What stands for the address of a caller in the broker's own process.
_WITHIN = "management"
#: Subjects of queries that are not asked for.
_SCHEMAS = ("SCHEMA", "SCHEMA_ID")


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
    try:
        if request.action in (Action.METHOD, Action.SET):
            assert key is not None
            operations.ask_method(principal, request.method or SET_PROPERTIES, key.package, key.name)
        elif key is not None and (request.what is None or request.what.value not in _SCHEMAS):
            name = key.name if request.object_id is None else request.object_id.object_name
            operations.ask_query(principal, name, key.name)
    except OperationRefused as error:
        return f"unauthorized-access: {error}"
    return True
