"""Events that were on their way when the connection was lost come again in order, with a real bus."""

from __future__ import annotations

from agent.publishing.test_event_queue import spill
from bus.peer import Peer, serving
from support.waiting import until

from qmf.agent import Agent
from qmf.bus import AmqpBus
from qmf.bus.backoff import Backoff
from qmf.bus.engine.events import Delivery, EngineEvent, LinkRequested
from qmf.protocol import Envelope, EventsIndication, decode


class Broker:
    """Takes little and settles nothing but a heartbeat on its first connection; everything on later ones."""

    def __init__(self) -> None:
        self.first: Peer | None = None
        self.items: list[object] = []

    def __call__(self, peer: Peer, event: EngineEvent) -> None:
        self.first = self.first or peer
        if isinstance(event, LinkRequested):
            peer.grant(event.link, 16 if peer is self.first else 1000)
        elif isinstance(event, Delivery):
            if peer is self.first and len(peer.bodies) > 1:
                return
            assert event.delivery_tag is not None
            peer.engine.decisions.settle(event.link, event.delivery_tag)
            message = decode(event.data)
            content = message.content if peer is not self.first and isinstance(message, Envelope) else None
            if isinstance(content, EventsIndication):
                self.items += [item.values["items"] for item in content.events]


async def test_no_event_overtakes_another_over_a_loss() -> None:
    broker = Broker()
    count = 2000
    async with serving(broker) as peers:
        bus = AmqpBus(peers.url, backoff=Backoff(first=0.01, jitter=0))
        agent = Agent(bus, vendor="example.org", product="stock", instance="one", interval=3600, event_limit=None)
        await agent.start()
        for number in range(count):
            agent.raise_event(spill(number % 251))
        await until(lambda: len(peers.all[0].bodies) == 16, "no more credit")
        peers.all[0].transport.abort()
        await until(lambda: len(broker.items) == count, "all events")
        assert broker.items == [number % 251 for number in range(count)]
        await agent.close()
