"""Raises events for what clients do. The broker's own actions raise none."""

from __future__ import annotations

import logging
from typing import Any

from qmf.agent import Agent, Event
from qmf.broker.client_info import ClientInfo
from qmf.broker.management.values import connection_address, lstr, simple_map, sstr
from qmf.broker.nodes.alerts import Crossing
from qmf.broker.nodes.bindings import BindingSpec
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.observed_clients import BrokerClient, ClientLink
from qmf.broker.nodes.observer import BrokerObserver
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.errors import CallerError
from qmf.models.broker import agent as model
from qmf.models.security import agent as security

log = logging.getLogger("qmf.broker")

#: The classes of events that are raised, as by qpidd.
EVENTS = (
    model.ClientConnect,
    model.ClientConnectFail,
    model.ClientDisconnect,
    model.BrokerLinkUp,
    model.BrokerLinkDown,
    model.QueueDeclare,
    model.QueueDelete,
    model.ExchangeDeclare,
    model.ExchangeDelete,
    model.Bind,
    model.Unbind,
    model.QueueThresholdCrossedUpward,
    model.QueueThresholdCrossedDownward,
    model.QueueThresholdExceeded,
    model.QueueRedirect,
    model.QueueRedirectCancelled,
    model.Subscribe,
    model.Unsubscribe,
)
#: And of those that qpidd does not have.
OWN_EVENTS = (security.ConnectionRevoked, security.LinkRevoked)


