"""Links for routes, and the routes (bridges) on them: each is a link of AMQP on a connection of its own."""

from __future__ import annotations

import attrs

from qmf.broker.federation.incoming import IncomingBrokerLink
from qmf.broker.federation.outgoing import OutgoingBrokerLink
from qmf.broker.federation.peer_connector import LinkServices, PeerConnector
from qmf.broker.federation.peer_links import BrokerLink
from qmf.broker.federation.peer_session import PeerSession
from qmf.broker.federation.route_definitions import BridgeDefinition, RouteLinkDefinition
from qmf.broker.nodes.bindings import BindingSpec
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.observed_clients import BrokerClient
from qmf.broker.nodes.observed_definitions import RouteEnds
from qmf.broker.nodes.observer import BrokerObserver
from qmf.broker.nodes.queues import Queue
from qmf.bus.client.network_connection import NetworkConnection


class RouteLink(PeerConnector):
    """A link for routes; a `PeerLink` for observers."""

    def __init__(self, definition: RouteLinkDefinition, services: LinkServices) -> None:
        super().__init__(
            "link",
            definition.name,
            definition.domain,
            services,
            durable=definition.durable,
            fields=definition.fields,
            container=definition.container,
            who=f"link {definition.name}",
        )
        self.definition = definition

    async def attach_links(self, network: NetworkConnection) -> None:
        """See `PeerConnector`: the connection has no links of AMQP."""
        self._url, self._network = network.url, network
        user = self.domain.login(network.url).username or ""
        self.session = PeerSession(network, self.domain.name, user, self.drop)
        self._operations.registry.observer.on_connected(self.session)


class BindingWatcher(BrokerObserver):
    """An observer of all exchanges. Routes look at the bindings later: those that go are there still."""

    def __init__(self) -> None:
        self._bridges: dict[str, set[PullBridge]] = {}

    def add(self, bridge: PullBridge) -> None:
        """Notify a route from now on."""
        self._bridges.setdefault(bridge.bridge.src, set()).add(bridge)

    def remove(self, bridge: PullBridge) -> None:
        """Do so no more."""
        self._bridges.get(bridge.bridge.src, set()).discard(bridge)

    def on_bound(self, exchange: Exchange, queue: Queue, spec: BindingSpec, client: BrokerClient | None) -> None:  # noqa: ARG002
        self._notify(exchange.name)

    def on_unbound(self, exchange: Exchange, queue: Queue, spec: BindingSpec, client: BrokerClient | None) -> None:  # noqa: ARG002
        self._notify(exchange.name)

    def on_origins_changed(self, exchange: Exchange) -> None:
        self._notify(exchange.name)

    def on_queue_deleted(self, queue: Queue, client: BrokerClient | None) -> None:  # noqa: ARG002
        """See `BrokerObserver`. Its bindings, which go with it, are not reported."""
        for exchange in self._bridges:
            self._notify(exchange)

    def _notify(self, exchange: str) -> None:
        for bridge in self._bridges.get(exchange, ()):
            bridge.on_bindings_changed()


class BridgeLink(BrokerLink):
    """What routes of both directions have in common; a `PeerBridge` for observers."""

    def __init__(self, bridge: BridgeDefinition, link: RouteLink, services: LinkServices) -> None:
        super().__init__(bridge.transfer, link.domain, services, f"route {bridge.name} of link {link.name}")
        self.kind, self.fields = "bridge", bridge.fields
        self.bridge = bridge
        self.link = link
        self.bridge_name = bridge.name

    @property
    def ends(self) -> RouteEnds:
        return attrs.evolve(super().ends, link=self.link.name, dynamic=self.bridge.dynamic)


class PullBridge(BridgeLink, IncomingBrokerLink):
    """A route from another broker to this one."""

    def on_bindings_changed(self) -> None:
        """Other keys are bound at its exchange at this broker; only dynamic routes need to know."""


class PushBridge(BridgeLink, OutgoingBrokerLink):
    """A route from this broker to another one."""
