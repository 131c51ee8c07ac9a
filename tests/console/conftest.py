"""Fixtures of the console's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from console.world import World
from support.recording import Notifications
from support.scripted_agent import ScriptedAgent, widget
from support.waiting import WAIT_LIMIT, until

from qmf.bus import Backoff, MemoryBus, MemoryExchange
from qmf.console.aio import Client

MakeAgent = Callable[..., Awaitable[ScriptedAgent]]
MakeClient = Callable[..., Awaitable[tuple[Client, Notifications]]]


@pytest.fixture
def exchange() -> MemoryExchange:
    return MemoryExchange()


@pytest.fixture
def agents() -> list[ScriptedAgent]:
    """The agents that run."""
    return []


@pytest.fixture
async def make_agent(exchange: MemoryExchange, agents: list[ScriptedAgent]) -> AsyncIterator[MakeAgent]:
    """Starts scripted agents; closes them in the end."""

    async def make(name: str = "example.org:widgets:1", **options: Any) -> ScriptedAgent:
        agent = await ScriptedAgent(exchange, name, **options).start()
        agents.append(agent)
        return agent

    yield make
    for agent in agents:
        await agent.bus.close()


@pytest.fixture
async def make_client(exchange: MemoryExchange, agents: list[ScriptedAgent]) -> AsyncIterator[MakeClient]:
    """Opens clients that know all agents and keep their notifications; closes them at the end."""
    clients: list[Client] = []

    async def make(**options: Any) -> tuple[Client, Notifications]:
        bus = MemoryBus(exchange, backoff=Backoff(first=0.001, limit=0.01))
        client = Client(bus, **{"timeout": 5.0, "settle": 0.0, **options})
        heard = Notifications()
        client.listen(heard.append)
        clients.append(client)
        await client.open(WAIT_LIMIT)  # `timeout` is about answers
        await until(lambda: len(client.agents) >= len(agents))
        return client, heard

    yield make
    for client in clients:
        await client.close()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(monkeypatch)
    yield made
    made.close()


@pytest.fixture
def qpidd(world: World) -> ScriptedAgent:
    agent = world.agent(qpidd=True)
    agent.objects = [widget("w")]
    return agent
