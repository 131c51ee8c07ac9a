"""The clients of a broker, of all its protocols: who may connect, and their end with the broker's."""

from __future__ import annotations

import asyncio
from collections import Counter

from qmf.broker.connection_limits import ConnectionCounts, ConnectionLimits
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.observer import ClientSession
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.router import Node
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.operations.principal import Principal
from qmf.broker.refusal import Reason, Refusal

#: Seconds that clients have to answer the broker's close.
CLOSE_PATIENCE = 2.0


class ClientSessions:
    """The clients that are connected to a broker."""

    def __init__(self, operations: Operations, limits: ConnectionLimits) -> None:
        """Args:

        operations: of the broker.
        limits: numbers of clients at the same time.
        """
        self._operations = operations
        self._registry = operations.registry
        self._counts = ConnectionCounts(limits)
        #: Whether each one was admitted.
        self._sessions: dict[ClientSession, bool] = {}
        #: The clients with links at a node, and how many they have there: only these are told of its end.
        self._users: dict[Node, Counter[ClientSession]] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._sessions)

    def start(self, session: ClientSession) -> None:
        """A client has connected, and will log in; with TLS, its handshake has ended."""
        self._registry.counters.connections += 1
        self._sessions[session] = False
        if self._closed:  # its TLS handshake ended after `close` had looked for connections
            session.abort()

    def admit(self, session: ClientSession) -> Refusal | None:
        """A client has logged in, and `info` is complete. If it is refused, its protocol is to close the connection."""
        observer, info = self._registry.observer, session.info
        refusal: Refusal | None = None
        try:
            self._operations.ask_connection(Principal.of(session))
        except OperationRefused as error:
            refusal = Refusal(Reason.UNAUTHORIZED, str(error))
        else:
            if reason := self._counts.add(info.host, info.user):
                refusal = Refusal(Reason.FULL, reason)
        if refusal is None:
            self._sessions[session] = True
            observer.on_connected(session)
        else:
            observer.on_connection_refused(info, refusal.description)
        return refusal

    def end(self, session: ClientSession) -> None:
        """The connection of a client is gone, and all that it had."""
        if self._sessions.pop(session):
            self._counts.remove(session.info.host, session.info.user)
            self._registry.observer.on_disconnected(session)

    def link_attached(self, session: ClientSession, node: Node) -> None:
        """A client sends to a node, or receives from it, from now on: it is to be told when the node is deleted."""
        self._users.setdefault(node, Counter())[session] += 1

    def link_detached(self, session: ClientSession, node: Node) -> None:
        """One of these links is gone."""
        users = self._users[node]
        users[session] -= 1
        if not users[session]:
            del users[session]
            if not users:
                del self._users[node]

    def on_node_deleted(self, node: Queue | Exchange) -> None:
        """A node of the broker was deleted."""
        for session in list(self._users.get(node, ())):
            session.on_node_deleted(node)

    async def close(self) -> None:
        """Close all connections; returns when they are gone."""
        self._closed = True
        sessions = list(self._sessions)
        for session in sessions:
            session.close("the broker is shutting down")
        if sessions:
            ended = [session.ended for session in sessions]
            await asyncio.wait(ended, timeout=CLOSE_PATIENCE)
            for session in sessions:
                session.abort()
            await asyncio.wait(ended)
