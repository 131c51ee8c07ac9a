"""Notification streams and listeners."""

from __future__ import annotations

import asyncio

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
from qmf.console.aio.agents.registry import Agent, info_from_name
from qmf.console.aio.streams import NotificationStream


def beat(number: int) -> Notification:
    return HeartbeatSeen(Agent(info_from_name(AGENT)), number)


async def drain(feed: NotificationStream) -> list[int]:
    feed.close()
    return [-item.count if isinstance(item, Dropped) else item.timestamp async for item in feed]  # type: ignore[union-attr]


@pytest.mark.parametrize(("overflow", "told"), [(Overflow.DROP_OLDEST, [-3, 3, 4]), (Overflow.DROP_NEWEST, [0, 1, -3])])
async def test_a_full_feed_drops_by_its_policy(overflow: Overflow, told: list[int]) -> None:
    feed = NotificationStream((HeartbeatSeen,), 2, overflow, lambda _: None)
    for number in range(5):
        feed.put(beat(number))
    assert feed.dropped == 3
    assert await drain(feed) == told


async def test_a_gap_is_told_where_it_is() -> None:
    feed = NotificationStream((HeartbeatSeen,), 1, Overflow.DROP_NEWEST, lambda _: None)
    for number in range(2):
        feed.put(beat(number))
    assert await anext(feed) == beat(0)
    feed.put(beat(2))
    assert await anext(feed) == Dropped(2)
    feed.put(beat(3))
    assert await drain(feed) == [3]


async def test_a_feed_wakes_its_reader_and_ends() -> None:
    with NotificationStream((HeartbeatSeen,), 2, Overflow.DROP_OLDEST, lambda _: None) as feed:
        reading = asyncio.ensure_future(anext(feed))
        await asyncio.sleep(0)
        feed.put(beat(1))
        assert await reading == beat(1)
        reading = asyncio.ensure_future(anext(feed))
        await asyncio.sleep(0)
    with pytest.raises(StopAsyncIteration):
        await reading
    feed.put(beat(2))
    assert await drain(feed) == []


async def test_a_feed_ends_with_its_client_and_tells_gaps(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    client, heard = await make_client()
    feed = client.notifications(ObjectUpdated, Dropped, size=2, overflow=Overflow.DROP_OLDEST)
    for number in range(5):
        await agent.publish(widget("w", turns=number))
    await until(lambda: len(heard.of(ObjectUpdated)) == 5)
    await client.close()
    told = [item async for item in feed]
    assert told[0] == Dropped(3)
    assert [item.object["turns"] for item in told if isinstance(item, ObjectUpdated)] == [3, 4]
    assert feed.dropped == 3


async def test_a_failing_listener_harms_nobody(
    make_agent: MakeAgent, make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    agent = await make_agent()
    client, heard = await make_client()

    def broken(news: object) -> None:
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


async def test_agents_are_an_iterator_that_begins_with_those_present(
    make_agent: MakeAgent, make_client: MakeClient
) -> None:
    one = await make_agent()
    client, _ = await make_client()
    with client.follow_agents() as agents:
        two = await make_agent("example.org:widgets:2")
        await two.heartbeat()
        await two.heartbeat(_goodbye=True)
        news = [await asyncio.wait_for(anext(agents), 5) for _ in range(3)]
    assert [(type(item), item.agent.name) for item in news] == [  # type: ignore[union-attr]
        (AgentAdded, one.info.name),
        (AgentAdded, two.info.name),
        (AgentRemoved, two.info.name),
    ]
