"""Events: at once, in order, from any thread, kept while there is no connection."""

from __future__ import annotations

import threading

import pytest
from agent.fakes import FakeBus, FakeClock, until
from agent.warehouse import ShelfSpill, Site

from qmf.agent import Agent, ObjectId, events
from qmf.errors import CallerError, ConstraintError, DisconnectedError, LinkError
from qmf.protocol import Envelope, EventData, EventsIndication
from qmf.schema import Severity


def spill(items: int = 1) -> ShelfSpill:
    return ShelfSpill(shelf=ObjectId("s"), items=items, class_="A")


def told(messages: list[Envelope]) -> list[EventData]:
    return [
        item for message in messages if isinstance(message.content, EventsIndication) for item in message.content.events
    ]


def items(messages: list[Envelope]) -> list[object]:
    return [event.values["items"] for event in told(messages)]


async def test_an_event_on_the_wire(agent: Agent, bus: FakeBus, clock: FakeClock) -> None:
    site = Site(name="a")
    agent.add(site)
    agent.raise_event(ShelfSpill(shelf=site, items=3, class_="A"))
    await until(lambda: len(bus.sent) == 1)
    (message,) = bus.take()
    (event,) = told([message])
    assert message.to == "qmf.default.topic"
    assert message.subject == "agent.ind.event.org_example_stock.shelfSpill.warn.example_org.stock.one"
    assert (event.severity, event.timestamp) == (4, clock.now)
    assert event.class_key == ShelfSpill._qmf_schema_.key
    shelf = event.values["shelf"]
    assert isinstance(shelf, dict)
    assert shelf["_object_name"] == "org.example.stock:site:a"
    assert (event.values["items"], event.values["class"]) == (3, "A")


@pytest.mark.parametrize(("severity", "word"), [(0, "emerg"), (Severity.INFORM, "info"), (7, "debug")])
async def test_severity_can_be_given(agent: Agent, bus: FakeBus, severity: int, word: str) -> None:
    agent.raise_event(spill(), severity=severity)
    await until(lambda: len(bus.sent) == 1)
    (message,) = bus.take()
    assert message.subject is not None
    assert f".{word}." in message.subject
    assert told([message])[0].severity == severity


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
    assert set(told(bus.take())[0].values) == {"items", "class"}


async def test_threads_raise_in_order(agent: Agent, bus: FakeBus) -> None:
    def work() -> None:
        for number in range(200):
            agent.raise_event(spill(number))

    thread = threading.Thread(target=work)
    thread.start()
    await until(lambda: len(bus.sent) == 200)
    thread.join()
    assert items(bus.take()) == list(range(200))


async def test_events_raised_before_the_start_go_out_after_it(bus: FakeBus, clock: FakeClock) -> None:
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
    monkeypatch.setattr(events, "MAX_EVENTS", 3)
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
        agent.raise_event(spill(number))
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
        agent.raise_event(spill(number))
    await until(lambda: agent.statistics.events_sent == 3)
    assert bus.confirmed == [False, False, True]


def test_events_are_values() -> None:
    assert spill(1) == spill(1)
    assert spill(1) != spill(2)
