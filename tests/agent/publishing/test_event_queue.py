"""Events: at once, in order, from any thread, kept while there is no connection."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest
from agent.warehouse import ShelfSpill, Site
from support.fake_bus import FakeBus
from support.waiting import until

from qmf.agent import Agent, ObjectId
from qmf.agent.publishing import event_buffer, event_queue
from qmf.agent.sending.message_batcher import MAX_BYTES
from qmf.bus.base import OutcomeCallback
from qmf.errors import CallerError, ConstraintError, DisconnectedError, LinkError, NetworkError
from qmf.protocol import BodyForm, Envelope, EventData, EventsIndication
from qmf.schema import Severity
from qmf.testing import ManualClock


def spill(items: int = 1) -> ShelfSpill:
    return ShelfSpill(shelf=ObjectId("s"), items=items, class_="A")


def events_of(messages: list[Envelope]) -> list[EventData]:
    return [
        item for message in messages if isinstance(message.content, EventsIndication) for item in message.content.events
    ]


def items(messages: list[Envelope]) -> list[object]:
    return [event.values["items"] for event in events_of(messages)]


async def test_an_event_on_the_wire(agent: Agent, bus: FakeBus, clock: ManualClock) -> None:
    site = Site(name="a")
    agent.add(site)
    agent.raise_event(ShelfSpill(shelf=site, items=3, class_="A"))
    await until(lambda: len(bus.sent) == 1)
    (message,) = bus.take()
    (event,) = events_of([message])
    assert message.to == "qmf.default.topic"
    assert message.subject == "agent.ind.event.org_example_stock.shelfSpill.warn.example_org.stock.one"
    assert (event.severity, event.timestamp) == (4, clock.now)
    assert event.class_key == ShelfSpill._qmf_schema_.key
    shelf = event.values["shelf"]
    assert isinstance(shelf, dict)
    assert shelf["_object_name"] == "org.example.stock:site:a"
    assert (event.values["items"], event.values["class"]) == (3, "A")


async def test_messages_say_how_many_events_were_sent_up_to_them(
    agent: Agent, bus: FakeBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_buffer, "MAX_EVENTS", 7)
    for number in range(3):
        agent.raise_event(spill(number))
    agent.raise_event(spill(99), severity=7)
    await until(lambda: agent.statistics.events_sent == 4)
    bus.disconnect()
    for number in range(10):
        agent.raise_event(spill(number))  # three of these are dropped: the buffer is full
    bus.take()
    bus.reconnect()
    await until(lambda: agent.statistics.events_sent == 11)
    messages = [item for item in bus.take() if isinstance(item.content, EventsIndication)]
    assert sum(len(events_of([item])) for item in messages) == 7
    assert (messages[-1].events, agent.statistics.events_dropped) == (13, 3)


@pytest.mark.parametrize(("severity", "name"), [(0, "emerg"), (Severity.INFORM, "info"), (7, "debug")])
async def test_severity_can_be_given(agent: Agent, bus: FakeBus, severity: int, name: str) -> None:
    agent.raise_event(spill(), severity=severity)
    await until(lambda: len(bus.sent) == 1)
    (message,) = bus.take()
    assert message.subject is not None
    assert f".{name}." in message.subject
    assert events_of([message])[0].severity == severity


async def test_what_does_not_fit_is_refused_at_once(agent: Agent) -> None:
    with pytest.raises(ConstraintError) as caught:
        agent.raise_event(spill(256))
    text = "argument 'items' of event shelfSpill (uint8): must be 0 to 255, not 256"
    assert str(caught.value) == text
    with pytest.raises(CallerError, match=r"a severity is 0 \(emerg\) to 7 \(debug\), not 8"):
        agent.raise_event(spill(), severity=8)


async def test_an_unset_reference_is_absent(agent: Agent, bus: FakeBus) -> None:
    agent.raise_event(ShelfSpill(shelf=None, items=1, class_=""))
    await until(lambda: len(bus.sent) == 1)
    assert set(events_of(bus.take())[0].values) == {"items", "class"}


async def test_threads_raise_in_order(agent: Agent, bus: FakeBus) -> None:
    def work() -> None:
        for number in range(200):
            agent.raise_event(spill(number))

    thread = threading.Thread(target=work)
    thread.start()
    await until(lambda: agent.statistics.events_sent == 200)
    thread.join()
    assert items(bus.take()) == list(range(200))


async def test_events_that_keep_coming_are_collected_for_a_moment(
    bus: FakeBus, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_queue, "PAUSE", 60.0)
    async with Agent(bus, vendor="v", product="p", clock=clock) as agent:
        bus.take()
        for number in range(event_queue.AT_ONCE + 30):
            agent.raise_event(spill(number))
            await turns()
        messages = bus.take()
        assert items(messages) == list(range(event_queue.AT_ONCE)), "the first ones go at once"
        assert len(messages) == event_queue.AT_ONCE
    messages = [message for message in bus.take() if isinstance(message.content, EventsIndication)]
    assert items(messages) == list(range(event_queue.AT_ONCE, event_queue.AT_ONCE + 30)), "the others with its end"
    assert len(messages) == 1


async def test_the_pause_ends(agent: Agent, bus: FakeBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_queue, "PAUSE", 0.002)
    for number in range(100):
        agent.raise_event(spill(number))
        await turns()
    await until(lambda: agent.statistics.events_sent == 100)
    assert items(bus.take()) == list(range(100))


async def test_events_raised_before_the_start_go_out_after_it(bus: FakeBus, clock: ManualClock) -> None:
    agent = Agent(bus, vendor="v", product="p", clock=clock)
    agent.raise_event(spill(5))
    async with agent:
        await until(lambda: len(bus.sent) == 2)
        assert items(bus.take()) == [5]


async def test_events_wait_for_the_connection_in_order(agent: Agent, bus: FakeBus) -> None:
    bus.disconnect()
    for number in range(250):
        agent.raise_event(spill(number))
    assert bus.take() == []
    bus.reconnect()
    await until(lambda: agent.statistics.events_sent == 250)
    assert items(bus.take()) == list(range(250))
    assert agent.statistics.events_dropped == 0


async def test_the_oldest_go_when_there_are_too_many(
    agent: Agent, bus: FakeBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_buffer, "MAX_EVENTS", 3)
    bus.disconnect()
    for number in range(5):
        agent.raise_event(spill(number))
    assert agent.statistics.events_dropped == 2
    bus.reconnect()
    await until(lambda: agent.statistics.events_sent == 3)
    assert items(bus.take()) == [2, 3, 4]


async def test_a_batch_that_broke_off_is_sent_again(agent: Agent, bus: FakeBus) -> None:
    bus.disconnect()
    for number in range(5):
        agent.raise_event(spill(number), severity=number % 2)
    bus.failures = [None, None, None, DisconnectedError("fake://", "gone")]
    bus.reconnect()
    await until(lambda: not bus.failures)
    agent.raise_event(spill(5))
    await until(lambda: agent.statistics.events_sent == 6)
    assert [item for item in items(bus.take()) if item == 5] == [5]


async def test_refused_events_are_dropped_and_counted(
    agent: Agent, bus: FakeBus, caplog: pytest.LogCaptureFixture
) -> None:
    bus.failures = [LinkError("", "amqp:unauthorized-access", "not you")]
    agent.raise_event(spill(1))
    await until(lambda: agent.statistics.events_dropped == 1)
    agent.raise_event(spill(2))
    await until(lambda: agent.statistics.events_sent == 1)
    assert items(bus.take()) == [2]
    assert "the broker refuses events" in caplog.text


async def test_each_batch_is_confirmed_at_its_end(agent: Agent, bus: FakeBus) -> None:
    for number in range(3):
        agent.raise_event(spill(number), severity=number % 2)
    await until(lambda: agent.statistics.events_sent == 3)
    assert bus.confirmed == [False, False, True]


async def test_events_of_one_kind_go_together_and_none_overtakes_another(agent: Agent, bus: FakeBus) -> None:
    severities = [3, 3, 3, 4, 3, 4, 4, 3]
    for number, severity in enumerate(severities):
        agent.raise_event(spill(number), severity=severity)
    await until(lambda: agent.statistics.events_sent == len(severities))
    messages = bus.take()
    assert items(messages) == list(range(len(severities)))
    assert [[event.severity for event in events_of([message])] for message in messages] == [
        [3, 3, 3],
        [4],
        [3],
        [4, 4],
        [3],
    ]
    assert [message.subject.split(".")[5] for message in messages if message.subject] == [
        "error",
        "warn",
        "error",
        "warn",
        "error",
    ]


async def test_a_message_holds_no_more_events_than_peers_take(bus: FakeBus, clock: ManualClock) -> None:
    async with Agent(bus, vendor="v", product="p", clock=clock, event_limit=None) as agent:
        bus.take()
        for number in range(2500):
            agent.raise_event(ShelfSpill(shelf=ObjectId("s" * 2000), items=number % 250, class_="A"))
        await until(lambda: agent.statistics.events_sent == 2500)
        assert max(map(len, bus.sent)) <= MAX_BYTES
        # A batch ends with a confirmation.
        assert bus.confirmed.count(True) == 3
        assert items(bus.take()) == [number % 250 for number in range(2500)]


@pytest.mark.parametrize("form", BodyForm)
async def test_one_that_cannot_be_encoded_does_not_stop_the_others(
    bus: FakeBus, clock: ManualClock, form: BodyForm, caplog: pytest.LogCaptureFixture
) -> None:
    async with Agent(bus, vendor="v", product="p", clock=clock, form=form) as agent:
        bus.take()
        for number in range(5):
            epoch = -1 if number == 2 else 1
            agent.raise_event(ShelfSpill(shelf=ObjectId("s", "a", epoch), items=number, class_="A"))
        await until(lambda: agent.statistics.events_sent == 4)
        assert items(bus.take()) == [0, 1, 3, 4]
        assert agent.statistics.unencodable == 1
    assert "skipped event org.example.stock:shelfSpill" in caplog.text


@pytest.mark.parametrize("form", BodyForm)
async def test_both_forms_have_the_same_content(bus: FakeBus, clock: ManualClock, form: BodyForm) -> None:
    async with Agent(bus, vendor="v", product="p", clock=clock, form=form) as agent:
        bus.take()
        agent.raise_event(ShelfSpill(shelf=ObjectId("s", "a", 7), items=200, class_="\u20ac" * 80))
        await until(lambda: agent.statistics.events_sent == 1)
        (event,) = events_of(bus.take())
    assert event.values == {
        "shelf": {"_object_name": "s", "_agent_name": "a", "_agent_epoch": 7},
        "items": 200,
        "class": "\u20ac" * 80,
    }
    assert (event.timestamp, event.severity, event.class_key) == (clock.now, 4, ShelfSpill._qmf_schema_.key)


class PostingBus(FakeBus):
    """A bus that sends messages without an outcome, until the test gives one."""

    def __init__(self) -> None:
        super().__init__()
        self.callbacks: list[OutcomeCallback] = []

    def try_send(self, data: bytes, on_outcome: OutcomeCallback) -> bool:
        self.sent.append(data)
        self.callbacks.append(on_outcome)
        return True

    def settle(self, number: int, error: NetworkError | None = None) -> None:
        self.callbacks.pop(number)(error)


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.fixture
async def ahead(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Agent, PostingBus]]:
    """An agent whose batches of two events have not been confirmed yet; four are on their way."""
    monkeypatch.setattr(event_buffer, "BATCH_SIZE", 2)
    bus = PostingBus()
    async with Agent(bus, vendor="v", product="p", clock=clock) as agent:
        bus.take()
        for number in range(10):
            agent.raise_event(spill(number))
        await turns()
        assert (items(bus.take()), len(bus.callbacks), agent.statistics.events_sent) == (list(range(8)), 4, 0)
        yield agent, bus
        while bus.callbacks:
            bus.settle(0)


async def test_a_few_batches_go_ahead_of_the_confirmations(ahead: tuple[Agent, PostingBus]) -> None:
    agent, bus = ahead
    bus.settle(0)
    await turns()
    assert (items(bus.take()), len(bus.callbacks), agent.statistics.events_sent) == ([8, 9], 4, 2)
    while bus.callbacks:
        bus.settle(0)
    assert agent.statistics.events_sent == 10


async def test_batches_that_went_down_go_again_in_order(ahead: tuple[Agent, PostingBus]) -> None:
    _, bus = ahead
    bus.disconnect()
    bus.settle(0)
    for number in (2, 0, 0):
        bus.settle(number, DisconnectedError("fake://", "gone"))
        await turns()
        assert bus.take() == []
    bus.reconnect()
    await turns()
    messages = [message for message in bus.take() if isinstance(message.content, EventsIndication)]
    assert items(messages) == list(range(2, 10))
    # Those of the same batches have their numbers.
    assert [message.sequence for message in messages] == [2, 3, 4, 5]


async def test_a_refused_batch_does_not_block_the_others(ahead: tuple[Agent, PostingBus]) -> None:
    agent, bus = ahead
    bus.settle(1, LinkError("", "amqp:unauthorized-access", "not you"))
    await turns()
    assert items(bus.take()) == [8, 9]
    assert agent.statistics.events_dropped == 2


async def test_closing_waits_for_the_confirmations(clock: ManualClock) -> None:
    bus = PostingBus()
    agent = Agent(bus, vendor="v", product="p", clock=clock)
    await agent.start()
    agent.raise_event(spill(1))
    closing = asyncio.ensure_future(agent.close())
    await until(lambda: bool(bus.callbacks))
    await turns(50)
    assert not closing.done()
    bus.settle(0)
    await closing
    assert agent.statistics.events_sent == 1


def test_events_are_values() -> None:
    assert spill(1) == spill(1)
    assert spill(1) != spill(2)
