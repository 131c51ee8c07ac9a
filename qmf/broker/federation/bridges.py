"""Routes (bridges): each is a link of AMQP on a connection of its own, to the broker of the link that it belongs to."""

from __future__ import annotations

import attrs

from qmf.broker.federation.incoming import IncomingBrokerLink
from qmf.broker.federation.outgoing import OutgoingBrokerLink
from qmf.broker.federation.peer_connector import LinkServices
from qmf.broker.federation.peer_links import BrokerLink
from qmf.broker.federation.route_definitions import BridgeDefinition
from qmf.broker.federation.route_links import RouteLink
from qmf.broker.nodes.peer_routes import RouteEnds


class BridgeLink(BrokerLink):
    """What routes of both directions have in common; a `PeerBridge` for observers.

    Attributes:
        bridge: what was asked for.
        link: that it belongs to.
    """

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
