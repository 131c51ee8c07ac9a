"""Messages that clients send."""

from __future__ import annotations

import asyncio

import pytest
from broker.raw_clients import TOPIC, Client, connect
from support.recording import Inbox, message
from support.waiting import WAIT_LIMIT, until

from qmf.broker import AmqpOptions, Broker
from qmf.bus import AmqpBus, Binding, transport
from qmf.bus.engine.events import CreditChanged, OutcomeReceived
from qmf.bus.engine.values import Outcome, Terminus
from qmf.codec import Message, Section, encode_message
from qmf.errors import LinkError
from qmf.messaging import Message as MessagingMessage
from qmf.messaging import MessagingError
from qmf.messaging.aio import Connection


async def test_a_malformed_message_is_rejected() -> None:
    async with Broker(port=0) as broker:
        bus = AmqpBus(broker.url)
        await bus.open()
        with pytest.raises(LinkError) as caught:
            await bus.send(b"\xff garbage", confirm=True)
        assert caught.value.condition == "amqp:decode-error"
        assert broker.counters.rejected == 1
        await bus.close()


async def test_a_message_above_the_limit_is_refused_and_the_bus_goes_on() -> None:
    async with Broker(port=0, amqp=AmqpOptions(max_message=10_000)) as broker:
        bus = AmqpBus(broker.url)
        await bus.open()
        with pytest.raises(LinkError) as caught:
            await bus.send(message(TOPIC, "x", "y" * 200_000), confirm=True)
        assert caught.value.condition == "amqp:link:message-size-exceeded"
        assert "10000 bytes" in caught.value.description
        await bus.send(message(TOPIC, "x", "y" * 9_000), confirm=True)
        await bus.close()


def request(subject: str) -> bytes:
    return encode_message(Message(to=TOPIC, subject=subject, correlation_id="1", section=Section.DATA, body=b"body"))


async def test_outcomes_of_requests_wait_for_the_answer_if_the_client_allows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport, "ACCEPT_DELAY", 60.0)
    async with Broker(port=0) as broker:
        bus = AmqpBus(broker.url)
        inbox = Inbox()
        await bus.open()
        await bus.subscribe(Binding(TOPIC, "answer"), inbox)
        waiting = asyncio.create_task(bus.send(request("nobody"), confirm=True))
        await until(lambda: broker.counters.received == 1)
        await asyncio.sleep(0.05)
        assert not waiting.done()
        await bus.send(request("answer"))
        await waiting
        # What has no correlation id is confirmed at once, and with it what waits.
        waiting = asyncio.create_task(bus.send(request("nobody"), confirm=True))
        await until(lambda: broker.counters.received == 3)
        await bus.send(message(TOPIC, "nobody"), confirm=True)
        await waiting
        await bus.close()


async def test_outcomes_that_wait_for_an_answer_are_sent_without_one() -> None:
    async with Broker(port=0) as broker:
        bus = AmqpBus(broker.url)
        await bus.open()
        await bus.send(request("nobody"), confirm=True)
        await bus.send(request("nobody"), confirm=True)
        assert broker.counters.received == 2
        await bus.close()


async def test_a_transaction_with_a_message_to_nowhere_is_rolled_back() -> None:
    async with Broker(port=0, queues=["q"]) as broker:
        connection = await Connection.establish(broker.url, timeout=WAIT_LIMIT)
        session = await connection.session(transactional=True)
        sender = await session.sender("<null>")
        await sender.send(MessagingMessage("kept", to="q"))
        with pytest.raises(MessagingError, match="no exchange or queue 'nowhere'"):
            await sender.send(MessagingMessage("lost", to="nowhere"))
        with pytest.raises(MessagingError, match="rolled back"):
            await session.commit()
        await connection.close()
        assert broker.counters.delivered == 0


async def test_clients_that_do_not_allow_it_get_all_outcomes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "ACCEPT_DELAY", 60.0)
    async with Broker(port=0) as broker:
        client = Client(*await connect(broker))
        link = client.engine.links.attach("out", is_sender=True, terminus=Terminus(TOPIC))
        await client.exchange(CreditChanged)
        client.engine.deliveries.send(link, request("nobody"))
        await client.exchange(OutcomeReceived)
        assert [event.outcome for event in client.seen if isinstance(event, OutcomeReceived)] == [Outcome.ACCEPTED]
        client.writer.close()
