"""The bus inside the broker."""

from __future__ import annotations

import asyncio

import pytest
from broker.nodes.parts import depth_of
from support.recording import BusEvents, Inbox, message
from support.waiting import until

from qmf.broker.local_bus import LocalBus
from qmf.broker.nodes.exchanges import TopicExchange
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.settings import QueueLimits
from qmf.broker.operations.operations import Operations
from qmf.bus import Binding, BusStateError, Connected, ExchangeKind, ReceivedMessage
from qmf.codec import Message, Section, encode_message
from qmf.errors import DisconnectedError, LinkError, NetworkError

TOPIC = "amq.topic"


async def opened(registry: NodeRegistry) -> LocalBus:
    bus = LocalBus(Operations(registry), "local")
    await bus.open()
    return bus


async def test_messages_go_through_the_exchanges() -> None:
    bus = await opened(NodeRegistry())
    topics, direct = Inbox(), Inbox()
    await bus.subscribe(Binding(TOPIC, "a.#"), topics)
    await bus.subscribe(Binding("amq.direct", "a.#", ExchangeKind.DIRECT), direct)
    for to in (TOPIC, "amq.direct"):
        await bus.send(message(to, "a.b", f"by {to}"), confirm=True)
    await bus.send(message("nowhere", "a.b"), confirm=True)
    assert await topics.wait(1) == ["by amq.topic"]
    assert direct.texts == []
    await bus.close()


async def test_a_message_is_not_delivered_while_it_is_sent() -> None:
    bus = await opened(NodeRegistry())
    inbox = Inbox()
    await bus.subscribe(Binding(TOPIC, "#"), inbox)
    outcomes: list[NetworkError | None] = []
    assert bus.try_send(message(TOPIC, "a", "hello"), outcomes.append)
    assert (inbox.texts, outcomes) == ([], [])
    assert await inbox.wait(1) == ["hello"]
    assert outcomes == [None]
    await bus.close()


async def test_a_slow_receiver_holds_its_window_and_loses_the_oldest_of_the_rest() -> None:
    registry = NodeRegistry(limits=QueueLimits(count=4))
    bus = await opened(registry)
    inbox = Inbox(hold=True)
    subscription = await bus.subscribe(Binding(TOPIC, "#"), inbox, prefetch=2)
    for number in range(10):
        await bus.send(message(TOPIC, "a", str(number)), confirm=True)
    assert await inbox.wait(2) == ["0", "1"]
    queue = subscription.queue
    assert (len(queue.contents), queue.counters.dropped, queue.contents.depth.count) == (4, 4, 4)
    inbox.held[0].settle()
    inbox.held[0].settle()
    assert await inbox.wait(3) == ["0", "1", "6"]
    inbox.hold = False
    for held in inbox.held[1:]:
        held.settle()
    assert await inbox.wait(6) == ["0", "1", "6", "7", "8", "9"]
    assert depth_of(queue) == (0, 0)
    await bus.close()


def answer(body: str) -> bytes:
    """A message with a correlation id."""
    return encode_message(Message(to=TOPIC, subject="a", correlation_id="1", section=Section.DATA, body=body.encode()))


async def test_an_answer_loses_none_of_its_parts_to_a_slow_receiver() -> None:
    registry = NodeRegistry(limits=QueueLimits(count=4))
    bus = await opened(registry)
    inbox = Inbox(hold=True)
    subscription = await bus.subscribe(Binding(TOPIC, "#"), inbox, prefetch=2)
    texts = [str(number) for number in range(10)]

    async def send() -> None:
        for text in texts:
            await bus.send(answer(text))

    sending = asyncio.create_task(send())
    await until(lambda: subscription.queue.contents.depth.count == 4, "the limit of the queue")
    assert not sending.done()
    for number in range(10):
        await inbox.wait(number + 1)
        inbox.held[number].settle()
    await sending
    assert (inbox.texts, subscription.queue.counters.dropped) == (texts, 0)
    await bus.close()


async def test_an_answer_to_a_receiver_that_takes_nothing_ends() -> None:
    registry = NodeRegistry(limits=QueueLimits(count=2))
    bus = LocalBus(Operations(registry), "local", timeout=0.01)
    await bus.open()
    inbox = Inbox(hold=True)
    subscription = await bus.subscribe(Binding(TOPIC, "#"), inbox, prefetch=1)
    for number in range(2):
        await bus.send(answer(str(number)))
    with pytest.raises(LinkError, match="no room for an answer in queue local_"):
        await bus.send(answer("2"))
    assert (subscription.queue.contents.depth.count, subscription.queue.counters.dropped) == (2, 0)
    await bus.close()


