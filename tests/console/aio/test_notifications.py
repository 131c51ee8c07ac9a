"""Notification streams and listeners."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from console.aio.objects.remotes import AGENT
from console.conftest import MakeAgent, MakeClient
from support.scripted_agent import widget
from support.waiting import until

from qmf.console.aio import (
    AgentAdded,
    AgentRemoved,
    Dropped,
    HeartbeatSeen,
    Notification,
    ObjectUpdated,
    Overflow,
)
from qmf.console.aio.agents import Agent, info_from_name
from qmf.console.aio.notifications import NotificationPublisher, NotificationStream


def beat(number: int) -> Notification:
    return HeartbeatSeen(Agent(info_from_name(AGENT)), number)


async def drain(stream: NotificationStream) -> list[int]:
    stream.close()
    return [-item.count if isinstance(item, Dropped) else item.timestamp async for item in stream]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("overflow", "reported"), [(Overflow.DROP_OLDEST, [-3, 3, 4]), (Overflow.DROP_NEWEST, [0, 1, -3])]
)
async def test_a_full_stream_drops_by_its_policy(overflow: Overflow, reported: list[int]) -> None:
    stream = NotificationStream((HeartbeatSeen,), 2, overflow, lambda _: None)
    for number in range(5):
        stream.put(beat(number))
    assert stream.dropped == 3
    assert await drain(stream) == reported


async def test_a_gap_is_reported_in_its_place() -> None:
    stream = NotificationStream((HeartbeatSeen,), 1, Overflow.DROP_NEWEST, lambda _: None)
    for number in range(2):
        stream.put(beat(number))
    assert await anext(stream) == beat(0)
    stream.put(beat(2))
    assert await anext(stream) == Dropped(2)
    stream.put(beat(3))
    assert await drain(stream) == [3]


async def test_a_stream_wakes_its_reader_and_ends() -> None:
    with NotificationStream((HeartbeatSeen,), 2, Overflow.DROP_OLDEST, lambda _: None) as stream:
        reading = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        stream.put(beat(1))
        assert await reading == beat(1)
        reading = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
    with pytest.raises(StopAsyncIteration):
        await reading
    stream.put(beat(2))
    assert await drain(stream) == []


async def test_a_stream_ends_with_its_client_and_reports_gaps(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    client, heard = await make_client()
    stream = client.notifications(ObjectUpdated, Dropped, size=2, overflow=Overflow.DROP_OLDEST)
    for number in range(5):
        await agent.publish(widget("w", turns=number))
    await until(lambda: len(heard.of(ObjectUpdated)) == 5)
    await client.close()
    reported = [item async for item in stream]
    assert reported[0] == Dropped(3)
    assert [item.object["turns"] for item in reported if isinstance(item, ObjectUpdated)] == [3, 4]
    assert stream.dropped == 3


async def test_the_error_of_a_listener_does_not_affect_the_others(
    make_agent: MakeAgent, make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    agent = await make_agent()
    client, heard = await make_client()

    def broken(item: object) -> None:
        raise ZeroDivisionError("oops")

    stop = client.listen(broken)
    later: list[object] = []
    client.listen(later.append)
    await agent.heartbeat()
    await until(lambda: heard.of(HeartbeatSeen) and later)
    assert "oops" in caplog.text
    stop()
    stop()
    caplog.clear()
    await agent.heartbeat()
    await until(lambda: len(heard.of(HeartbeatSeen)) == 2)
    assert caplog.text == ""


def test_listeners_may_change_between_notifications_that_came_together() -> None:
    publisher = NotificationPublisher()
    heard: list[tuple[str, Notification]] = []
    stops: list[Callable[[], None]] = []

    def second(item: Notification) -> None:
        heard.append(("second", item))

    def first(item: Notification) -> None:
        heard.append(("first", item))
        if item == beat(1):
            publisher.listen(second)
        elif item == beat(3):
            stops[0]()

    stops.append(publisher.listen(first))
    publisher.publish_all([beat(number) for number in range(5)])
    assert heard == [
        ("first", beat(0)),
        ("first", beat(1)),
        ("first", beat(2)),
        ("second", beat(2)),
        ("first", beat(3)),
        ("second", beat(3)),
        ("second", beat(4)),
    ]


def test_the_error_of_the_only_listener_skips_no_other_notification(caplog: pytest.LogCaptureFixture) -> None:
    publisher = NotificationPublisher()
    heard: list[Notification] = []

    def broken(item: Notification) -> None:
        heard.append(item)
        raise ZeroDivisionError("oops")

    publisher.listen(broken)
    publisher.publish_all([beat(0), beat(1)])
    assert heard == [beat(0), beat(1)]
    assert len(caplog.records) == 2


async def test_notifications_that_came_together_reach_streams() -> None:
    publisher = NotificationPublisher()
    stream = publisher.stream((HeartbeatSeen,), 10, Overflow.DROP_OLDEST)
    publisher.listen(lambda _: None)
    publisher.publish_all([beat(0), beat(1)])
    assert await drain(stream) == [0, 1]


async def test_agents_are_an_iterator_that_begins_with_those_present(
    make_agent: MakeAgent, make_client: MakeClient
) -> None:
    one = await make_agent()
    client, _ = await make_client()
    with client.follow_agents() as agents:
        two = await make_agent("example.org:widgets:2")
        await two.heartbeat()
        await two.heartbeat(_goodbye=True)
        items = [await asyncio.wait_for(anext(agents), 5) for _ in range(3)]
    assert [(type(item), item.agent.name) for item in items] == [  # type: ignore[union-attr]
        (AgentAdded, one.info.name),
        (AgentAdded, two.info.name),
        (AgentRemoved, two.info.name),
    ]
