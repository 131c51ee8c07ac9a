"""The incoming, or the outgoing links of a broker to others."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qmf.broker.federation.definitions import LinkDefinition, read_link, split_link_fields
from qmf.broker.federation.domains import BrokerDomains
from qmf.broker.federation.incoming import IncomingBrokerLink
from qmf.broker.federation.outgoing import OutgoingBrokerLink
from qmf.broker.federation.peer_connector import LinkServices
from qmf.broker.federation.peer_connectors import PeerConnectors, check_new, check_restored
from qmf.broker.federation.peer_links import BrokerLink
from qmf.broker.operations.forwarders import ForwardingError
from qmf.broker.operations.peers import LinkDirection
from qmf.broker.operations.principal import Principal

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
