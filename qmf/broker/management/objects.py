"""Keeps a managed object for everything that a broker has."""

from __future__ import annotations

from qmf.agent import Agent
from qmf.broker.links.connection import Connection
from qmf.broker.links.links import IncomingLink, OutgoingLink
from qmf.broker.management.client_objects import ManagedConnection, ManagedSession, ManagedSubscription
from qmf.broker.management.node_objects import (
    ManagedBinding,
    ManagedBroker,
    ManagedExchange,
    ManagedQueue,
    ManagedSystem,
    ManagedVhost,
)
from qmf.broker.management.sampling import ObjectTable, Sampler
from qmf.broker.nodes.exchanges import BindingSpec, Exchange
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import DefaultExchange, NodeRegistry
from qmf.broker.observer import BrokerObserver
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


class ObjectPublisher(BrokerObserver):
    """Adds objects to an agent and removes them, as what they describe comes and goes."""

    def __init__(self, agent: Agent, sampler: Sampler, registry: NodeRegistry, listening: str) -> None:
        """Args:

        agent: of the broker.
        sampler: told of the objects.
        registry: of the broker.
        listening: host and port that clients connect to.
        """
        self._agent = agent
        self._registry = registry
        self._listening = listening
        self._systems: ObjectTable[str, ManagedSystem] = ObjectTable(agent)
        self._brokers: ObjectTable[str, ManagedBroker] = ObjectTable(agent)
        self._vhosts: ObjectTable[str, ManagedVhost] = ObjectTable(agent)
        self._exchanges: ObjectTable[Exchange | DefaultExchange, ManagedExchange] = ObjectTable(agent)
        self._queues: ObjectTable[Queue, ManagedQueue] = ObjectTable(agent)
        self._bindings: ObjectTable[tuple[Exchange | DefaultExchange, Queue], ManagedBinding] = ObjectTable(agent)
        self._connections: ObjectTable[Connection, ManagedConnection] = ObjectTable(agent)
        #: By the engine's handle of the session, too: all it is good for is to tell sessions of a connection apart.
        self._sessions: ObjectTable[tuple[Connection, object], ManagedSession] = ObjectTable(agent)
        self._subscriptions: ObjectTable[OutgoingLink, ManagedSubscription] = ObjectTable(agent)
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
        registry = self._registry
        system = ManagedSystem()
        broker = ManagedBroker(system, registry, port=port, backlog=backlog, interval=interval)
        vhost = self._vhost = ManagedVhost(broker)
        self._systems.add("", system)
        self._brokers.add("", broker)
        self._vhosts.add("", vhost)
        # Ids of what is in the virtual host leave that out, as qpidd's do: it is always the same.
        for exchange in self._all_exchanges():
            self._exchanges.add(exchange, ManagedExchange(vhost, exchange), exchange.name)
        for queue in registry.queues:
            self._add_queue(queue, temporary=False, creator="")

    def connected(self, client: Connection) -> None:
        """See `BrokerObserver`."""
        if client.peer is not None:
            connection = ManagedConnection(self._vhost, client, client.peer, self._listening)
            self._connections.add(client, connection, connection.address)

    def disconnected(self, client: Connection) -> None:
        """See `BrokerObserver`."""
        self._connections.remove(client)

    def declared(self, queue: Queue, client: Connection | None) -> None:
        """See `BrokerObserver`."""
        creator = "" if client is None or client.peer is None else client.peer.user
        self._add_queue(queue, temporary=True, creator=creator)

    def deleted(self, queue: Queue, client: Connection | None) -> None:  # noqa: ARG002
        """See `BrokerObserver`."""
        for exchange in self._all_exchanges():
            self._bindings.remove((exchange, queue))
        self._queues.remove(queue)

    def bound(self, exchange: Exchange, queue: Queue, match: BindingSpec, client: Connection | None) -> None:  # noqa: ARG002
        """See `BrokerObserver`."""
        self._add_binding(exchange, queue, match)

    def attached(self, client: Connection, end: OutgoingLink | IncomingLink) -> None:
        """See `BrokerObserver`."""
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
        if isinstance(end, OutgoingLink):
            self._subscriptions.add(end, ManagedSubscription(session, self._queues.get(end.queue), end))

    def detached(self, client: Connection, end: OutgoingLink | IncomingLink) -> None:
        """See `BrokerObserver`."""
        if isinstance(end, OutgoingLink):
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
        return [self._registry.default, *self._registry.exchanges]

    def _add_queue(self, queue: Queue, *, temporary: bool, creator: str) -> None:
        it = ManagedQueue(self._vhost, queue, temporary=temporary, creator=creator)
        self._queues.add(queue, it, it.name)
        self._add_binding(self._registry.default, queue, BindingSpec(queue.name))

    def _add_binding(self, exchange: Exchange | DefaultExchange, queue: Queue, match: BindingSpec) -> None:
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
