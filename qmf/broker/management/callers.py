"""On whose behalf methods change the broker: the client that sent the request, though it may be gone now."""

from __future__ import annotations

import attrs

from qmf.agent import current_caller
from qmf.broker.client_info import ClientInfo
from qmf.broker.local_bus import sender_of_message
from qmf.broker.operations.principal import LOCAL, Principal

#: What stands for the address of a caller in the broker's own process.
_WITHIN = "management"


@attrs.frozen(eq=False)
class CallerClient:
    """A `BrokerClient` for what a console does by calling methods."""

    info: ClientInfo


def current_principal() -> Principal:
    """The caller of the method that runs: a client of the broker, or a program in its process."""
    if (sender := sender_of_message()) is not None:
        return Principal.of(CallerClient(sender))
    caller = current_caller()
    user = (caller.user_id if caller else None) or ""
    return Principal.of(CallerClient(ClientInfo(_WITHIN, user=user, protocol=LOCAL)))
