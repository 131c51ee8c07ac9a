"""Agents that come back all at once to a broker that was restarted: each by one attempt."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.waiting import until

from qmf.agent import Agent
from qmf.broker import Broker
from qmf.bus import AmqpBus
from qmf.bus.backoff import Backoff

#: Seconds in which the last of them has to be back: so that a hang ends, not how fast it is. How fast is measured by
#: `bench/broker_returns.py`.
PATIENCE = 1200.0
#: The agents of the large case, in a process of their own.
CROWD = Path(__file__).resolve().parents[2] / "bench" / "scale_agents.py"

with_and_without_management = pytest.mark.parametrize("management", [None, 10.0], ids=["alone", "management"])


@pytest.fixture
def many_files() -> Iterator[None]:
    """Each connection is an open file at both ends."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.slow
@with_and_without_management
async def test_nobody_has_to_try_twice(management: float | None) -> None:
    count = 20
    async with contextlib.AsyncExitStack() as stack:
        async with Broker(port=0, management=management) as broker:
            port = broker.port
            waits = Backoff(first=0.01, limit=0.5)
            buses = [AmqpBus(f"amqp://127.0.0.1:{port}", backoff=waits) for _ in range(count)]
            agents = [
                Agent(bus, vendor="example.org", product="scale", instance=str(number), interval=60)
                for number, bus in enumerate(buses)
            ]
            await asyncio.gather(*(agent.start(60) for agent in agents))
            for agent in agents:
                stack.push_async_callback(agent.close)
        await until(lambda: not any(agent.connected for agent in agents))
        async with Broker(port=port, management=management) as again:
            await until(lambda: all(agent.connected for agent in agents))
            counters = again.counters
            assert (counters.connections, counters.failures) == (count, 0)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.usefixtures("many_files")
@with_and_without_management
async def test_thousands_in_one_process_come_back_with_the_usual_limits(management: float | None) -> None:
    count = 4_000
    async with Broker(port=0, management=management) as broker:
        crowd = await asyncio.create_subprocess_exec(
            sys.executable,
            str(CROWD),
            broker.url,
            str(count),
            "60",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        port = broker.port
        assert await _line(crowd) == "ready"
    try:
        assert await _line(crowd, "lost") == "lost"
        async with Broker(port=port, management=management) as again:
            assert await _line(crowd, "back") == "back"
            assert again.connections == count
            # Where the machine has so much to do that the last ones give up, they begin again, but few of them.
            assert again.counters.connections < 1.5 * count
    finally:
        crowd.kill()
        await crowd.wait()


async def _line(crowd: asyncio.subprocess.Process, wanted: str = "") -> str:
    """The next line of the agents, after they were asked for it."""
    assert crowd.stdin is not None
    assert crowd.stdout is not None
    if wanted:
        crowd.stdin.write(f"{wanted}\n".encode())
    async with asyncio.timeout(PATIENCE):
        return (await crowd.stdout.readline()).decode().strip()
