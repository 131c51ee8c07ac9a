"""Observers of a broker: notified when clients, links, queues and bindings come and go.

Messages are not reported: they are counted where they pass. Observers see what comes and goes by protocols
(`observed_clients`, `observed_peers`, `observed_forwarding`), so that exchanges and queues, which notify them, need not
know the classes of connections and links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from qmf.broker.client_info import ClientInfo
from qmf.broker.nodes.alerts import Crossing
from qmf.broker.nodes.bindings import BindingSpec
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.observed_clients import (
    BrokerClient,
    ClientLink,
    ClientSession,
    LastingSession,
)
from qmf.broker.nodes.observed_definitions import (
    MessageRelay,
    NodeLink,
    ObservedDefinition,
    PeerBridge,
    PeerDomain,
    PeerLink,
    PeerRoute,
)
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.topics import NodePolicy, Topic


class BrokerObserver:
    """Notified on the loop's thread, after something was created and before it is removed. This one does nothing.

    The methods must not block or raise. `client` is None for what the broker does for itself.
    """

    def on_connected(self, client: ClientSession) -> None:
        """A client has connected and logged in, or this broker has, at another one (`ClientInfo.domain`)."""

    def on_connection_refused(self, info: ClientInfo, reason: str) -> None:
        """A client could not log in, or there are too many connections."""

    def on_disconnected(self, client: ClientSession) -> None:
        """A client that had connected is gone; its links were reported before."""

    def on_session_begun(self, session: LastingSession) -> None:
        """A session has begun, or is there from an earlier run."""

    def on_session_connected(self, session: LastingSession) -> None:
        """The client of a session is connected."""

    def on_session_disconnected(self, session: LastingSession) -> None:
        """The client of a session is gone, and the session stays for now."""

    def on_session_ended(self, session: LastingSession) -> None:
        """A session is gone, and so is its queue; of its client, nothing more is reported."""

    def on_declared_again(self, node: Queue | Exchange, client: BrokerClient) -> None:
        """A client has asked to create a node that exists."""

    def on_connection_revoked(self, client: ClientSession, reason: str) -> None:
        """The connection of a client is closed, since its user, its token or its right to connect has ended."""

    def on_link_revoked(self, client: ClientSession, link: str, reason: str) -> None:
        """A link, by its name, is detached, since it lacks a right under the rules that apply now."""

    def on_called(self, info: ClientInfo, method: str, name: str, reason: str) -> None:
        """A client calls a method of management, or sets properties.

        Args:
            reason: why it may not; empty if it may.
        """

    def on_exchange_declared(self, exchange: Exchange, client: BrokerClient | None) -> None:
        """An exchange was created. Those that exist from the start are not reported."""

    def on_exchange_deleted(self, exchange: Exchange, client: BrokerClient | None) -> None:
        """An exchange is about to be deleted, with its bindings."""

    def on_queue_declared(self, queue: Queue, client: BrokerClient | None) -> None:
        """A queue was created. Those that exist from the start are not reported."""

    def on_queue_deleted(self, queue: Queue, client: BrokerClient | None) -> None:
        """A queue is about to be deleted, with its bindings."""

    def on_bound(self, exchange: Exchange, queue: Queue, spec: BindingSpec, client: BrokerClient | None) -> None:
        """A queue was bound to an exchange."""

    def on_unbound(self, exchange: Exchange, queue: Queue, spec: BindingSpec, client: BrokerClient | None) -> None:
        """A binding is about to be removed. Those of a queue or exchange that is deleted are not reported."""

    def on_origins_changed(self, exchange: Exchange) -> None:
        """Other brokers ask for other bindings of an exchange (`Binding.origins`), which exist already."""

    def on_topic_declared(self, topic: Topic) -> None:
        """A topic was created."""

    def on_topic_deleted(self, topic: Topic) -> None:
        """A topic is about to be deleted."""

    def on_policy_declared(self, policy: NodePolicy) -> None:
        """A policy was created."""

    def on_policy_deleted(self, policy: NodePolicy) -> None:
        """A policy is about to be deleted."""

    def on_forwarder_declared(self, forwarder: ObservedDefinition) -> None:
        """A domain, a link, a bridge or a relay was created; it is reported as what it is as well."""

    def on_forwarder_deleted(self, forwarder: ObservedDefinition) -> None:
        """One of them is about to be deleted; it is reported as what it is as well."""

    def on_domain_declared(self, domain: PeerDomain) -> None:
        """A domain was created."""

    def on_domain_deleted(self, domain: PeerDomain) -> None:
        """A domain is about to be deleted."""

    def on_link_declared(self, link: PeerLink) -> None:
        """A link to another broker was created."""

    def on_link_deleted(self, link: PeerLink) -> None:
        """A link to another broker is about to be deleted."""

    def on_bridge_declared(self, bridge: PeerBridge) -> None:
        """A bridge was created."""

    def on_bridge_deleted(self, bridge: PeerBridge) -> None:
        """A bridge is about to be deleted."""

    def on_relay_declared(self, relay: MessageRelay) -> None:
        """A relay was created."""

    def on_relay_deleted(self, relay: MessageRelay) -> None:
        """A relay is about to be deleted."""

    def on_dead_letter(self, domain: str, address: str, reason: str) -> None:
        """A message could not be forwarded, and is in the queue for dead letters.

        Args:
            domain: of the relay; empty for a message to a domain without one.
            address: to which it was sent.
            reason: for people.
        """

    def on_route_declared(self, route: PeerRoute) -> None:
        """A link that transfers messages, or a bridge, was created; reported after it was as what it is."""

    def on_route_deleted(self, route: PeerRoute) -> None:
        """Such a link or bridge is about to be deleted."""

    def on_messages_in_doubt(self, route: str, peer: str, count: int, reason: str) -> None:
        """It is not known whether another broker has messages.

        Args:
            route: name of what has sent them: a link, a bridge, or the transmission queue of a relay.
            peer: which broker.
            count: number of messages.
            reason: why, and what becomes of them, for people.
        """

    def on_queue_link_declared(self, link: NodeLink) -> None:
        """A link within the broker was created."""

    def on_queue_link_deleted(self, link: NodeLink) -> None:
        """A link within the broker is about to be deleted."""

    def on_queue_link_changed(self, link: NodeLink) -> None:
        """A link within the broker has another state, or another reason for it."""

    def on_queue_link_advanced(self, link: NodeLink) -> None:
        """A durable link within the broker passes messages on: its `fields` belong to the same unit of the store."""

    def on_redirected(self, source: Queue, target: Queue) -> None:
        """New messages of a queue go to another one."""

    def on_redirection_ended(self, source: Queue, target: Queue) -> None:
        """New messages of a queue go to itself again."""

    def on_threshold(self, queue: Queue, crossing: Crossing) -> None:
        """A queue has grown beyond a threshold, or has drained."""

    def on_attached(self, client: ClientSession, link: ClientLink) -> None:
        """A client has attached a link."""

    def on_detached(self, client: ClientSession, link: ClientLink) -> None:
        """A link of a client is about to be removed."""


class BrokerObservers(BrokerObserver):
    """Several observers, notified one after the other."""

    def __init__(self, *observers: BrokerObserver) -> None:
        for name, does_nothing in vars(BrokerObserver).items():
            if name.startswith("on_"):
                methods = [getattr(observer, name) for observer in observers]
                methods = [method for method in methods if getattr(method, "__func__", None) is not does_nothing]
                if methods:
                    setattr(self, name, methods[0] if len(methods) == 1 else partial(_notify, methods))


def _notify(methods: Iterable[Callable[..., None]], *args: object) -> None:
    for method in methods:
        method(*args)
