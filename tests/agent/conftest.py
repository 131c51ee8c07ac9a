"""An agent on a fake bus."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from agent.subscribing import Subscriber
from support.fake_bus import FakeBus

from qmf.agent import Agent
from qmf.testing import ManualClock


@pytest.fixture
def bus() -> FakeBus:
    return FakeBus()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def agent(bus: FakeBus, clock: ManualClock) -> AsyncIterator[Agent]:
    """A started agent; the messages of the start are taken away."""
    agent = Agent(
        bus, vendor="example.org", product="stock", instance="one", epoch=3, clock=clock, attributes={"site": "lab"}
    )
    await agent.start()
    bus.take()
    yield agent
    await agent.close()


@pytest.fixture
async def quiet_agent(bus: FakeBus, clock: ManualClock) -> AsyncIterator[Agent]:
    """An agent that publishes nothing by itself while tests last."""
    agent = Agent(bus, vendor="v", product="p", instance="i", epoch=3, clock=clock, interval=1e6)
    await agent.start()
    bus.take()
    yield agent
    await agent.close()


@pytest.fixture
def subscriber(bus: FakeBus, clock: ManualClock) -> Subscriber:
    return Subscriber(bus, clock)
