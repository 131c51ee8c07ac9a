"""What one client may have, and what all together may keep in the broker's memory."""

from __future__ import annotations

import pytest
from broker.nodes.parts import depth_of
from broker.raw_clients import Client, connect, dropped, usable
from broker.visible_broker import VisibleBroker
from support.recording import message
from support.waiting import until

from qmf.broker import AmqpOptions, Broker, QueueLimits
from qmf.bus.engine.events import (
    CreditChanged,
    LinkAttached,
    LinkDetached,
    OutcomeReceived,
    SessionEnded,
)
from qmf.bus.engine.values import Outcome, Terminus
from qmf.messaging import Message, TargetCapacityExceeded, TransactionAborted
from qmf.messaging.aio import Connection

LIMIT = "amqp:resource-limit-exceeded"


async def test_a_session_above_the_limit_is_ended_and_the_others_go_on() -> None:
    async with Broker(port=0, amqp=AmqpOptions(max_sessions=2)) as broker:
        client = Client(*await connect(broker))
        second, third = client.engine.sessions.begin(), client.engine.sessions.begin()
        client.engine.links.attach("lost", is_sender=True, terminus=Terminus("amq.topic"), session=third)
        await client.exchange(SessionEnded)
        (ended,) = [event for event in client.seen if isinstance(event, SessionEnded)]
        assert (ended.session, ended.condition, ended.description) == (third, LIMIT, "a connection may have 2 sessions")
        client.engine.links.attach("kept", is_sender=True, terminus=Terminus("amq.topic"), session=second)
        await client.exchange(LinkAttached)
        client.engine.sessions.end(second)
        await client.exchange(SessionEnded, 2)
        fourth = client.engine.sessions.begin()
        client.engine.links.attach("later", is_sender=True, terminus=Terminus("amq.topic"), session=fourth)
        await client.exchange(LinkAttached, 2)
        client.writer.close()


async def test_a_client_that_goes_on_to_begin_sessions_is_disconnected() -> None:
    async with Broker(port=0, amqp=AmqpOptions(max_sessions=2)) as broker:
        reader, writer = await connect(broker)
        client = Client(reader, writer)
        for _ in range(9):
            client.engine.sessions.begin()
        writer.write(client.engine.output())
        await dropped(reader, writer)
        await usable(broker)
        assert broker.counters.failures == 1


async def test_a_client_that_never_answers_refused_links_is_disconnected() -> None:
    async with Broker(port=0, amqp=AmqpOptions(max_links=2)) as broker:
        reader, writer = await connect(broker)
        client = Client(reader, writer)
        for number in range(20):
            client.engine.links.attach(str(number), is_sender=True, terminus=Terminus("amq.topic"))
        writer.write(client.engine.output())
        await dropped(reader, writer)
        await usable(broker)
        assert broker.counters.failures == 1


async def test_unfinished_messages_are_limited_together() -> None:
    """Each of them is below the limit of one message."""
    async with Broker(port=0, amqp=AmqpOptions(max_message=20_000, max_frame=4096)) as broker:
        client = Client(*await connect(broker))
        links = [
            client.engine.links.attach(str(number), is_sender=True, terminus=Terminus("amq.topic"))
            for number in range(8)
        ]
        await client.exchange(CreditChanged, 8)
        for link in links:
            link.raw.delivery("tag")
            link.raw.stream(b"x" * 15_000)  # and the rest never comes
        await client.exchange(LinkDetached)
        detached = [event for event in client.seen if isinstance(event, LinkDetached)]
        assert {(event.condition, event.description) for event in detached} == {
            (LIMIT, "unfinished messages may have 80000 bytes together")
        }
        client.engine.links.attach("new", is_sender=True, terminus=Terminus("amq.topic"))
        await client.exchange(LinkAttached, 9)
        client.writer.close()


async def test_messages_above_the_limit_of_all_queues_are_refused_until_there_is_room() -> None:
    async with Broker(port=0, queues=["a", "b"], total_limits=QueueLimits(3, None)) as broker:
        client = Client(*await connect(broker))
        links = [client.engine.links.attach(name, is_sender=True, terminus=Terminus(name)) for name in ("a", "b")]
        await client.exchange(CreditChanged, 2)
        for number in range(4):
            client.engine.deliveries.send(links[number % 2], message("a", "x", str(number)))
        await client.exchange(OutcomeReceived, 4)
        outcomes = [event for event in client.seen if isinstance(event, OutcomeReceived)]
        assert [event.outcome for event in outcomes].count(Outcome.ACCEPTED) == 3
        assert [event.condition for event in outcomes if event.outcome is Outcome.REJECTED] == [LIMIT]
        client.writer.close()


async def test_open_transactions_count_and_an_abandoned_one_lets_go() -> None:
    async with VisibleBroker(port=0, total_limits=QueueLimits(3, None)) as broker:
        memory = broker.registry.depth
        assert memory is not None
        connection = await Connection.establish(broker.url, timeout=30)
        session = await connection.session(transactional=True)
        sender = await session.sender("q; {create: always}")
        for text in "abc":
            await sender.send(Message(text))
        await until(lambda: memory.count == 3, "the messages of the transaction")
        other = await connection.session()
        with pytest.raises(TargetCapacityExceeded, match="Maximum depth of all queues exceeded"):
            await (await other.sender("q")).send(Message("d"))
        await connection.close()
        await until(lambda: memory.count == 0, "the end of the transaction")


async def test_a_transaction_with_a_refused_message_is_rolled_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmf.broker.transactions.coordinator.MAX_TRANSACTION_BYTES", 1_000)
    async with VisibleBroker(port=0) as broker:
        connection = await Connection.establish(broker.url, timeout=30)
        session = await connection.session(transactional=True)
        sender = await session.sender("q; {create: always}")
        await sender.send(Message("small"))
        with pytest.raises(TargetCapacityExceeded, match=r"1000 bytes"):
            await sender.send(Message("x" * 2_000))
        with pytest.raises(TransactionAborted, match="rolled back"):
            await session.commit()
        await connection.close()
        (queue,) = broker.registry.queues
        assert depth_of(queue) == (0, 0)
