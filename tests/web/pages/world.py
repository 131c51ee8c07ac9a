"""A site of the web console over an invented agent, on a bus in memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import attrs
from support.shelf import store_agent
from support.waiting import WAIT_LIMIT

from qmf.bus import Bus, MemoryBus, MemoryExchange
from qmf.console.aio import Client, RemoteObject
from qmf.protocol import AgentInfo, Envelope, Heartbeat, encode, heartbeat_key
from qmf.testing import FakeAgent
from qmf.web.pages.live.shared_state import SharedState

T = TypeVar("T")


async def awaited(make: Callable[[], Awaitable[T]], accepts: Callable[[T], object]) -> T:
    """What `make` gives, again and again, once it is accepted."""
    async with asyncio.timeout(WAIT_LIMIT):
        while not accepts(found := await make()):
            await asyncio.sleep(0.005)
    return found


@attrs.frozen
class World:
    """The parts of it."""

    exchange: MemoryExchange
    agent: FakeAgent
    client: Client
    site: SharedState

    async def shelf(self, number: int = 0) -> RemoteObject:
        """A shelf, as the agent answers."""
        found = await self.client.objects("shelf", where={"name": f"a/{number}"})
        return found[0]


@contextlib.asynccontextmanager
async def opened_world(exchange: MemoryExchange, agent: FakeAgent) -> AsyncIterator[World]:
    """A console for an agent that was started, and a site that was started and knows the classes."""
    async with Client(MemoryBus(exchange), data=False) as client:
        site = SharedState(client, 0.05)
        site.start()
        try:
            await site.catalogue.refresh()
            yield World(exchange, agent, client, site)
        finally:
            await site.close()


@contextlib.asynccontextmanager
async def world(shelves: int = 3) -> AsyncIterator[World]:
    """An agent with shelves, a console, and a site that was started and knows the classes."""
    exchange = MemoryExchange()
    async with store_agent(exchange, shelves=shelves) as agent, opened_world(exchange, agent) as found:
        yield found


async def announce(bus: Bus, count: int) -> None:
    """Send a heartbeat of each of so many agents that do nothing else: ``many:agent:00000`` and so on.

    Args:
        bus: not open yet.
        count: how many agents.
    """
    await bus.open()
    try:
        for number in range(count):
            info = AgentInfo(name=f"many:agent:{number:05}", epoch=1, heartbeat_interval=10)
            subject = heartbeat_key(info)
            envelope = Envelope(content=Heartbeat(info), to="qmf.default.topic", subject=subject, agent=info.name)
            await bus.send(encode(envelope), confirm=True)
    finally:
        await bus.close()
