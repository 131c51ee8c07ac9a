"""Clients that receive slowly, or not at all."""

from __future__ import annotations

import asyncio

import pytest
from broker.raw_clients import TOPIC, TOPIC_FILTER, Client, connect
from broker.visible_broker import VisibleBroker
from support.recording import Inbox, message, text
from support.waiting import until

from qmf.broker import Broker, QueueLimits
from qmf.broker.nodes.observed_clients import BrokerClient, ClientLink
from qmf.broker.nodes.observer import BrokerObserver
from qmf.broker.protocols.amqp.connection import ServerConnection
from qmf.broker.protocols.amqp.outgoing import OutgoingLink
from qmf.bus import AmqpBus, Binding
from qmf.bus.engine.events import Delivery, LinkAttached
from qmf.bus.engine.values import Terminus
from qmf.messaging import aio
from qmf.messaging.message import Message


class AttachedLinks(BrokerObserver):
    """Notes the links on which clients receive."""

    def __init__(self) -> None:
        self.seen: list[tuple[ServerConnection, OutgoingLink]] = []

    def on_attached(self, client: BrokerClient, link: ClientLink) -> None:
        """See `BrokerObserver`."""
        assert isinstance(client, ServerConnection)
        if isinstance(link, OutgoingLink):
            self.seen.append((client, link))


async def test_a_receiver_that_gives_credit_and_reads_nothing_needs_no_memory() -> None:
    """It delays neither the sender nor the others, and the broker keeps no more than the limits allow."""
    async with VisibleBroker(port=0, limits=QueueLimits(count=100)) as broker:
        attached = broker.registry.observer = AttachedLinks()
        reader, writer = await connect(broker)
        client = Client(reader, writer)
        client.engine.links.attach(
            "slow", is_sender=False, terminus=Terminus(TOPIC, filters=(TOPIC_FILTER,)), credit=1_000_000
        )
        await client.exchange(LinkAttached)
        # From here on it does not read: the system's buffers fill, then asyncio's, then the queue.
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        bus, other = AmqpBus(broker.url), AmqpBus(broker.url)
        inbox = Inbox()
        await bus.open()
        await other.open()
        await other.subscribe(Binding(TOPIC, "#"), inbox)
        body = "x" * 20_000
        sent = 0
        while not broker.counters.dropped:
            for _ in range(50):
                await bus.send(message(TOPIC, "k", body))
            sent += 50
            await bus.send(message(TOPIC, "k", body), confirm=True)
            sent += 1
            assert sent < 5_000, "nothing was dropped"
        for _ in range(100):
            await bus.send(message(TOPIC, "k", body), confirm=True)
        await inbox.wait(sent + 100)
        ((connection, outgoing),) = [(c, link) for c, link in attached.seen if c.info.container == "client"]
        assert len(outgoing.queue.contents) <= 100
        assert connection.transport.engine.links.backlog(outgoing.link) < 1_000_000
        await bus.close()
        await other.close()
        writer.transport.abort()
        await until(lambda: broker.connections == 0, "the end of the connections")


async def test_a_receiver_that_never_settles_gets_no_more_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmf.broker.protocols.amqp.outgoing.MAX_UNSETTLED", 50)
    async with Broker(port=0, limits=QueueLimits(count=10)) as broker:
        bus = AmqpBus(broker.url)
        await bus.open()
        client = Client(*await connect(broker))
        link = client.engine.links.attach(
            "in", is_sender=False, terminus=Terminus(TOPIC, filters=(TOPIC_FILTER,)), credit=1_000
        )
        await client.exchange(LinkAttached)
        for number in range(100):
            await bus.send(message(TOPIC, "x", str(number)), confirm=True)
        await client.exchange(Delivery, 50)
        assert broker.counters.dropped == 40
        for event in list(client.seen):
            if isinstance(event, Delivery):
                assert event.delivery_tag is not None
                client.engine.decisions.settle(link, event.delivery_tag)
        await client.exchange(Delivery, 60)
        texts = [text(event.data) for event in client.seen if isinstance(event, Delivery)]
        assert texts[50:] == [str(number) for number in range(90, 100)]
        client.writer.close()
        await bus.close()


async def test_a_message_that_has_waited_comes_with_what_is_left_of_its_time_to_live() -> None:
    async with Broker(port=0, queues=["jobs"]) as broker, aio.Connection(broker.url) as connection:
        session = await connection.session()
        sender = await session.sender("jobs")
        loop = asyncio.get_running_loop()
        for _ in range(3):
            await sender.send(Message("x", ttl=60))
        began = loop.time()
        await until(lambda: loop.time() > began + 0.05, "some of the time to live")
        receiver = await session.receiver("jobs", capacity=10)
        for _ in range(3):
            found = (await receiver.fetch(timeout=30)).ttl
            assert found is not None
            assert found < 59.96
        await sender.send(Message("x", ttl=60))
        found = (await receiver.fetch(timeout=30)).ttl
        assert found is not None
        assert found > 30
