"""The clients of a broker, of all its protocols: who may connect, and their end with the broker's."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice

from qmf.broker.client_info import ClientInfo
from qmf.broker.connection_limits import ConnectionCounts, ConnectionLimits
from qmf.broker.handshakes import Handshake, current_handshake
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.observed_clients import ClientSession
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.router import Node
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.operations.principal import Principal
from qmf.broker.refusal import Reason, Refusal

log = logging.getLogger("qmf.broker")

#: Seconds that clients have to answer the broker's close.
CLOSE_TIMEOUT = 2.0

#: Clients whose rights are asked for again in one turn of the loop.
_AT_ONCE = 100


class ClientSessions:
    """The clients that are connected to a broker."""

    def __init__(self, operations: Operations, limits: ConnectionLimits) -> None:
        self._operations = operations
        self._registry = operations.registry
        self._counts = ConnectionCounts(limits)
        #: Whether each one was admitted.
        self._sessions: dict[ClientSession, bool] = {}
        #: Of those that were not.
        self._handshakes: dict[ClientSession, Handshake] = {}
        #: The clients with links at a node, and how many they have there: only these are told of its end.
        self._users: dict[Node, Counter[ClientSession]] = {}
        #: Clients that are not counted any more, since others have their places: these by them.
        self._replaced: dict[ClientSession, ClientSession] = {}
        #: End the clients whose access tokens end.
        self._token_ends: dict[ClientSession, asyncio.TimerHandle] = {}
        #: The clients that are still to be asked for again, since the policy is another one.
        self._asking: Iterator[ClientSession] | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._sessions)

    def start(self, session: ClientSession) -> None:
        """A client has connected, and will log in; with TLS, its handshake has ended."""
        self._registry.counters.connections += 1
        self._sessions[session] = False
        if (handshake := current_handshake.get()) is not None:
            self._handshakes[session] = handshake
        if self._closed:  # its TLS handshake ended after `close` had looked for connections
            session.abort()

    def admit(self, session: ClientSession, replaces: ClientSession | None = None) -> Refusal | None:
        """A client has logged in, and `info` is complete. If it is refused, its protocol is to close the connection.

        Args:
            replaces: another connection of the same client, which its protocol is to close then: both are counted as
                one. None for none.
        """
        self._end_handshake(session)
        observer, info = self._registry.observer, session.info
        refusal: Refusal | None = None
        try:
            self._operations.ask_connection(Principal.of(session))
        except OperationRefused as error:
            refusal = Refusal(Reason.UNAUTHORIZED, str(error))
        else:
            if reason := self._count(session, replaces):
                refusal = Refusal(Reason.FULL, reason)
        if refusal is None:
            self._sessions[session] = True
            observer.on_connected(session)
            if info.token_end is not None:
                self._token_ends[session] = asyncio.get_running_loop().call_later(
                    max(0.0, info.token_end - time.time()), self._revoke, session, "the access token has ended"
                )
        else:
            observer.on_connection_refused(info, refusal.description)
        return refusal

    def end(self, session: ClientSession) -> None:
        """The connection of a client is gone, and all that it had."""
        self._end_handshake(session)
        if (timer := self._token_ends.pop(session, None)) is not None:
            timer.cancel()
        if self._sessions.pop(session):
            if self._replaced.pop(session, None) is None:
                self._counts.remove(session.info.host, session.info.user)
            for older in [older for older, newer in self._replaced.items() if newer is session]:
                # It was not closed: the one that was to replace it was refused in the end.
                del self._replaced[older]
                self._counts.restore(older.info.host, older.info.user)
            self._registry.observer.on_disconnected(session)

    def _end_handshake(self, session: ClientSession) -> None:
        if (handshake := self._handshakes.pop(session, None)) is not None:
            handshake.end()

    def _count(self, session: ClientSession, replaces: ClientSession | None) -> str:
        """Count a client; gives why it may not stay, or an empty text."""
        counted = replaces is not None and self._sessions.get(replaces) and replaces not in self._replaced
        if replaces is None or not counted:
            return self._counts.add(session.info.host, session.info.user)
        self._counts.remove(replaces.info.host, replaces.info.user)
        reason = self._counts.add(session.info.host, session.info.user)
        if reason:
            self._counts.restore(replaces.info.host, replaces.info.user)
        else:
            self._replaced |= {older: session for older, newer in self._replaced.items() if newer is replaces}
            self._replaced[replaces] = session
        return reason

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

    def on_policy_changed(self) -> None:
        """Other rules apply: what clients have no right to any more ends. Asks some clients now, then others."""
        asking, self._asking = self._asking, iter(list(self._sessions))
        if asking is None:
            self._ask_some()

    def on_users_changed(self, refusal: Callable[[ClientInfo], str]) -> None:
        """Other users may log in: close the connections of those who may not.

        Args:
            refusal: why a client could not log in now; empty if it could.
        """
        for session in [session for session, admitted in self._sessions.items() if admitted]:
            if reason := refusal(session.info):
                self._revoke(session, reason)

    def _ask_some(self) -> None:
        assert self._asking is not None
        some = list(islice(self._asking, _AT_ONCE))
        for session in some:
            if self._sessions.get(session):
                self._ask_again(session)
        if some:
            asyncio.get_running_loop().call_soon(self._ask_some)
        else:
            self._asking = None

    def _ask_again(self, session: ClientSession) -> None:
        try:
            self._operations.ask_connection(Principal.of(session), held=True)
        except OperationRefused as error:
            self._revoke(session, str(error))
        else:
            session.on_policy_changed()

    def _revoke(self, session: ClientSession, reason: str) -> None:
        log.warning("closing the connection of %s: %s", session, reason)
        self._registry.observer.on_connection_revoked(session, reason)
        session.close(reason, Reason.UNAUTHORIZED)

    async def close(self) -> None:
        """Close all connections; returns when they are gone."""
        self._closed = True
        sessions = list(self._sessions)
        for session in sessions:
            session.close("the broker is shutting down")
        if sessions:
            ended = [session.ended for session in sessions]
            await asyncio.wait(ended, timeout=CLOSE_TIMEOUT)
            for session in sessions:
                session.abort()
            await asyncio.wait(ended)
