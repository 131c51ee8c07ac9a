"""Consoles of a broker with thousands of agents know all of them when they are open."""

from __future__ import annotations

import pytest
from support.crowd import Crowd
from support.scripted_agent import PACKAGE

from qmf.broker import Broker
from qmf.bus import AmqpBus
from qmf.console.aio import Client

pytestmark = [pytest.mark.slow, pytest.mark.soak]

AGENTS = 2000
PER_CONNECTION = 500


async def test_objects_of_two_thousand_agents_are_complete_after_opening() -> None:
    async with Broker(port=0, management=1.0) as broker:
        crowds = [Crowd(AmqpBus(broker.url), PER_CONNECTION, first=at) for at in range(0, AGENTS, PER_CONNECTION)]
        for crowd in crowds:
            await crowd.start()
        try:
            for _ in range(3):
                async with Client(broker.url, timeout=60) as client:
                    assert client.finding_agents is None
                    assert len(client.agents) == AGENTS + 1
                    found = await client.objects("widget", package=PACKAGE)
                    assert found.failures == {}
                    assert len(found) == AGENTS
        finally:
            for crowd in crowds:
                await crowd.close()
