"""Sequence numbers of published messages: per subject, without gaps where nothing was lost."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from agent.warehouse import Belt, Shelf, ShelfSpill, Site
from support.fake_bus import FakeBus
from support.waiting import until

from qmf.agent import Agent, ObjectId
from qmf.agent.publishing import event_buffer
from qmf.agent.sending.message_sender import SequenceNumbers
from qmf.errors import DisconnectedError, LinkError
from qmf.protocol import Envelope, EventsIndication, Heartbeat, ObjectsIndication
from qmf.testing import ManualClock


def spill(items: int) -> ShelfSpill:
    return ShelfSpill(shelf=ObjectId("s"), items=items, class_="A")


async def interval(bus: FakeBus, clock: ManualClock) -> list[Envelope]:
    bus.take()
    await clock.advance(10)
    await until(lambda: bool(bus.confirmed) and bus.confirmed[-1])
    return bus.take()


def numbers(messages: Sequence[Envelope], kind: type[object]) -> list[int | None]:
    return [message.sequence for message in messages if isinstance(message.content, kind)]


def test_subjects_count_apart() -> None:
    numbers = SequenceNumbers()
    assert [numbers.use("a"), numbers.use("b"), numbers.use("a"), numbers.next("a"), numbers.next("c")] == [
        1,
        1,
        2,
        3,
        1,
    ]
    state = numbers.save()
    numbers.use("a")
    numbers.restore(state)
    assert numbers.use("a") == 3


async def test_heartbeats_and_indications(bus: FakeBus, clock: ManualClock) -> None:
    async with Agent(bus, vendor="v", product="p", clock=clock) as agent:
        (hello,) = bus.take()
        for number in range(150):
            agent.add(Site(name=str(number)))
        agent.add(Belt())
        first = await interval(bus, clock)
        agent.add(Site(name="last"))
        second = await interval(bus, clock)
    assert (hello.sequence, numbers(first, Heartbeat), numbers(second, Heartbeat)) == (1, [2], [3])
    by_subject: dict[str | None, list[int | None]] = {}
    for message in (*first, *second):
        if isinstance(message.content, ObjectsIndication):
            by_subject.setdefault(message.subject, []).append(message.sequence)
    assert sorted(by_subject.values(), key=len) == [[1], [1, 2, 3]]
    (goodbye,) = bus.take()
    assert goodbye.sequence == 4


async def test_messages_that_turn_out_too_large_leave_no_gap(agent: Agent, bus: FakeBus, clock: ManualClock) -> None:
    for number in range(40):
        agent.add(Shelf(number=number, class_="x" * 5000))
    found = numbers(await interval(bus, clock), ObjectsIndication)
    assert len(found) > 2
    assert found == list(range(1, len(found) + 1))


@pytest.mark.parametrize("good", [0, 1, 2])
async def test_a_publication_that_broke_off_is_numbered_again(
    agent: Agent, bus: FakeBus, clock: ManualClock, good: int
) -> None:
    for number in range(150):
        agent.add(Site(name=str(number)))
    bus.failures = [*[None] * good, DisconnectedError("fake://", "gone")]
    await clock.advance(10)
    await until(lambda: not bus.failures)
    messages = await interval(bus, clock)
    # The heartbeat of the start was the first.
    assert (numbers(messages, ObjectsIndication), numbers(messages, Heartbeat)) == ([1, 2], [2])


async def test_messages_of_events_keep_their_number_when_sent_again(agent: Agent, bus: FakeBus) -> None:
    bus.disconnect()
    for number in range(5):
        agent.raise_event(spill(number), severity=number % 2)
    bus.failures = [None, None, None, DisconnectedError("fake://", "gone")]
    bus.reconnect()
    await until(lambda: not bus.failures)
    agent.raise_event(spill(5), severity=1)
    await until(lambda: agent.statistics.events_sent == 6)
    sent = {
        (message.content.events[0].severity, message.sequence, message.content.events[0].values["items"])
        for message in bus.take()
        if isinstance(message.content, EventsIndication)
    }
    assert sent == {(number % 2, number // 2 + 1, number) for number in range(6)}


async def test_dropped_events_leave_a_gap(agent: Agent, bus: FakeBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_buffer, "MAX_EVENTS", 3)
    bus.disconnect()
    for number in range(5):
        agent.raise_event(spill(number))
    bus.reconnect()
    await until(lambda: agent.statistics.events_sent == 3)
    found = [
        (message.sequence, [event.values["items"] for event in message.content.events])
        for message in bus.take()
        if isinstance(message.content, EventsIndication)
    ]
    assert found == [(3, [2, 3, 4])]


async def test_events_dropped_from_messages_leave_a_gap(
    agent: Agent, bus: FakeBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_buffer, "MAX_EVENTS", 4)
    bus.disconnect()
    for number, severity in enumerate((3, 3, 4, 3)):
        agent.raise_event(spill(number), severity=severity)
    bus.failures = [DisconnectedError("fake://", "gone")]
    bus.reconnect()
    await until(lambda: not bus.failures)
    bus.disconnect()
    for number in range(4, 7):
        agent.raise_event(spill(number), severity=3)
    assert agent.statistics.events_dropped == 3
    bus.reconnect()
    await until(lambda: agent.statistics.events_sent == 4)
    found = [
        (message.sequence, [event.values["items"] for event in message.content.events])
        for message in bus.take()
        if isinstance(message.content, EventsIndication)
    ]
    assert found == [(2, [3]), (3, [4, 5, 6])]


async def test_refused_events_leave_a_gap(agent: Agent, bus: FakeBus) -> None:
    bus.failures = [LinkError("", "amqp:unauthorized-access", "not you")]
    agent.raise_event(spill(1))
    await until(lambda: agent.statistics.events_dropped == 1)
    agent.raise_event(spill(2))
    await until(lambda: agent.statistics.events_sent == 1)
    assert numbers(bus.take(), EventsIndication) == [2]


async def test_severities_count_apart(agent: Agent, bus: FakeBus) -> None:
    for severity in (3, 4, 3, 4, 3):
        agent.raise_event(spill(1), severity=severity)
    await until(lambda: agent.statistics.events_sent == 5)
    assert numbers(bus.take(), EventsIndication) == [1, 1, 2, 2, 3]


async def test_numbers_can_be_left_out(bus: FakeBus, clock: ManualClock) -> None:
    async with Agent(bus, vendor="v", product="p", clock=clock, numbering=False) as agent:
        agent.add(Site(name="a"))
        agent.raise_event(spill(1))
        await clock.advance(10)
        await until(lambda: len(bus.sent) == 4)
        assert {message.sequence for message in bus.take()} == {None}


async def test_indications_can_be_turned_off(bus: FakeBus, clock: ManualClock) -> None:
    async with Agent(bus, vendor="v", product="p", clock=clock, publish_data=False) as agent:
        shelf = Shelf(number=1)
        agent.add(shelf)
        shelf.users.inc(5)
        shelf.users.set(1)
        (message,) = await interval(bus, clock)
        assert isinstance(message.content, Heartbeat)
        # The interval has passed all the same.
        assert (shelf.users.high, agent.statistics.objects_published) == (1, 0)


async def test_events_can_be_turned_off(bus: FakeBus, clock: ManualClock) -> None:
    async with Agent(bus, vendor="v", product="p", clock=clock, publish_events=False) as agent:
        bus.take()
        agent.raise_event(spill(1))
        with pytest.raises(ValueError, match="must be 0 to 255"):
            agent.raise_event(spill(256))
        (message,) = await interval(bus, clock)
        assert isinstance(message.content, Heartbeat)
