"""The rate limit of events: how many are sent, how many are suppressed, and how that is reported."""

from __future__ import annotations

import logging
import threading

import pytest
from agent.warehouse import SPILL, ShelfSpill
from support.fake_bus import FakeBus
from support.waiting import until

from qmf.agent import Agent, EventLimit, ObjectId
from qmf.agent.publishing.event_raiser import EventWriter
from qmf.agent.publishing.event_rate_limiter import EventRateLimiter
from qmf.errors import CallerError, ConstraintError
from qmf.protocol import Envelope, EventsIndication
from qmf.testing import ManualClock


def spill(items: int = 1) -> ShelfSpill:
    return ShelfSpill(shelf=ObjectId("s"), items=items, class_="A")


def sent(messages: list[Envelope]) -> list[tuple[list[object], int | None, int]]:
    """Items of the events, number and count of suppressed ones of each message."""
    return [
        ([event.values["items"] for event in message.content.events], message.sequence, message.suppressed)
        for message in messages
        if isinstance(message.content, EventsIndication)
    ]


# (limit, times of events, what each gets: the count suppressed before it, or None)
GATES = [
    (EventLimit(2, 10), [0, 0, 0, 9.9, 10, 10, 10, 25], [0, 0, None, None, 2, 0, None, 1]),
    (EventLimit(1, 1), [0, 5, 5.5, 5.9, 7], [0, 0, None, None, 2]),
    (EventLimit(3, 10), [0, 9, 11, 12, 13, 14], [0, 0, 0, 0, 0, None]),
    (None, [0] * 5, [0] * 5),
]


@pytest.mark.parametrize(("limit", "times", "expected"), GATES)
def test_windows(limit: EventLimit | None, times: list[float], expected: list[int | None]) -> None:
    gate = EventRateLimiter(limit)
    assert [gate.admit(SPILL.key, 4, time) for time in times] == expected
    assert gate.suppressed == expected.count(None)


def test_kinds_are_counted_apart() -> None:
    gate = EventRateLimiter(EventLimit(1, 10))
    assert [gate.admit(SPILL.key, severity, 0) for severity in (4, 5, 4, 5)] == [0, 0, None, None]


@pytest.mark.parametrize("options", [{"count": 0}, {"seconds": 0}, {"seconds": float("inf")}])
def test_limits_are_checked(options: dict[str, float]) -> None:
    with pytest.raises(CallerError, match="of a limit must be a positive number"):
        EventLimit(**options)  # type: ignore[arg-type]


async def test_the_next_event_has_the_number_of_suppressed_ones(
    bus: FakeBus, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "qmf.agent")
    async with Agent(bus, vendor="v", product="p", clock=clock, event_limit=EventLimit(3, 5)) as agent:
        bus.take()
        for number in range(10):
            agent.raise_event(spill(number))
        agent.raise_event(spill(77), severity=0)
        clock.now += 5 * 10**9
        agent.raise_event(spill(10))
        agent.raise_event(spill(11))
        await until(lambda: agent.statistics.events_sent == 6)
        assert sent(bus.take()) == [([0, 1, 2], 1, 0), ([77], 1, 0), ([10, 11], 2, 7)]
        assert (agent.statistics.events_suppressed, agent.statistics.events_dropped) == (7, 0)
    assert len([record for record in caplog.records if "too many events" in record.getMessage()]) == 1
    assert "7 events org.example.stock:shelfSpill" in caplog.text


async def test_suppressed_events_are_checked_and_not_encoded(
    bus: FakeBus, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Agent(bus, vendor="v", product="p", clock=clock, event_limit=EventLimit(1, 5)) as agent:
        agent.raise_event(spill(0))
        encoded: list[int] = []
        monkeypatch.setattr(EventWriter, "item", lambda *_: encoded.append(1))
        agent.raise_event(spill(1))
        with pytest.raises(ConstraintError):
            agent.raise_event(spill(-1))
        assert (encoded, agent.statistics.events_suppressed) == ([], 1)
        clock.now += 5 * 10**9
        agent.raise_event(spill(2))
        assert encoded == [1]


async def test_the_default_lets_a_thousand_pass(agent: Agent, bus: FakeBus) -> None:
    for _ in range(1010):
        agent.raise_event(spill())
    await until(lambda: agent.statistics.events_sent == 1000)
    assert agent.statistics.events_suppressed == 10


async def test_threads_are_counted_together(bus: FakeBus, clock: ManualClock) -> None:
    async with Agent(bus, vendor="v", product="p", clock=clock, event_limit=EventLimit(100, 5)) as agent:

        def work() -> None:
            for _ in range(50):
                agent.raise_event(spill())

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        await until(lambda: agent.statistics.events_sent == 100)
        assert agent.statistics.events_suppressed == 100
