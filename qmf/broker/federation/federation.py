"""The domains and links of a broker: created, deleted and restored. Nothing runs while there are no links."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from qmf.broker.federation.definitions import Domain, read_domain, read_link, read_stored_link
from qmf.broker.federation.incoming import IncomingBrokerLink
from qmf.broker.federation.local_nodes import NodeUnusable
from qmf.broker.federation.outgoing import OutgoingBrokerLink
from qmf.broker.federation.peer_connector import LinkServices
from qmf.broker.federation.peer_links import BrokerLink
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
        self._services = LinkServices(operations, container, backoff or Backoff())
        self._domains: dict[str, Domain] = {}
        self._links: dict[str, BrokerLink] = {}
        #: Those that were deleted, until their connections are closed.
        self._closing: set[asyncio.Task[None]] = set()
        self._started = False

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
        domain = self._domains.get(name)
        if domain is None:
            raise FederationError(f"No such domain: {name}")
        for link in self._links.values():
            if link.domain is domain:
                raise FederationError(f"not-allowed: domain {name} is in use by the {link.kind} link {link.name}")
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
        if name in self._links:
            raise FederationError(f"object already exists: {name}")
        definition = read_link(direction, name, properties, principal, strict=strict)
        domain = self._domains.get(definition.domain)
        if domain is None:
            raise FederationError(f"No such domain: {definition.domain}")
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
        self._registry.observer.on_link_deleted(link)
        del self._links[name]
        link.remove()
        closed = asyncio.get_running_loop().create_task(link.close())
        self._closing.add(closed)
        closed.add_done_callback(self._closing.discard)

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
        domain = self._domains.get(definition.domain)
        if domain is None:
            raise FederationError(f"No such domain: {definition.domain}")
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

    def on_node_deleted(self, node: Queue | Exchange) -> None:
        """A node of the broker was deleted: links that need it end."""
        for link in list(self._links.values()):
            link.on_node_deleted(node)

    def on_policy_changed(self) -> None:
        """Other rules apply: links end whose creators may not do any more what they do."""
        for link in list(self._links.values()):
            link.on_policy_changed()

    async def close(self) -> None:
        """End all links; returns when their connections are closed."""
        closing = [link.close() for link in self._links.values()]
        if closing or self._closing:
            await asyncio.gather(*closing, *self._closing)

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
        if self._started:
            link.start()
