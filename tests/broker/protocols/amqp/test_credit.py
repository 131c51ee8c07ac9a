"""Credit for senders to queues with flow control."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest
from broker.nodes.parts import depth_of
from broker.raw_clients import Client, connect
from broker.visible_broker import VisibleBroker
from support.compiled_engine import compiled
from support.recording import message
from support.waiting import WAIT_LIMIT, until

from qmf.broker.nodes.bindings import BindingSpec
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.settings import QueueLimits, QueueSettings, Threshold
from qmf.bus.engine.events import CreditChanged, OutcomeReceived
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Terminus
from qmf.messaging import Message
from qmf.messaging.aio import Connection

#: Compiled, the messages of a read come together; otherwise one by one.
__all__ = ["compiled"]


class Sender:
    """A client that sends whatever it may."""

    def __init__(self, client: Client, link: Link) -> None:
        self.client = client
        self.link = link
        self._barrier: Link | None = None

    @classmethod
    async def attach(cls, broker: VisibleBroker, target: str, client: Client | None = None) -> Sender:
        client = client or Client(*await connect(broker))
        sender = cls(client, client.engine.links.attach("out", is_sender=True, terminus=Terminus(target)))
        await sender.settle()
        return sender

    async def credit(self) -> int:
        """What it may send, when the broker has handled all that it has sent."""
        await self.settle()
        return self.client.engine.links.credit(self.link)

    async def settle(self) -> None:
        if self._barrier is None:
            self._barrier = self.client.engine.links.attach("barrier", is_sender=True, terminus=Terminus("amq.match"))
            credited = sum(
                isinstance(event, CreditChanged) and event.link is self._barrier for event in self.client.seen
            )
            while not credited:
                await self.client.exchange(CreditChanged, self._count(CreditChanged) + 1)
                credited = sum(
                    isinstance(event, CreditChanged) and event.link is self._barrier for event in self.client.seen
                )
        self.client.engine.deliveries.send(self._barrier, message(None, "nobody"))
        await self.client.exchange(OutcomeReceived, self._sent() + 1)

    async def send(self, count: int, body: str = "x", subject: str = "s") -> None:
        for _ in range(count):
            self.client.engine.deliveries.send(self.link, message(None, subject, body))
        await self.client.exchange(OutcomeReceived, self._sent() + count)

    async def send_all(self) -> int:
        """Send until there is no more credit; the number of messages."""
        sent = 0
        while (credit := await self.credit()) > 0:
            await self.send(credit)
            sent += credit
        return sent

    def _sent(self) -> int:
        return self._count(OutcomeReceived)

    def _count(self, kind: type) -> int:
        return sum(isinstance(event, kind) for event in self.client.seen)


async def close(*senders: Sender) -> None:
    for sender in senders:
        sender.client.writer.close()
        with contextlib.suppress(ConnectionError):
            await sender.client.writer.wait_closed()


@contextlib.asynccontextmanager
async def broker_with(stop: Threshold, resume: Threshold | None = None) -> AsyncIterator[tuple[VisibleBroker, Queue]]:
    async with VisibleBroker(port=0) as broker:
        settings = QueueSettings(limits=QueueLimits(), flow_stop=stop, flow_resume=resume or Threshold())
        yield broker, broker.registry.declare_queue("q", settings)


async def test_a_sender_gets_credit_for_what_the_queue_can_take() -> None:
    async with broker_with(Threshold(5)) as (broker, queue):
        sender = await Sender.attach(broker, "q")
        assert await sender.send_all() == 5
        assert (queue.contents.depth.count, queue.flow is not None and queue.flow.stopped) == (5, True)
        queue.contents.purge(2)
        assert await sender.send_all() == 2
        assert (queue.contents.depth.count, queue.counters.flow_stops) == (5, 2)
        await close(sender)


async def test_between_two_depths_there_is_no_credit() -> None:
    async with broker_with(Threshold(300), Threshold(100)) as (broker, queue):
        sender = await Sender.attach(broker, "q")
        assert await sender.send_all() == 300
        queue.contents.purge(200)
        assert await sender.credit() == 0
        queue.contents.purge(1)
        assert await sender.send_all() == 201
        await close(sender)


async def test_the_usual_window_is_not_exceeded() -> None:
    async with broker_with(Threshold(10_000)) as (broker, queue):
        sender = await Sender.attach(broker, "q")
        assert await sender.credit() == 500
        await sender.send(500)
        assert 250 < await sender.credit() <= 500
        assert queue.contents.depth.count == 500
        await close(sender)


async def test_senders_share_what_the_queue_can_take() -> None:
    async with broker_with(Threshold(12)) as (broker, queue):
        senders = [await Sender.attach(broker, "q") for _ in range(3)]
        credits = [await sender.credit() for sender in senders]
        assert sum(credits) == 12
        assert min(credits) >= 3
        # Those that send nothing keep nobody waiting, and the queue does not get longer by their credit.
        assert await senders[2].send_all() == 12
        assert queue.contents.depth.count == 12
        assert [await sender.credit() for sender in senders] == [0, 0, 0]
        queue.contents.purge(1)
        assert sum([await sender.send_all() for sender in senders]) <= 3
        await close(*senders)


async def test_a_sender_that_is_gone_leaves_its_share() -> None:
    async with broker_with(Threshold(10)) as (broker, queue):
        gone, stays = [await Sender.attach(broker, "q") for _ in range(2)]
        await close(gone)
        await until(lambda: broker.connections == 1, "the end of a client")
        assert await stays.send_all() == 10
        assert queue.contents.depth.count == 10
        await close(stays)


async def test_bytes_limit_credit_by_the_size_of_messages() -> None:
    async with broker_with(Threshold(None, 100_000)) as (broker, queue):
        sender = await Sender.attach(broker, "q")
        sent = 0
        while (credit := await sender.credit()) > 0:
            await sender.send(credit, "x" * 10_000)
            sent += credit
        assert 9 <= sent <= 11
        assert depth_of(queue)[1] < 120_000
        await close(sender)


async def test_messages_that_were_on_their_way_when_credit_was_taken_back() -> None:
    async with broker_with(Threshold(10)) as (broker, queue):
        one = await Sender.attach(broker, "q")
        assert await one.credit() == 10
        for number in range(10):
            one.client.engine.deliveries.send(one.link, message(None, "s", str(number)))  # written below
        other = await Sender.attach(broker, "q")
        assert await other.credit() == 5
        await one.client.exchange(OutcomeReceived, 11)
        assert queue.contents.depth.count == 10
        assert [await one.credit(), await other.credit()] == [0, 0]
        queue.contents.purge()
        assert await one.send_all() + await other.send_all() == 10
        await close(one, other)


@pytest.mark.parametrize(("exchange", "most"), [("amq.fanout", 5), ("amq.topic", 5), ("amq.direct", 5)])
async def test_links_to_exchanges(exchange: str, most: int) -> None:
    async with broker_with(Threshold(5)) as (broker, queue):
        node = broker.registry.find(exchange)
        assert isinstance(node, Exchange)
        broker.registry.bind(node, queue, BindingSpec("s"))
        plain = broker.registry.declare_queue("plain")
        broker.registry.bind(node, plain, BindingSpec("other"))
        sender = await Sender.attach(broker, exchange)
        assert await sender.send_all() == most
        assert queue.contents.depth.count == 5
        # A queue that is too long concerns those alone whose messages go there.
        late = await Sender.attach(broker, exchange)
        expected = 0 if exchange == "amq.fanout" else 1
        assert await late.credit() == expected
        if expected:
            await late.send(1, subject="other")
            assert await late.credit() == 500
        queue.contents.purge()
        assert 0 < await sender.credit() <= 5
        await close(sender, late)


async def test_a_queue_that_is_bound_later_counts_when_it_gets_a_message() -> None:
    async with broker_with(Threshold(5)) as (broker, queue):
        sender = await Sender.attach(broker, "amq.topic")
        assert await sender.credit() == 500
        node = broker.registry.find("amq.topic")
        assert isinstance(node, Exchange)
        broker.registry.bind(node, queue, BindingSpec("s"))
        await sender.send(500)
        assert await sender.credit() == 0
        queue.contents.purge()
        assert 0 < await sender.credit() <= 5
        await close(sender)


async def test_what_is_in_open_transactions_takes_room() -> None:
    async with broker_with(Threshold(10)) as (broker, queue):
        connection = await Connection.establish(broker.url, timeout=WAIT_LIMIT)
        session = await connection.session(transactional=True)
        sender = await session.sender("q")
        for number in range(8):
            await sender.send(Message(str(number)))
        other = await Sender.attach(broker, "q")
        assert await other.credit() <= 1
        await session.rollback()
        await other.send(1)
        assert await other.send_all() >= 8
        assert queue.contents.depth.count == 10
        await connection.close()
        await close(other)


async def test_a_transaction_may_be_larger_than_the_queue_and_the_next_one_waits() -> None:
    async with broker_with(Threshold(5)) as (broker, queue):
        connection = await Connection.establish(broker.url, timeout=WAIT_LIMIT)
        session = await connection.session(transactional=True)
        sender = await session.sender("q")
        for number in range(8):
            await sender.send(Message(str(number)))
        await session.commit()
        assert queue.contents.depth.count == 8
        other = await Sender.attach(broker, "q")
        assert await other.credit() == 0
        queue.contents.purge()
        await sender.send(Message("again"))
        await session.commit()
        assert queue.contents.depth.count == 1
        await connection.close()
        await close(other)
