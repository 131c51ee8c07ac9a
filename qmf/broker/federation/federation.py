"""The domains and links of a broker: created, deleted and restored. Nothing runs while there are no links."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any

from qmf.broker.federation.definitions import Domain, read_domain, read_link, read_stored_link
from qmf.broker.federation.incoming import IncomingBrokerLink
from qmf.broker.federation.link_status import LINK_BACKOFF
from qmf.broker.federation.local_nodes import NodeUnusable
from qmf.broker.federation.outgoing import OutgoingBrokerLink
from qmf.broker.federation.peer_connector import LinkServices
from qmf.broker.federation.peer_links import BrokerLink
from qmf.broker.federation.route_links import RouteLink
from qmf.broker.federation.routes import Bridge, BrokerRoutes
from qmf.broker.federation.tracing import broker_id
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.queues import Queue
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.peers import FederationError, LinkDirection
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.operations.principal import Principal
from qmf.bus.backoff import Backoff

_CLASSES: Mapping[LinkDirection, type[BrokerLink]] = {
    LinkDirection.INCOMING: IncomingBrokerLink,
    LinkDirection.OUTGOING: OutgoingBrokerLink,
}


class BrokerFederation:
    """The domains and links of a broker; the `Federation` of its operations.

    All methods belong to the thread of the broker's loop.
    """

    def __init__(self, operations: Operations, container: str, backoff: Backoff | None = None) -> None:
        """Make a federation without domains.

        Args:
            operations: of the broker.
            container: its container id.
            backoff: waits between attempts to connect.
        """
        self._registry = operations.registry
        self._services = LinkServices(operations, container, backoff or LINK_BACKOFF)
        self._domains: dict[str, Domain] = {}
        self._links: dict[str, BrokerLink] = {}
        #: Those that were deleted, until their connections are closed.
        self._closing: set[asyncio.Task[None]] = set()
        #: Asked before a domain is deleted: what else needs it, for people; empty for nothing.
        self.watchers: list[Callable[[Domain], str]] = []
        self._started = False
        self._routes = BrokerRoutes(self._services, self._links.__contains__, self._close_later)

    @property
    def services(self) -> LinkServices:
        """What all links of the broker share."""
        return self._services

    def domain(self, name: str) -> Domain:
        """The domain of a name.

        Raises:
            FederationError: there is none.
        """
        found = self._domains.get(name)
        if found is None:
            raise FederationError(f"No such domain: {name}")
        return found

    @property
    def tag(self) -> str:
        """The id of this broker in traces and in what brokers ask each other for."""
        return broker_id(self._services.container)

    @property
    def route_links(self) -> Collection[RouteLink]:
        """See `Federation`."""
        return self._routes.links

    @property
    def bridges(self) -> Collection[Bridge]:
        """See `Federation`."""
        return self._routes.bridges

    @property
    def routes(self) -> Collection[BrokerLink]:
        """See `Federation`."""
        return (*self._links.values(), *self._routes.bridges)

    @property
    def domains(self) -> Collection[Domain]:
        """See `Federation`."""
        return self._domains.values()

    @property
    def links(self) -> Collection[BrokerLink]:
        """See `Federation`."""
        return self._links.values()

    def add_domain(self, name: str, properties: Mapping[str, object], *, strict: bool) -> None:
        """See `Federation`."""
        if name in self._domains:
            raise FederationError(f"A domain named {name} already exists")
        self._keep_domain(read_domain(name, properties, strict=strict))

    def remove_domain(self, name: str) -> None:
        """See `Federation`."""
        domain = self.domain(name)
        for link in self._links.values():
            if link.domain is domain:
                raise FederationError(f"not-allowed: domain {name} is in use by the {link.kind} link {link.name}")
        for user_of in self.watchers:
            if user := user_of(domain):
                raise FederationError(f"not-allowed: domain {name} is in use by {user}")
        self._registry.observer.on_domain_deleted(domain)
        del self._domains[name]

    def add_link(
        self,
        principal: Principal,
        direction: LinkDirection,
        name: str,
        properties: Mapping[str, object],
        *,
        strict: bool,
    ) -> None:
        """See `Federation`."""
        if name in self._links or self._routes.is_taken(name):
            raise FederationError(f"object already exists: {name}")
        definition = read_link(direction, name, properties, principal, strict=strict)
        domain = self.domain(definition.domain)
        if definition.durable and not domain.durable:
            raise FederationError(f"invalid-argument: durable: domain {domain.name} is not durable")
        link = _CLASSES[direction](definition, domain, self._services)
        try:
            link.check()
        except NodeUnusable as error:
            raise FederationError(f"not-found: {error}") from error
        self._keep_link(link)

    def remove_link(self, direction: LinkDirection, name: str) -> None:
        """See `Federation`."""
        link = self._links.get(name)
        if link is None or link.definition.direction is not direction:
            raise FederationError(f"No such interconnection: {name}")
        self._registry.observer.on_route_deleted(link)
        self._registry.observer.on_link_deleted(link)
        del self._links[name]
        link.remove()
        self._close_later(link.close())

    def add_route_link(
        self, principal: Principal, name: str, properties: Mapping[str, object], *, strict: bool
    ) -> None:
        """See `Federation`."""
        self._routes.add_link(principal, name, properties, strict=strict)

    def remove_route_link(self, name: str) -> None:
        """See `Federation`."""
        self._routes.remove_link(name)

    def add_bridge(self, principal: Principal, name: str, properties: Mapping[str, object], *, strict: bool) -> None:
        """See `Federation`."""
        self._routes.add_bridge(principal, name, properties, strict=strict)

    def remove_bridge(self, name: str) -> None:
        """See `Federation`."""
        self._routes.remove_bridge(name)

    def restore(self, kind: str, name: str, fields: Mapping[str, object]) -> None:
        """Add what the store has.

        Args:
            kind: the type as which consoles create it.
            name: of it.
            fields: as the store has them.

        Raises:
            FederationError: a field is wrong, or what it needs is missing.
        """
        restorers: dict[str, Callable[[str, Mapping[str, object]], None]] = {
            "domain": self.restore_domain,
            "link": self._routes.restore_link,
            "bridge": self._routes.restore_bridge,
        }
        if (restore := restorers.get(kind)) is not None:
            restore(name, fields)
        else:
            self.restore_link(LinkDirection(kind), name, fields)

    def restore_domain(self, name: str, fields: Mapping[str, object]) -> None:
        """Add a domain that the store has.

        Raises:
            FederationError: a field is wrong.
        """
        self._keep_domain(read_domain(name, fields))

    def restore_link(self, direction: LinkDirection, name: str, fields: Mapping[str, object]) -> None:
        """Add a link that the store has. If this broker cannot have it any more, its state says why.

        Raises:
            FederationError: a field is wrong, or its domain is missing.
        """
        definition = read_stored_link(direction, name, fields)
        domain = self.domain(definition.domain)
        link = _CLASSES[direction](definition, domain, self._services)
        try:
            link.check()
        except (NodeUnusable, OperationRefused) as error:
            link.fail(str(error))
        self._keep_link(link)

    def start(self) -> None:
        """Connect the links, and those that are added from now on."""
        self._started = True
        for link in self._links.values():
            link.start()
        self._routes.start()

    def on_node_deleted(self, node: Queue | Exchange) -> None:
        """A node of the broker was deleted: links that need it end."""
        for link in list(self._links.values()):
            link.on_node_deleted(node)
        self._routes.on_node_deleted(node)

    def on_policy_changed(self) -> None:
        """Other rules apply: links end whose creators may not do any more what they do."""
        for link in list(self._links.values()):
            link.on_policy_changed()
        self._routes.on_policy_changed()

    async def close(self) -> None:
        """End all links; returns when their connections are closed."""
        await asyncio.gather(self._routes.close(), *(link.close() for link in self._links.values()), *self._closing)

    def _close_later(self, closing: Coroutine[Any, Any, None]) -> None:
        closed = asyncio.get_running_loop().create_task(closing)
        self._closing.add(closed)
        closed.add_done_callback(self._closing.discard)

    def _keep_domain(self, domain: Domain) -> None:
        if domain.durable:
            self._registry.warn_durable(f"domain {domain.name}")
        self._domains[domain.name] = domain
        self._registry.observer.on_domain_declared(domain)

    def _keep_link(self, link: BrokerLink) -> None:
        if link.durable:
            self._registry.warn_durable(f"{link.kind} link {link.name}")
        self._links[link.name] = link
        self._registry.observer.on_link_declared(link)
        self._registry.observer.on_route_declared(link)
        if self._started:
            link.start()
