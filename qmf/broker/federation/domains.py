"""The domains of a broker: the other brokers to which it can have links, and its incoming and outgoing links."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qmf.broker.federation.definitions import Domain, LinkDefinition, read_domain, read_link, split_link_fields
from qmf.broker.federation.incoming import IncomingBrokerLink
from qmf.broker.federation.outgoing import OutgoingBrokerLink
from qmf.broker.federation.peer_connector import LinkServices
from qmf.broker.federation.peer_connectors import PeerConnectors, check_new, check_restored
from qmf.broker.federation.peer_links import BrokerLink
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.operations.forwarders import Forwarders, ForwardingError
from qmf.broker.operations.forwarding import LinkDirection
from qmf.broker.operations.principal import Principal


class BrokerDomains(Forwarders[Domain]):
    """The domains of a broker.

    Attributes:
        watchers: asked before a domain is deleted: what needs it, for people; empty for nothing.
    """

    def __init__(self, registry: NodeRegistry) -> None:
        super().__init__(registry, "domain")
        self.watchers: list[Callable[[Domain], str]] = []

    def add(self, principal: Principal, name: str, properties: Mapping[str, object], *, strict: bool) -> None:  # noqa: ARG002
        if self.has(name):
            raise ForwardingError(f"A domain named {name} already exists")
        self._keep(read_domain(name, properties, strict=strict))

    def remove(self, name: str) -> None:
        domain = self.find(name)
        for user_of in self.watchers:
            if user := user_of(domain):
                raise ForwardingError(f"not-allowed: domain {name} is in use by {user}")
        self._take(name)

    def restore(self, name: str, fields: Mapping[str, object]) -> None:
        self._keep(read_domain(name, fields))

    def _report_declared(self, item: Domain) -> None:
        self._registry.observer.on_domain_declared(item)

    def _report_deleted(self, item: Domain) -> None:
        self._registry.observer.on_domain_deleted(item)


_CLASSES: Mapping[LinkDirection, type[BrokerLink]] = {
    LinkDirection.INCOMING: IncomingBrokerLink,
    LinkDirection.OUTGOING: OutgoingBrokerLink,
}


class DirectedLinks(PeerConnectors[BrokerLink]):
    """The links of one direction."""

    def __init__(
        self,
        services: LinkServices,
        is_taken: Callable[[str], bool],
        direction: LinkDirection,
        domains: BrokerDomains,
    ) -> None:
        super().__init__(services, is_taken, "interconnection", f"{direction.value} link")
        self._direction = direction
        self._domains = domains
        domains.watchers.append(self._user_of)

    def add(self, principal: Principal, name: str, properties: Mapping[str, object], *, strict: bool) -> None:
        self._refuse_taken(name)
        link = self._make(read_link(self._direction, name, properties, principal, strict=strict))
        if link.durable and not link.domain.durable:
            raise ForwardingError(f"invalid-argument: durable: domain {link.domain.name} is not durable")
        check_new(link)
        self._keep(link)

    def restore(self, name: str, fields: Mapping[str, object]) -> None:
        link = self._make(read_link(self._direction, name, *split_link_fields(fields)))
        check_restored(link)
        self._keep(link)

    def _make(self, definition: LinkDefinition) -> BrokerLink:
        domain = self._domains.find(definition.domain)
        return _CLASSES[self._direction](definition, domain, self._services)

    def _user_of(self, domain: object) -> str:
        """See `BrokerDomains.watchers`."""
        return next((f"the {self._label} {link.name}" for link in self if link.domain is domain), "")

    def _report_declared(self, item: BrokerLink) -> None:
        self._registry.observer.on_link_declared(item)
        self._registry.observer.on_route_declared(item)

    def _report_deleted(self, item: BrokerLink) -> None:
        self._registry.observer.on_route_deleted(item)
        self._registry.observer.on_link_deleted(item)
