"""Publications that come under a key for several subscriptions continue those that came to one alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from console.aio.following.reading import ADDED, CHANGED, asked, read, read_kinds
from console.conftest import MakeAgent, MakeClient
from support.scripted_agent import ScriptedAgent, part, widget
from support.waiting import until

from qmf.agent import Agent, SubscriptionLimits
from qmf.bus import MemoryBus, MemoryExchange
from qmf.bus.memory.exchange import MemoryQueue
from qmf.console.aio import Client, Follow, Missed, RemoteObject
from qmf.models.broker.agent import Topic
from qmf.protocol import SubscribeRefresh, SubscribeRequest

KEY = "direct-subscription.1"


@pytest.fixture
async def agent(make_agent: MakeAgent) -> ScriptedAgent:
    """An agent with a widget."""
    made = await make_agent(subscriptions=True)
    made.objects = [widget("a", update=1)]
    return made


def subscription(agent: ScriptedAgent) -> str:
    (name,) = agent.subscribers
    return name


async def bind(agent: ScriptedAgent) -> None:
    """Ask the console to bind the key, until it has."""
    await agent.share(subscription(agent), KEY)
    await until(lambda: [getattr(item, "bound", None) for item in asked(agent, SubscribeRefresh)] == [True])


async def turns_read(widgets: Follow[RemoteObject], count: int) -> list[object]:
    return [change.object["turns"] for change in await read(widgets, count)]


async def test_they_continue_from_the_number_that_the_agent_says(agent: ScriptedAgent, make_client: MakeClient) -> None:
    client, heard = await make_client(data=False)
    async with client.follow("widget") as widgets:
        assert await read_kinds(widgets, 1) == [(ADDED, "a")]
        assert [getattr(item, "can_share", None) for item in asked(agent, SubscribeRequest)] == [True]
        await bind(agent)
        await agent.publish_shared(KEY, 7, part("a", {"turns": 2}, update=2))
        await agent.publish_to_subscribers(part("a", {"turns": 2}, update=2))
        assert await turns_read(widgets, 1) == [2]
        await agent.publish_shared(KEY, 8, part("a", {"turns": 3}, update=3))
        await agent.share(subscription(agent), KEY, last=2, first=8)
        assert await turns_read(widgets, 1) == [3]
        await agent.share(subscription(agent), KEY, last=2, first=8)  # a second time: changes nothing
        await agent.publish_shared(KEY, 9, part("a", {"turns": 4}, update=4))
        assert await turns_read(widgets, 1) == [4]
        assert heard.of(Missed) == []
        assert len(asked(agent, SubscribeRequest)) == 1


@pytest.mark.parametrize(("last", "first", "number"), [(2, 1, 2), (3, 1, 1)], ids=["under the key", "alone"])
async def test_one_that_is_missing_is_reported_and_replaced(
    agent: ScriptedAgent, make_client: MakeClient, last: int, first: int, number: int
) -> None:
    client, heard = await make_client(data=False)
    async with client.follow("widget") as widgets:
        assert await read_kinds(widgets, 1) == [(ADDED, "a")]
        await bind(agent)
        await agent.publish_to_subscribers(part("a", {"turns": 2}, update=2))
        assert await turns_read(widgets, 1) == [2]
        agent.objects = [widget("a", turns=9, update=9)]
        await agent.share(subscription(agent), KEY, last=last, first=first)
        await agent.publish_shared(KEY, number, part("a", {"turns": 3}, update=3))
        assert await turns_read(widgets, 1) == [9]
        assert [item.count for item in heard.of(Missed)] == [1]


async def test_the_key_is_bound_as_long_as_one_subscription_needs_it(
    agent: ScriptedAgent, make_client: MakeClient, exchange: MemoryExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    unbound: list[str] = []
    unbind = exchange.unbind

    def note(queue: MemoryQueue) -> None:
        unbound.append(queue.binding.key)
        unbind(queue)

    monkeypatch.setattr(exchange, "unbind", note)
    client, _ = await make_client(data=False)
    async with client.follow("widget") as widgets:
        assert await read_kinds(widgets, 1) == [(ADDED, "a")]
        await bind(agent)
        assert KEY not in unbound
    await until(lambda: KEY in unbound)


@pytest.fixture
async def topics() -> AsyncIterator[tuple[MemoryExchange, Agent, list[Topic]]]:
    """An agent with topics, on an exchange of its own."""
    exchange, limits = MemoryExchange(), SubscriptionLimits(min_interval=0.01)
    async with Agent(
        MemoryBus(exchange), vendor="example.org", product="shared", interval=60, subscription_limits=limits
    ) as agent:
        made = [Topic(name=f"t{number}", durable=False) for number in range(3)]
        for topic in made:
            agent.add(topic)
        yield exchange, agent, made


@pytest.mark.slow
async def test_an_agent_and_its_consoles(topics: tuple[MemoryExchange, Agent, list[Topic]]) -> None:
    exchange, agent, made = topics
    clients = [Client(MemoryBus(exchange), data=False) for _ in range(6)]
    try:
        await asyncio.gather(*(client.open() for client in clients))
        followed = [client.follow("topic", interval=0.01) for client in clients]
        for item in followed:
            assert [change.kind for change in await read(item, 3)] == [ADDED] * 3
        sent = number = 0
        while sent != 1:  # message for all, as soon as all have bound the key
            number, before = number + 1, agent.statistics.messages_out
            assert number < 20
            for topic in made:
                topic.properties = {"n": number}
            for item in followed:
                changes = await read(item, 3)
                assert [change.kind for change in changes] == [CHANGED] * 3
                assert {change.object["properties"]["n"] for change in changes} == {number}
            sent = agent.statistics.messages_out - before
        assert [item.merged for item in followed] == [0] * 6
    finally:
        for client in clients:
            await client.close()
