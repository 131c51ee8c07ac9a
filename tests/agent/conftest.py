"""An agent on a fake bus."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from agent.fakes import FakeBus, FakeClock

from qmf.agent import Agent


@pytest.fixture
def bus() -> FakeBus:
    return FakeBus()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def agent(bus: FakeBus, clock: FakeClock) -> AsyncIterator[Agent]:
    """A started agent; the messages of the start are taken away."""
    agent = Agent(
        bus, vendor="example.org", product="stock", instance="one", epoch=3, clock=clock, attributes={"site": "lab"}
    )
    await agent.start()
    bus.take()
    yield agent
    await agent.close()
