"""A broker with links between its queues, for tests."""

from __future__ import annotations

from broker.federation.federated import FederatedBroker
from support.waiting import until

from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.node_declaration import NodeDeclaration
from qmf.broker.nodes.observed_definitions import NodeLink
from qmf.broker.nodes.settings import QueueLimits, QueueSettings
from qmf.broker.operations.principal import BROKER


class LinkingBroker(FederatedBroker):
    """A broker with the queues ``in`` and ``out``."""

    def connect_queues(self, name: str = "link", **properties: object) -> NodeLink:
        """Create a link from ``in`` to ``out``, unless the properties say otherwise."""
        wanted = {"source": "in", "target": "out", **properties}
        self.operations.forwarding.create(BROKER, "queuelink", name, wanted, strict=True)
        return self.queue_link(name)

    def queue_link(self, name: str = "link") -> NodeLink:
        """A link."""
        found: NodeLink = self.operations.forwarding.types["queuelink"].find(name)
        return found

    def small_queue(self, name: str, count: int) -> None:
        """Create a queue for so many messages."""
        settings = QueueSettings(limits=QueueLimits(count=count))
        self.operations.create(BROKER, name, NodeDeclaration(queue=settings))

    def exchange(self, name: str) -> Exchange:
        """An exchange."""
        found = self.registry.exchange(name)
        assert isinstance(found, Exchange)
        return found

    async def has(self, **depths: int) -> None:
        """Wait until queues have so many messages."""
        await until(
            lambda: all(self.depth(name) == count for name, count in depths.items()),
            lambda: f"{depths}: { {name: self.depth(name) for name in depths} }",
        )


def linking(*queues: str, **options: object) -> LinkingBroker:
    """A broker with further queues."""
    return LinkingBroker(port=0, queues=["in", "out", *queues], **options)  # type: ignore[arg-type]
