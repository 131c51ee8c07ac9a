"""Brokers with links between them, for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from broker.visible_broker import VisibleBroker
from support.waiting import until

from qmf.broker import Broker, server
from qmf.broker.federation.federation import BrokerFederation
from qmf.broker.federation.link_status import PeerLinkState
from qmf.broker.federation.peer_links import BrokerLink
from qmf.broker.nodes.queues import Queue
from qmf.broker.operations.forwarding import LinkDirection
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.principal import BROKER
from qmf.bus.backoff import Backoff
from qmf.messaging import aio
from qmf.messaging.message import Message

IN, OUT = LinkDirection.INCOMING, LinkDirection.OUTGOING

#: Waits that tests don't notice.
QUICK = Backoff(first=0.01, limit=0.05)


class FederatedBroker(VisibleBroker):
    """A broker whose links are tried again at once."""

    federation: BrokerFederation

    async def start(self) -> None:
        """See `Broker`."""

        def make_federation(operations: Operations, container: str) -> BrokerFederation:
            self.federation = BrokerFederation(operations, container, QUICK)
            return self.federation

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(server, "BrokerFederation", make_federation)
            await super().start()

    def domain(self, url: str, name: str = "peer", **properties: object) -> None:
        """Create a domain."""
        self.operations.forwarding.create(BROKER, "domain", name, {"url": url, **properties}, strict=True)

    def link(
        self, direction: LinkDirection, source: str, target: str, name: str = "link", **properties: object
    ) -> None:
        """Create a link to the domain ``peer``."""
        wanted = {"domain": "peer", "source": source, "target": target, **properties}
        self.operations.forwarding.create(BROKER, direction.value, name, wanted, strict=True)

    def found(self, name: str = "link") -> BrokerLink:
        """A link."""
        return next(item for item in self.federation.links if item.name == name)

    async def state(self, wanted: PeerLinkState, name: str = "link") -> BrokerLink:
        """A link, as soon as it is in a state."""
        link = self.found(name)
        await until(lambda: link.status.state is wanted, lambda: f"{wanted}: {link.status.state}, {link.reason}")
        return link

    def queue(self, name: str) -> Queue:
        """A queue."""
        found = self.registry.queue(name)
        assert found is not None
        return found

    def depth(self, name: str) -> int:
        """Messages in a queue, those that were delivered and not accepted included."""
        return self.queue(name).contents.depth.count


@asynccontextmanager
async def pair(
    *, own: Sequence[str] = ("here",), other: Sequence[str] = ("there",), **options: object
) -> AsyncIterator[tuple[FederatedBroker, FederatedBroker]]:
    """Two brokers with queues; the first one has the other one as its domain ``peer``."""
    async with AsyncExitStack() as stack:
        there = await stack.enter_async_context(FederatedBroker(port=0, queues=other))
        here = await stack.enter_async_context(FederatedBroker(port=0, queues=own, **options))  # type: ignore[arg-type]
        here.domain(there.url)
        yield here, there


async def send(broker: Broker | str, address: str, *contents: str, **properties: object) -> None:
    """Send messages, and wait until they are accepted."""
    async with aio.Connection(broker if isinstance(broker, str) else broker.url) as connection:
        sender = await (await connection.session()).sender(address)
        for content in contents:
            await sender.send(Message(content, **properties), timeout=30)  # type: ignore[arg-type]


async def receive(broker: Broker | str, address: str, count: int) -> list[object]:
    """Take messages."""
    async with aio.Connection(broker if isinstance(broker, str) else broker.url) as connection:
        session = await connection.session()
        receiver = await session.receiver(address)
        contents = []
        for _ in range(count):
            contents.append((await receiver.fetch(timeout=30)).content)
            await session.acknowledge()
    return contents