class RaisingObserver(BrokerObserver):
    """An observer of the broker that raises events of what it is notified of."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def _raise(self, event: Event) -> None:
        try:
            self._agent.raise_event(event)
        except CallerError as error:
            # Clients choose some of the arguments; that the schema does not allow them must not harm the clients.
            log.warning("an event is missing in the management: %s", error)


class EventPublisher(RaisingObserver):
    """Raises events with the broker's agent."""

    def __init__(self, agent: Agent, registry: NodeRegistry, listening: str) -> None:
        """Make the publisher, which is notified by the broker.

        Args:
            listening: host and port that the broker listens on.
        """
        super().__init__(agent)
        self._registry = registry
        self._listening = listening
        #: Names and users of the connections that there are, as events have them.
        self._known: dict[BrokerClient, tuple[str, str]] = {}

    def on_connected(self, client: BrokerClient) -> None:
        if client.info.bridge:  # that of its link is reported
            return
        rhost, user = self._known[client] = self._connection_and_user(client)
        if client.info.domain:
            self._raise(model.BrokerLinkUp(rhost=rhost))
            return
        self._raise(model.ClientConnect(rhost=rhost, user=user, properties=simple_map(client.info.properties)))

    def on_connection_refused(self, info: ClientInfo, reason: str) -> None:
        rhost = connection_address(self._listening, info.address)
        properties = simple_map(info.properties)
        self._raise(
            model.ClientConnectFail(rhost=rhost, user=sstr(info.user), reason=lstr(reason), properties=properties)
        )

    def on_connection_revoked(self, client: BrokerClient, reason: str) -> None:
        info = client.info
        self._raise(
            security.ConnectionRevoked(userId=sstr(info.user), clientAddr=sstr(info.address), reason=lstr(reason))
        )

    def on_link_revoked(self, client: BrokerClient, link: str, reason: str) -> None:
        info = client.info
        self._raise(
            security.LinkRevoked(
                userId=sstr(info.user), clientAddr=sstr(info.address), linkName=sstr(link), reason=lstr(reason)
            )
        )

    def on_messages_in_doubt(self, route: str, peer: str, count: int, reason: str) -> None:
        # Imported here, so that a broker without routes does not load it.
        from qmf.models.federation.agent import MessagesInDoubt

        self._agent.register(MessagesInDoubt)
        self._raise(MessagesInDoubt(name=sstr(route), peer=lstr(peer), count=count, reason=lstr(reason)))

    def on_disconnected(self, client: BrokerClient) -> None:
        if client.info.bridge:
            return
        rhost, user = self._connection_and_user(client)
        self._known.pop(client, None)
        if client.info.domain:
            self._raise(model.BrokerLinkDown(rhost=rhost))
            return
        self._raise(model.ClientDisconnect(rhost=rhost, user=user, properties=simple_map(client.info.properties)))

    def on_queue_declared(self, queue: Queue, client: BrokerClient | None) -> None:
        if client is not None:
            self._raise_declared(queue, client, "created")

    def on_exchange_declared(self, exchange: Exchange, client: BrokerClient | None) -> None:
        if client is not None:
            self._raise_declared(exchange, client, "created")

    def on_declared_again(self, node: Queue | Exchange, client: BrokerClient) -> None:
        self._raise_declared(node, client, "existing")

    def on_exchange_deleted(self, exchange: Exchange, client: BrokerClient | None) -> None:
        if client is not None:
            rhost, user = self._connection_and_user(client)
            self._raise(model.ExchangeDelete(rhost=rhost, user=user, exName=sstr(exchange.name)))

    def on_queue_deleted(self, queue: Queue, client: BrokerClient | None) -> None:
        name = sstr(queue.name)
        if client is None:
            if queue.settings.auto_delete:  # nobody deletes it; qpidd raises the event so
                self._raise(model.QueueDelete(rhost="", user="", qName=name))
            return
        rhost, user = self._connection_and_user(client)
        for exchange in self._registry.exchanges:
            for binding in exchange.bindings(queue):
                self.on_unbound(exchange, queue, binding.spec, client)
        self._raise(model.QueueDelete(rhost=rhost, user=user, qName=name))

    def on_bound(self, exchange: Exchange, queue: Queue, spec: BindingSpec, client: BrokerClient | None) -> None:
        if client is not None:
            rhost, user = self._connection_and_user(client)
            self._raise(
                model.Bind(
                    rhost=rhost,
                    user=user,
                    exName=sstr(exchange.name),
                    qName=sstr(queue.name),
                    key=lstr(spec.key),
                    args=simple_map(spec.headers),
                )
            )

    def on_unbound(self, exchange: Exchange, queue: Queue, spec: BindingSpec, client: BrokerClient | None) -> None:
        if client is not None:
            rhost, user = self._connection_and_user(client)
            name = sstr(queue.name)
            self._raise(
                model.Unbind(rhost=rhost, user=user, exName=sstr(exchange.name), qName=name, key=lstr(spec.key))
            )

    def on_redirected(self, source: Queue, target: Queue) -> None:
        self._raise(model.QueueRedirect(qName=sstr(source.name), qTarget=sstr(target.name)))

    def on_redirection_ended(self, source: Queue, target: Queue) -> None:
        self._raise(model.QueueRedirectCancelled(qName=sstr(source.name), qTarget=sstr(target.name)))

    def on_threshold(self, queue: Queue, crossing: Crossing) -> None:
        name, count, size = sstr(queue.name), crossing.count, crossing.size
        if not crossing.upward:
            self._raise(model.QueueThresholdCrossedDownward(qName=name, msgDepth=count, byteDepth=size))
            return
        self._raise(model.QueueThresholdCrossedUpward(qName=name, msgDepth=count, byteDepth=size))
        if crossing.repeats:
            self._raise(model.QueueThresholdExceeded(qName=name, msgDepth=count, byteDepth=size))

    def on_attached(self, client: BrokerClient, link: ClientLink) -> None:
        if link.queue is not None:
            rhost, user = self._connection_and_user(client)
            self._raise(
                model.Subscribe(
                    rhost=rhost,
                    user=user,
                    qName=sstr(link.queue.name),
                    dest=sstr(link.name),
                    excl=link.queue.settings.exclusive,
                    args={},
                )
            )

    def on_detached(self, client: BrokerClient, link: ClientLink) -> None:
        if link.queue is not None:
            rhost, user = self._connection_and_user(client)
            self._raise(model.Unsubscribe(rhost=rhost, user=user, dest=sstr(link.name)))

    def _raise_declared(self, node: Queue | Exchange, client: BrokerClient, disp: str) -> None:
        rhost, user = self._connection_and_user(client)
        settings = node.settings
        common: dict[str, Any] = {
            "rhost": rhost,
            "user": user,
            "durable": settings.durable,
            "autoDel": settings.auto_delete,
            "altEx": sstr(settings.alternate),
            "args": simple_map(settings.arguments),
            "disp": disp,
        }
        if isinstance(node, Queue):
            self._raise(model.QueueDeclare(qName=sstr(node.name), excl=node.settings.exclusive, **common))
        else:
            self._raise(model.ExchangeDeclare(exName=sstr(node.name), exType=node.kind, **common))

    def _connection_and_user(self, client: BrokerClient) -> tuple[str, str]:
        if (known := self._known.get(client)) is not None:
            return known
        info = client.info
        return connection_address(info.local or self._listening, info.address), sstr(info.user)


log = logging.getLogger("qmf.broker")
