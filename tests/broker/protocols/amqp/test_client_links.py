"""The links of a client."""

from __future__ import annotations

import pytest
from broker.raw_clients import Client, connect
from broker.visible_broker import VisibleBroker
from support.waiting import until

from qmf.broker import AmqpOptions, Broker
from qmf.bus.engine.events import LinkAttached, LinkDetached
from qmf.bus.engine.values import Terminus


@pytest.mark.parametrize("answers", [True, False])
async def test_a_refused_link_leaves_no_queue(answers: bool) -> None:
    """Its queue was made before the binding that cannot be made. The client confirms the detach, or disconnects."""
    async with VisibleBroker(port=0) as broker:
        client = Client(*await connect(broker))
        client.engine.links.attach(
            "in",
            is_sender=False,
            terminus=Terminus("amq.fanout"),
            properties={"qmf.link-bindings": [{"exchange": "missing"}]},
        )
        await client.exchange(LinkDetached)
        if answers:
            client.engine.links.attach("other", is_sender=True, terminus=Terminus("amq.topic"))
            await client.exchange(LinkAttached)  # the broker has read the answer to its detach
            assert not broker.registry.queues
        client.writer.close()
        await until(lambda: broker.connections == 0, "the end of the connection")
        assert not broker.registry.queues


async def test_links_per_connection_are_limited() -> None:
    async with Broker(port=0, amqp=AmqpOptions(max_links=3)) as broker:
        client = Client(*await connect(broker))
        for number in range(5):
            client.engine.links.attach(str(number), is_sender=True, terminus=Terminus("amq.topic"))
        await client.exchange(LinkDetached, 2)
        detached = [event for event in client.seen if isinstance(event, LinkDetached)]
        assert {event.condition for event in detached} == {"amqp:resource-limit-exceeded"}
        client.writer.close()
