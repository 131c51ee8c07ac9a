"""Keeps a managed object for everything that a broker has."""

from __future__ import annotations

from qmf.agent import Agent
from qmf.broker.connection import Connection
from qmf.broker.exchanges import Exchange, Match
from qmf.broker.links import Feed, Intake
from qmf.broker.managed import (
    ManagedBinding,
    ManagedBroker,
    ManagedExchange,
    ManagedQueue,
    ManagedSystem,
    ManagedVhost,
)
from qmf.broker.managed_clients import ManagedConnection, ManagedSession, ManagedSubscription
from qmf.broker.nodes import DefaultExchange, Directory
from qmf.broker.observer import Observer
from qmf.broker.queues import Queue
from qmf.broker.sampling import Sampler, Shelf
from qmf.models.broker import agent as model

#: Everything that consoles can ask about, whether or not there is any of it.
CLASSES = (
    model.System,
    model.Broker,
    model.Vhost,
    model.Exchange,
    model.Queue,
    model.Binding,
    model.Connection,
    model.Session,
    model.Subscription,
)


class ObjectKeeper(Observer):
    """Adds objects to an agent and removes them, as what they describe comes and goes."""

    def __init__(self, agent: Agent, sampler: Sampler, directory: Directory, listening: str) -> None:
        """Args:

        agent: of the broker.
        sampler: told of the objects.
        directory: of the broker.
        listening: host and port that clients connect to.
        """
        self._agent = agent
        self._directory = directory
        self._listening = listening
        self._systems: Shelf[str, ManagedSystem] = Shelf(agent)
        self._brokers: Shelf[str, ManagedBroker] = Shelf(agent)
        self._vhosts: Shelf[str, ManagedVhost] = Shelf(agent)
        self._exchanges: Shelf[Exchange | DefaultExchange, ManagedExchange] = Shelf(agent)
        self._queues: Shelf[Queue, ManagedQueue] = Shelf(agent)
        self._bindings: Shelf[tuple[Exchange | DefaultExchange, Queue], ManagedBinding] = Shelf(agent)
        self._connections: Shelf[Connection, ManagedConnection] = Shelf(agent)
        #: By the engine's handle of the session, too: all it is good for is to tell sessions of a connection apart.
        self._sessions: Shelf[tuple[Connection, object], ManagedSession] = Shelf(agent)
        self._subscriptions: Shelf[Feed, ManagedSubscription] = Shelf(agent)
        sampler.add("Broker", self._brokers.sample)
        sampler.add("Exchange", self._exchanges.sample)
        sampler.add("Queue", self._queues.sample)
        sampler.add("Binding", self._bindings.sample)
        sampler.add("Connection", self._connections.sample)
        sampler.add("Session", self._sessions.sample)
        sampler.add("Subscription", self._subscriptions.sample)

    def describe(self, *, port: int, backlog: int, interval: float) -> None:
        """Add what is there from the start; called once, before all others.

        Args:
            port, backlog: of the listening socket.
            interval: seconds between publications.
        """
        directory = self._directory
        system = ManagedSystem()
        broker = ManagedBroker(system, directory, port=port, backlog=backlog, interval=interval)
        vhost = self._vhost = ManagedVhost(broker)
        self._systems.add("", system)
        self._brokers.add("", broker)
        self._vhosts.add("", vhost)
        # Ids of what is in the virtual host leave that out, as qpidd's do: it is always the same.
        for exchange in self._all_exchanges():
            self._exchanges.add(exchange, ManagedExchange(vhost, exchange), exchange.name)
        for queue in directory.queues:
            self._add_queue(queue, temporary=False, creator="")

    def connected(self, client: Connection) -> None:
        """See `Observer`."""
        if client.peer is not None:
            connection = ManagedConnection(self._vhost, client, client.peer, self._listening)
            self._connections.add(client, connection, connection.address)

    def disconnected(self, client: Connection) -> None:
        """See `Observer`."""
        self._connections.remove(client)

    def declared(self, queue: Queue, client: Connection | None) -> None:
        """See `Observer`."""
        creator = "" if client is None or client.peer is None else client.peer.user
        self._add_queue(queue, temporary=True, creator=creator)

    def deleted(self, queue: Queue, client: Connection | None) -> None:  # noqa: ARG002
        """See `Observer`."""
        for exchange in self._all_exchanges():
            self._bindings.remove((exchange, queue))
        self._queues.remove(queue)

    def bound(self, exchange: Exchange, queue: Queue, match: Match, client: Connection | None) -> None:  # noqa: ARG002
        """See `Observer`."""
        self._add_binding(exchange, queue, match)

    def attached(self, client: Connection, end: Feed | Intake) -> None:
        """See `Observer`."""
        connection = self._connections.get(client)
        if connection is None:
            return
        connection.add(end)
        key = (client, end.link.session_impl)
        session = self._sessions.get(key)
        if session is None:
            session = ManagedSession(self._vhost, connection)
            self._sessions.add(key, session, session.name)
        session.ends.add(end)
        if isinstance(end, Feed):
            self._subscriptions.add(end, ManagedSubscription(session, self._queues.get(end.queue), end))

    def detached(self, client: Connection, end: Feed | Intake) -> None:
        """See `Observer`."""
        if isinstance(end, Feed):
            self._subscriptions.remove(end)
        key = (client, end.link.session_impl)
        session = self._sessions.get(key)
        if session is not None:
            session.ends.discard(end)
            if not session.ends:
                self._sessions.remove(key)
        connection = self._connections.get(client)
        if connection is not None:
            connection.remove(end)

    def _all_exchanges(self) -> list[Exchange | DefaultExchange]:
        return [self._directory.default, *self._directory.exchanges]

    def _add_queue(self, queue: Queue, *, temporary: bool, creator: str) -> None:
        it = ManagedQueue(self._vhost, queue, temporary=temporary, creator=creator)
        self._queues.add(queue, it, it.name)
        self._add_binding(self._directory.default, queue, Match(queue.name))

    def _add_binding(self, exchange: Exchange | DefaultExchange, queue: Queue, match: Match) -> None:
        source, target = self._exchanges.get(exchange), self._queues.get(queue)
        if source is None or target is None:
            return
        target.bindings += 1
        counts = queue.counts

        def matched() -> int:
            if isinstance(exchange, DefaultExchange):
                return counts.by_default
            # Nobody counts for each binding: what did not come by name came by the one that is left.
            return counts.enqueues - counts.by_default - counts.by_name if target.bindings == 2 else 0

        self._bindings.add((exchange, queue), ManagedBinding(source, target, match, matched))
