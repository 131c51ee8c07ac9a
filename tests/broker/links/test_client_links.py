"""The links of a client."""

from __future__ import annotations

import pytest
from broker.raw_clients import Client, connect

from qmf.broker import Broker
from qmf.bus.engine.events import LinkAttached, LinkDetached
from qmf.bus.engine.values import Terminus


async def test_a_refused_link_leaves_no_queue() -> None:
    """Its queue was made before the binding that cannot be made."""
    async with Broker(port=0) as broker:
        client = Client(*await connect(broker))
        client.engine.attach(
            "in",
            is_sender=False,
            terminus=Terminus("amq.fanout"),
            properties={"qmf.link-bindings": [{"exchange": "missing"}]},
        )
        await client.exchange(LinkDetached)
        client.engine.attach("other", is_sender=True, terminus=Terminus("amq.topic"))
        await client.exchange(LinkAttached)  # the broker has read the answer to its detach
        assert broker._registry is not None
        assert not broker._registry.queues
        client.writer.close()


async def test_links_per_connection_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmf.broker.links.client_links.MAX_LINKS", 3)
    async with Broker(port=0) as broker:
        client = Client(*await connect(broker))
        for number in range(5):
            client.engine.attach(str(number), is_sender=True, terminus=Terminus("amq.topic"))
        await client.exchange(LinkDetached, 2)
        detached = [event for event in client.seen if isinstance(event, LinkDetached)]
        assert {event.condition for event in detached} == {"amqp:resource-limit-exceeded"}
        client.writer.close()
