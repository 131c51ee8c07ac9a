"""The links for routes of a broker, and the routes on them: created, deleted and restored."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qmf.broker.federation.bridges import BindingWatcher, BridgeLink, PullBridge, PushBridge, RouteLink
from qmf.broker.federation.definitions import split_link_fields
from qmf.broker.federation.peer_connector import LinkServices
from qmf.broker.federation.peer_connectors import PeerConnectors, check_new, check_restored
from qmf.broker.federation.route_definitions import (
    RESERVED,
    BridgeDefinition,
    read_bridge,
    read_route_link,
)
from qmf.broker.nodes.observer import BrokerObservers
from qmf.broker.operations.forwarders import ForwardingError
from qmf.broker.operations.principal import Principal


class BrokerRouteLinks(PeerConnectors[RouteLink]):
    """The links for routes of a broker."""

    def __init__(self, services: LinkServices, is_taken: Callable[[str], bool]) -> None:
        super().__init__(services, is_taken, "link")
        #: The routes on them.
        self.bridges = BrokerBridges(services, is_taken, self)

    def add(self, principal: Principal, name: str, properties: Mapping[str, object], *, strict: bool) -> None:
        """See `Forwarders`. Names of `connect` begin with `RESERVED`: the caller refuses others."""
        definition = read_route_link(name, properties, principal, strict=strict)
        self._refuse_taken(name)
        self._keep(RouteLink(definition, self._services))

    def remove(self, name: str) -> None:
        link = self.find(name)
        for bridge in [item for item in self.bridges if item.link is link]:
            self.bridges.remove(bridge.name)
        super().remove(name)

    def restore(self, name: str, fields: Mapping[str, object]) -> None:
        self._keep(RouteLink(read_route_link(name, *split_link_fields(fields)), self._services))

    def _report_declared(self, item: RouteLink) -> None:
        self._registry.observer.on_link_declared(item)

    def _report_deleted(self, item: RouteLink) -> None:
        self._registry.observer.on_link_deleted(item)


class BrokerBridges(PeerConnectors[BridgeLink]):
    """The routes of a broker."""

    def __init__(self, services: LinkServices, is_taken: Callable[[str], bool], links: BrokerRouteLinks) -> None:
        super().__init__(services, is_taken, "bridge")
        self._links = links
        self._watcher: BindingWatcher | None = None

    def add(self, principal: Principal, name: str, properties: Mapping[str, object], *, strict: bool) -> None:
        definition = read_bridge(name, properties, principal, strict=strict)
        if name.startswith(RESERVED):
            raise ForwardingError(f"names prefixed with '{RESERVED}' are reserved: {name}")
        self._refuse_taken(name)
        bridge = self._make(definition)
        if definition.durable and not bridge.link.durable:
            raise ForwardingError("Can't create a durable route on a non-durable link")
        check_new(bridge)
        self._keep(bridge)

    def restore(self, name: str, fields: Mapping[str, object]) -> None:
        bridge = self._make(read_bridge(name, *split_link_fields(fields)))
        check_restored(bridge)
        self._keep(bridge)

    def _make(self, definition: BridgeDefinition) -> BridgeLink:
        if not self._links.has(definition.link):
            raise ForwardingError(f"invalid parameter to method call: link: there is no link {definition.link!r}")
        link = self._links.find(definition.link)
        if definition.src_is_local:
            return PushBridge(definition, link, self._services)
        if definition.dynamic or definition.queue:
            # Imported here, so that a broker without such routes does not load the messages of QMF.
            from qmf.broker.federation.bound_bridges import BoundBridge

            return BoundBridge(definition, link, self._services)
        return PullBridge(definition, link, self._services)

    def _report_declared(self, item: BridgeLink) -> None:
        if isinstance(item, PullBridge) and item.bridge.dynamic:
            self._watch(item)
        self._registry.observer.on_bridge_declared(item)
        self._registry.observer.on_route_declared(item)

    def _report_deleted(self, item: BridgeLink) -> None:
        self._registry.observer.on_route_deleted(item)
        self._registry.observer.on_bridge_deleted(item)
        if self._watcher is not None and isinstance(item, PullBridge):
            self._watcher.remove(item)

    def _watch(self, bridge: PullBridge) -> None:
        if self._watcher is None:  # most brokers need none
            self._watcher = BindingWatcher()
            self._registry.observer = BrokerObservers(self._registry.observer, self._watcher)
        self._watcher.add(bridge)
