"""Links for routes: a connection to another broker that says whether it can be reached; its routes have their own."""

from __future__ import annotations

from qmf.broker.federation.peer_connector import LinkServices, PeerConnector
from qmf.broker.federation.peer_session import PeerSession
from qmf.broker.federation.route_definitions import RouteLinkDefinition
from qmf.bus.client.network_connection import NetworkConnection


class RouteLink(PeerConnector):
    """A link for routes; a `PeerLink` for observers.

    Attributes:
        definition: what was asked for.
    """

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