async def test_an_answer_waits_no_more_when_its_receiver_is_gone() -> None:
    registry = NodeRegistry(limits=QueueLimits(count=2))
    bus, other = await opened(registry), LocalBus(Operations(registry), "other")
    await other.open()
    subscription = await other.subscribe(Binding(TOPIC, "#"), Inbox(hold=True), prefetch=1)
    for number in range(2):
        await bus.send(answer(str(number)))
    sending = asyncio.create_task(bus.send(answer("2")))
    await asyncio.sleep(0)
    await subscription.close()
    await sending
    assert registry.counters.discarded == 1
    await other.close()
    await bus.close()


async def test_an_answer_does_not_wait_where_nobody_receives() -> None:
    bus = await opened(NodeRegistry(queues=["replies"], limits=QueueLimits(count=1)))
    reply = encode_message(Message(to="replies", correlation_id="1", section=Section.DATA, body=b""))
    await bus.send(reply)
    with pytest.raises(LinkError, match="no room for an answer in queue replies"):
        await bus.send(reply)
    await bus.close()


async def test_what_it_made_goes_with_it() -> None:
    registry = NodeRegistry()
    bus = await opened(registry)
    held: list[ReceivedMessage] = []
    subscription = await bus.subscribe(Binding(TOPIC, "#"), held.append)
    await bus.subscribe(Binding(TOPIC, "#"), Inbox())
    await bus.send(message(TOPIC, "a"), confirm=True)
    await until(lambda: held, "the message")
    topic = registry.find(TOPIC)
    assert isinstance(topic, TopicExchange)
    assert (len(registry.queues), topic.binding_count) == (2, 2)
    await subscription.close()
    await subscription.close()
    held[0].settle()
    assert (len(registry.queues), topic.binding_count) == (1, 1)
    await bus.close()
    await bus.close()
    assert (len(registry.queues), topic.binding_count) == (0, 0)


async def test_a_receiver_that_closes_hears_no_more() -> None:
    bus = await opened(NodeRegistry())
    seen: list[ReceivedMessage] = []

    def deliver(received: ReceivedMessage) -> None:
        seen.append(received)
        bus.unsubscribe(subscription)

    subscription = await bus.subscribe(Binding(TOPIC, "#"), deliver)
    for _ in range(3):
        bus.try_send(message(TOPIC, "a"), lambda _: None)
    await until(lambda: seen, "the message")
    await asyncio.sleep(0)
    assert len(seen) == 1
    await bus.close()


async def test_a_receiver_that_fails_loses_only_its_message(caplog: pytest.LogCaptureFixture) -> None:
    bus = await opened(NodeRegistry())
    seen: list[ReceivedMessage] = []

    def deliver(received: ReceivedMessage) -> None:
        seen.append(received)
        raise ValueError("no good")

    await bus.subscribe(Binding(TOPIC, "#"), deliver, prefetch=1)
    for _ in range(3):
        await bus.send(message(TOPIC, "a"))
    await until(lambda: len(seen) == 3, "the messages")
    assert caplog.text.count("the receiver of amq.topic '#' failed") == 3
    await bus.close()


async def test_what_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    bus = await opened(NodeRegistry(queues=["full", "local_amq.topic_qmf-in-2"], limits=QueueLimits(count=1)))
    for name in ("nowhere", "full", ""):
        with pytest.raises(LinkError, match="no exchange"):
            await bus.subscribe(Binding(name, "#"), Inbox())
    await bus.subscribe(Binding(TOPIC, "#"), Inbox())
    with pytest.raises(LinkError, match=r"'local_amq\.topic_qmf-in-2' exists"):
        await bus.subscribe(Binding(TOPIC, "#"), Inbox())
    await bus.send(message("full", None), confirm=True)
    with pytest.raises(LinkError, match="Maximum depth exceeded on full"):
        await bus.send(message("full", None), confirm=True)
    await bus.send(message("full", None))
    assert "a message of local was refused" in caplog.text
    outcomes: list[NetworkError | None] = []
    assert bus.try_send(message("full", None), outcomes.append)
    await until(lambda: outcomes, "the outcome")
    assert isinstance(outcomes[0], LinkError)
    await bus.close()


async def nothing_goes(bus: LocalBus) -> None:
    assert not bus.connected
    with pytest.raises(DisconnectedError):
        await bus.send(message(TOPIC, "a"))
    with pytest.raises(DisconnectedError):
        bus.try_send(message(TOPIC, "a"), lambda _: None)
    with pytest.raises(DisconnectedError):
        await bus.subscribe(Binding(TOPIC, "#"), Inbox())


async def test_its_life() -> None:
    bus = LocalBus(Operations(NodeRegistry()), "local")
    events = BusEvents(bus)
    assert bus.url == "local://local"
    await nothing_goes(bus)
    await bus.open()
    assert bus.connected
    with pytest.raises(BusStateError):
        await bus.open()
    await bus.close()
    await nothing_goes(bus)
    assert events.seen == [Connected(again=False, broker="local")]
