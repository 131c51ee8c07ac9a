"""The federation of a broker: its domains, and its links to them. Nothing runs while there are no links."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

from qmf.broker.federation.domains import BrokerDomains, DirectedLinks
from qmf.broker.federation.link_status import LINK_BACKOFF
from qmf.broker.federation.peer_connector import LinkServices
from qmf.broker.federation.peer_connectors import PeerConnectors
from qmf.broker.federation.peer_links import BrokerLink
from qmf.broker.federation.routes import BrokerRouteLinks
from qmf.broker.federation.tracing import broker_id
from qmf.broker.operations.forwarders import Forwarders
from qmf.broker.operations.forwarding import LinkDirection
from qmf.broker.operations.operations import Operations
from qmf.bus.backoff import Backoff


class BrokerFederation:
    """The domains and links of a broker; the `Federation` of its operations.

    All methods belong to the thread of the broker's loop.
    """

    def __init__(self, operations: Operations, container: str, backoff: Backoff | None = None) -> None:
        """Make a federation without domains.

        Args:
            container: its container id.
            backoff: waits between attempts to connect.
        """
        self.services = LinkServices(operations, container, backoff or LINK_BACKOFF)
        self.domains = BrokerDomains(operations.registry)
        self._links = {
            direction: DirectedLinks(self.services, self._is_taken, direction, self.domains)
            for direction in LinkDirection
        }
        self.route_links = BrokerRouteLinks(self.services, self._is_taken)
        self.bridges = self.route_links.bridges
        self._connectors: tuple[PeerConnectors[Any], ...] = (*self._links.values(), self.route_links, self.bridges)

    @property
    def tag(self) -> str:
        """The id of this broker in traces and in what brokers ask each other for."""
        return broker_id(self.services.container)

    @property
    def types(self) -> Mapping[str, Forwarders[Any]]:
        links = {direction.value: links for direction, links in self._links.items()}
        return {"domain": self.domains, **links, "link": self.route_links, "bridge": self.bridges}

    @property
    def links(self) -> Collection[BrokerLink]:
        return [link for links in self._links.values() for link in links]

    @property
    def routes(self) -> Collection[BrokerLink]:
        return (*self.links, *self.bridges)

    def start(self) -> None:
        """Connect the links, and those that are added from now on."""
        for each in self._connectors:
            each.start()

    async def close(self) -> None:
        """End all links; returns when their connections are closed."""
        await asyncio.gather(*(each.close() for each in self._connectors))

    def _is_taken(self, name: str) -> bool:
        return any(each.has(name) for each in self._connectors)
