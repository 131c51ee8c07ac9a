"""Agents that come back all at once to a broker that was restarted: each by one attempt."""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections.abc import Iterator

import pytest
from support.waiting import until

from qmf.agent import Agent
from qmf.broker import Broker
from qmf.bus import AmqpBus
from qmf.bus.backoff import Backoff

#: How many join at the same time: starts of agents are no storm, only their returns are.
AT_ONCE = 50
#: Seconds in which the last of them has to be back: so that a hang ends, not how fast it is.
PATIENCE = 120.0


@pytest.fixture
def many_files() -> Iterator[None]:
    """Each connection is an open file at both ends."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.slow
@pytest.mark.usefixtures("many_files")
@pytest.mark.parametrize("management", [None, 10.0], ids=["alone", "management"])
@pytest.mark.parametrize("count", [20, pytest.param(2_000, marks=pytest.mark.soak)])
async def test_nobody_has_to_try_twice(count: int, management: float | None) -> None:
    async with contextlib.AsyncExitStack() as stack:
        async with Broker(port=0, management=management) as broker:
            port = broker.port
            waits = Backoff(first=0.01, limit=0.5)
            buses = [AmqpBus(f"amqp://127.0.0.1:{port}", backoff=waits) for _ in range(count)]
            agents = [
                Agent(bus, vendor="example.org", product="scale", instance=str(number), interval=60)
                for number, bus in enumerate(buses)
            ]
            for at in range(0, count, AT_ONCE):
                await asyncio.gather(*(agent.start(60) for agent in agents[at : at + AT_ONCE]))
            for agent in agents:
                stack.push_async_callback(agent.close)
        await until(lambda: not any(agent.connected for agent in agents), timeout=PATIENCE)
        async with Broker(port=port, management=management) as again:
            await until(lambda: all(agent.connected for agent in agents), timeout=PATIENCE)
            counters = again.counters
            assert (counters.connections, counters.failures) == (count, 0)
