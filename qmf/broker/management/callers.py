"""On whose behalf methods change the broker: the connection that a request came by, where that is known."""

from __future__ import annotations

import attrs

from qmf.agent import current_caller
from qmf.broker.local_bus import sender_of_message
from qmf.broker.observer import BrokerObserver, ClientInfo, ConnectedClient
from qmf.broker.operations.principal import LOCAL, Principal

#: What stands for the address of a caller in the broker's own process.
_WITHIN = "management"


@attrs.frozen(eq=False)
class CallerClient:
    """A `BrokerClient` for what a console does by calling methods."""

    info: ClientInfo


class Callers(BrokerObserver):
    """The connected clients, by container id; one that several have stands for the latest of them."""

    def __init__(self) -> None:
        self._clients: dict[str, list[ConnectedClient]] = {}

    def on_connected(self, client: ConnectedClient) -> None:
        """See `BrokerObserver`."""
        self._clients.setdefault(client.info.container, []).append(client)

    def on_disconnected(self, client: ConnectedClient) -> None:
        """See `BrokerObserver`."""
        clients = self._clients.get(client.info.container, [])
        if client in clients:
            clients.remove(client)
        if not clients:
            self._clients.pop(client.info.container, None)

    def current(self) -> Principal:
        """The caller of the method that runs; without a connection, a program in this process or one that is gone."""
        if clients := self._clients.get(sender_of_message()):
            return Principal.of(CallerClient(clients[-1].info))
        caller = current_caller()
        return Principal.of(CallerClient(ClientInfo(_WITHIN, user=(caller.user_id if caller else None) or "")), LOCAL)
