"""Raises events for what clients of a broker do. What the broker does for itself is no event."""

from __future__ import annotations

import logging

from qmf.agent import Agent, Event
from qmf.broker.links.connection import Connection
from qmf.broker.links.links import IncomingLink, OutgoingLink
from qmf.broker.management.values import address, long, plain, short
from qmf.broker.nodes.exchanges import BindingSpec, Exchange
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.observer import BrokerObserver
from qmf.errors import CallerError
from qmf.models.broker import agent as model

log = logging.getLogger("qmf.broker")

#: Everything that consoles can hear.
EVENTS = (
    model.ClientConnect,
    model.ClientDisconnect,
    model.QueueDeclare,
    model.QueueDelete,
    model.Bind,
    model.Unbind,
    model.Subscribe,
    model.Unsubscribe,
)


class EventPublisher(BrokerObserver):
    """Raises the events of one agent."""

    def __init__(self, agent: Agent, registry: NodeRegistry, listening: str) -> None:
        """Args:

        agent: of the broker.
        registry: of the broker.
        listening: host and port that clients connect to.
        """
        self._agent = agent
        self._registry = registry
        self._listening = listening

    def connected(self, client: Connection) -> None:
        """See `BrokerObserver`."""
        rhost, user = self._who(client)
        self._raise(model.ClientConnect(rhost=rhost, user=user, properties=_properties(client)))

    def disconnected(self, client: Connection) -> None:
        """See `BrokerObserver`."""
        rhost, user = self._who(client)
        self._raise(model.ClientDisconnect(rhost=rhost, user=user, properties=_properties(client)))

    def declared(self, queue: Queue, client: Connection | None) -> None:
        """See `BrokerObserver`."""
        if client is not None:
            rhost, user = self._who(client)
            self._raise(
                model.QueueDeclare(
                    rhost=rhost,
                    user=user,
                    qName=short(queue.name),
                    durable=False,
                    excl=queue.exclusive,
                    autoDel=True,
                    altEx="",
                    args={},
                    disp="created",
                )
            )

    def deleted(self, queue: Queue, client: Connection | None) -> None:
        """See `BrokerObserver`."""
        if client is None:
            return
        rhost, user = self._who(client)
        name = short(queue.name)
        for exchange in self._registry.exchanges:
            if (match := exchange.match(queue)) is not None:
                self._raise(
                    model.Unbind(rhost=rhost, user=user, exName=short(exchange.name), qName=name, key=long(match.key))
                )
        self._raise(model.QueueDelete(rhost=rhost, user=user, qName=name))

    def bound(self, exchange: Exchange, queue: Queue, match: BindingSpec, client: Connection | None) -> None:
        """See `BrokerObserver`."""
        if client is not None:
            rhost, user = self._who(client)
            self._raise(
                model.Bind(
                    rhost=rhost,
                    user=user,
                    exName=short(exchange.name),
                    qName=short(queue.name),
                    key=long(match.key),
                    args=plain(match.headers),
                )
            )

    def attached(self, client: Connection, end: OutgoingLink | IncomingLink) -> None:
        """See `BrokerObserver`."""
        if isinstance(end, OutgoingLink):
            rhost, user = self._who(client)
            queue = end.queue
            self._raise(
                model.Subscribe(
                    rhost=rhost,
                    user=user,
                    qName=short(queue.name),
                    dest=short(end.link.name),
                    excl=queue.exclusive,
                    args={},
                )
            )

    def detached(self, client: Connection, end: OutgoingLink | IncomingLink) -> None:
        """See `BrokerObserver`."""
        if isinstance(end, OutgoingLink):
            rhost, user = self._who(client)
            self._raise(model.Unsubscribe(rhost=rhost, user=user, dest=short(end.link.name)))

    def _who(self, client: Connection) -> tuple[str, str]:
        """The connection and its user, as events name them."""
        peer = client.peer
        return ("", "") if peer is None else (address(self._listening, peer.address), short(peer.user))

    def _raise(self, event: Event) -> None:
        try:
            self._agent.raise_event(event)
        except CallerError as error:
            # Clients choose what is in it, and must not suffer from what the model cannot hold.
            log.warning("management does not tell an event: %s", error)


def _properties(client: Connection) -> dict[str, object]:
    return {} if client.peer is None else plain(client.peer.properties)
