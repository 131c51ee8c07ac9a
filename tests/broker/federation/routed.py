"""Brokers with routes between them, for tests."""

from __future__ import annotations

from broker.federation.federated import FederatedBroker
from support.waiting import until

from qmf.broker import Broker
from qmf.broker.federation.bound_bridges import BoundBridge
from qmf.broker.federation.bridges import BridgeLink
from qmf.broker.federation.link_status import PeerLinkState
from qmf.broker.nodes.bindings import BindingSpec
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.node_declaration import read_node_declaration
from qmf.broker.operations.principal import BROKER


class RoutedBroker(FederatedBroker):
    """A broker with management, whose links for routes are named after the port of the other broker."""

    def __init__(self, **options: object) -> None:
        """Make a broker; options as of `Broker`."""
        super().__init__(**{"port": 0, "management": 3600.0, **options})  # type: ignore[arg-type]

    def connect(self, other: Broker, **properties: object) -> str:
        """Create a link for routes, unless it is there; its name."""
        name = f"to {other.port}"
        if all(link.name != name for link in self.federation.route_links):
            place = {"host": "127.0.0.1", "port": other.port}
            self.operations.forwarding.create(BROKER, "link", name, {**place, **properties}, strict=True)
        return name

    def route(self, other: Broker, src: str, dest: str, name: str = "", **properties: object) -> str:
        """Create a route; its name."""
        wanted = {"link": self.connect(other), "src": src, "dest": dest, **properties}
        name = name or f"{wanted['link']}: {src} {properties.get('key', '')}"
        self.operations.forwarding.create(BROKER, "bridge", name, wanted, strict=True)
        return name

    def dynamic(self, other: Broker, exchange: str, **properties: object) -> str:
        """Create a dynamic route from another broker's exchange to that of the same name."""
        return self.route(other, exchange, exchange, "", dynamic=True, **properties)

    def bridge(self, name: str) -> BridgeLink:
        """A route."""
        return next(item for item in self.federation.bridges if item.name == name)

    async def up(self, name: str) -> BridgeLink:
        """A route, as soon as it is up."""
        bridge = self.bridge(name)
        up = PeerLinkState.OPERATIONAL
        await until(lambda: bridge.status.state is up, lambda: f"{bridge.status.state}: {bridge.reason}")
        return bridge

    async def all_up(self) -> None:
        """All routes are up."""
        for bridge in self.federation.bridges:
            await self.up(bridge.name)

    def exchange(self, name: str) -> Exchange:
        """An exchange."""
        found = self.registry.exchange(name)
        assert isinstance(found, Exchange)
        return found

    def add_exchange(self, name: str, kind: str = "topic") -> None:
        """Create an exchange."""
        declaration = read_node_declaration(("topic",), {"exchange-type": kind}, limits=self.registry.limits)
        self.operations.create(BROKER, name, declaration)

    def bind(self, exchange: str, queue: str, key: str = "", **arguments: object) -> None:
        """Bind a queue."""
        spec = BindingSpec(key, arguments)
        self.operations.bind(BROKER, self.exchange(exchange), self.queue(queue), spec)

    def unbind(self, exchange: str, queue: str, key: str = "") -> None:
        """End that."""
        self.operations.unbind(BROKER, self.exchange(exchange), self.queue(queue), key)

    def keys(self, exchange: str) -> set[str]:
        """Keys that other brokers have bound at an exchange."""
        bindings = self.exchange(exchange).all_bindings()
        return {item.spec.key for item in bindings if item.queue.name.startswith("qpid.bridge_queue_")}

    def asks(self, name: str) -> BoundBridge:
        """A dynamic route."""
        bridge = self.bridge(name)
        assert isinstance(bridge, BoundBridge)
        return bridge
