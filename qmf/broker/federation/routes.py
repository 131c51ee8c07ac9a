"""The links for routes of a broker, and the routes on them: created, deleted and restored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any

from qmf.broker.federation.binding_watcher import BindingWatcher
from qmf.broker.federation.bridges import PullBridge, PushBridge
from qmf.broker.federation.local_nodes import NodeUnusable
from qmf.broker.federation.peer_connector import LinkServices
from qmf.broker.federation.route_definitions import (
    RESERVED,
    BridgeDefinition,
    RouteLinkDefinition,
    read_bridge,
    read_route_link,
    read_stored_bridge,
    read_stored_route_link,
)
from qmf.broker.federation.route_links import RouteLink
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.observer import BrokerObservers
from qmf.broker.nodes.queues import Queue
from qmf.broker.operations.peers import FederationError
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.operations.principal import Principal

Bridge = PullBridge | PushBridge


class BrokerRoutes:
    """The links for routes of a broker, and the routes on them."""

    def __init__(
        self,
        services: LinkServices,
        is_taken: Callable[[str], bool],
        close_later: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        """Make routes of a broker that has none.

        Args:
            services: of the broker.
            is_taken: says whether another link has a name.
            close_later: runs what ends a connection in the background.
        """
        self._services = services
        self._registry = services.operations.registry
        self._is_taken = is_taken
        self._close_later = close_later
        self._links: dict[str, RouteLink] = {}
        self._bridges: dict[str, Bridge] = {}
        self._watcher: BindingWatcher | None = None
        self._started = False

    @property
    def links(self) -> Collection[RouteLink]:
        """All links."""
        return self._links.values()

    @property
    def bridges(self) -> Collection[Bridge]:
        """All routes."""
        return self._bridges.values()

    def is_taken(self, name: str) -> bool:
        """A link or a route has this name."""
        return name in self._links or name in self._bridges

    def add_link(self, principal: Principal, name: str, properties: Mapping[str, object], *, strict: bool) -> None:
        """See `Federation.add_route_link`. Names of `connect` begin with `RESERVED`: the caller refuses others."""
        definition = read_route_link(name, properties, principal, strict=strict)
        self._refuse_taken(name)
        self._keep_link(RouteLink(definition, self._services))

    def remove_link(self, name: str) -> None:
        """See `Federation.remove_route_link`."""
        link = self._links.get(name)
        if link is None:
            raise FederationError(f"No such link: {name}")
        for bridge in [item for item in self._bridges.values() if item.link is link]:
            self.remove_bridge(bridge.name)
        self._registry.observer.on_link_deleted(link)
        del self._links[name]
        link.remove()
        self._close_later(link.close())

    def add_bridge(self, principal: Principal, name: str, properties: Mapping[str, object], *, strict: bool) -> None:
        """See `Federation.add_bridge`."""
        definition = read_bridge(name, properties, principal, strict=strict)
        if name.startswith(RESERVED):
            raise FederationError(f"names prefixed with '{RESERVED}' are reserved: {name}")
        self._refuse_taken(name)
        bridge = self._make_bridge(definition)
        if definition.durable and not bridge.link.durable:
            raise FederationError("Can't create a durable route on a non-durable link")
        try:
            bridge.check()
        except NodeUnusable as error:
            raise FederationError(f"not-found: {error}") from error
        self._keep_bridge(bridge)

    def remove_bridge(self, name: str) -> None:
        """See `Federation.remove_bridge`."""
        bridge = self._bridges.get(name)
        if bridge is None:
            raise FederationError(f"No such bridge: {name}")
        self._registry.observer.on_route_deleted(bridge)
        self._registry.observer.on_bridge_deleted(bridge)
        del self._bridges[name]
        if self._watcher is not None and isinstance(bridge, PullBridge):
            self._watcher.remove(bridge)
        bridge.remove()
        self._close_later(bridge.close())

    def restore_link(self, name: str, fields: Mapping[str, object]) -> None:
        """Add a link that the store has.

        Raises:
            FederationError: a field is wrong.
        """
        definition: RouteLinkDefinition = read_stored_route_link(name, fields)
        self._keep_link(RouteLink(definition, self._services))

    def restore_bridge(self, name: str, fields: Mapping[str, object]) -> None:
        """Add a route that the store has. If this broker cannot have it any more, its state says why.

        Raises:
            FederationError: a field is wrong, or its link is missing.
        """
        bridge = self._make_bridge(read_stored_bridge(name, fields))
        try:
            bridge.check()
        except (NodeUnusable, OperationRefused) as error:
            bridge.fail(str(error))
        self._keep_bridge(bridge)

    def start(self) -> None:
        """Connect links and routes, and those that are added from now on."""
        self._started = True
        for item in (*self._links.values(), *self._bridges.values()):
            item.start()

    def on_node_deleted(self, node: Queue | Exchange) -> None:
        """A node of the broker was deleted: routes that need it end."""
        for bridge in list(self._bridges.values()):
            bridge.on_node_deleted(node)

    def on_policy_changed(self) -> None:
        """Other rules apply: routes end whose creators may not do any more what they do."""
        for bridge in list(self._bridges.values()):
            bridge.on_policy_changed()

    async def close(self) -> None:
        """End everything; returns when all connections are closed."""
        await asyncio.gather(*(item.close() for item in (*self._bridges.values(), *self._links.values())))

    def _refuse_taken(self, name: str) -> None:
        if self.is_taken(name) or self._is_taken(name):
            raise FederationError(f"object already exists: {name}")

    def _make_bridge(self, definition: BridgeDefinition) -> Bridge:
        link = self._links.get(definition.link)
        if link is None:
            raise FederationError(f"invalid parameter to method call: link: there is no link {definition.link!r}")
        if definition.src_is_local:
            return PushBridge(definition, link, self._services)
        if definition.dynamic or definition.queue:
            # Imported here, so that a broker without such routes does not load the messages of QMF.
            from qmf.broker.federation.bound_bridges import BoundBridge

            return BoundBridge(definition, link, self._services)
        return PullBridge(definition, link, self._services)

    def _keep_link(self, link: RouteLink) -> None:
        if link.durable:
            self._registry.warn_durable(f"link {link.name}")
        self._links[link.name] = link
        self._registry.observer.on_link_declared(link)
        if self._started:
            link.start()

    def _keep_bridge(self, bridge: Bridge) -> None:
        if bridge.durable:
            self._registry.warn_durable(f"bridge {bridge.name}")
        self._bridges[bridge.name] = bridge
        if isinstance(bridge, PullBridge) and bridge.bridge.dynamic:
            self._watch(bridge)
        self._registry.observer.on_bridge_declared(bridge)
        self._registry.observer.on_route_declared(bridge)
        if self._started:
            bridge.start()

    def _watch(self, bridge: PullBridge) -> None:
        if self._watcher is None:  # most brokers need none
            self._watcher = BindingWatcher()
            self._registry.observer = BrokerObservers(self._registry.observer, self._watcher)
        self._watcher.add(bridge)
