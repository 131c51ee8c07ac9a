"""Consoles of a broker with thousands of agents know all of them when they are open."""

from __future__ import annotations

import asyncio

import pytest
from support.crowd import Crowd
from support.scripted_agent import PACKAGE
from support.waiting import until

from qmf.broker import Broker
from qmf.bus import AmqpBus
from qmf.console.aio import Client

pytestmark = [pytest.mark.slow, pytest.mark.soak]

AGENTS = 2000
PER_CONNECTION = 500


@pytest.mark.parametrize("management", [1.0, None], ids=["asked", "no management"])
async def test_objects_of_two_thousand_agents_are_complete_after_opening(management: float | None) -> None:
    """Without management nobody says how many agents there are."""
    async with Broker(port=0, management=management) as broker:
        crowds = [Crowd(AmqpBus(broker.url), PER_CONNECTION, first=at) for at in range(0, AGENTS, PER_CONNECTION)]
        for crowd in crowds:
            await crowd.start()
        try:
            for _ in range(3):
                async with Client(broker.url, timeout=60) as client:
                    assert client.finding_agents is None
                    assert len(client.agents) == AGENTS + (management is not None)
                    found = await client.objects("widget", package=PACKAGE)
                    assert found.failures == {}
                    assert len(found) == AGENTS
        finally:
            for crowd in crowds:
                await crowd.close()


async def test_two_thousand_agents_of_a_process_that_pauses_are_all_known_after_opening() -> None:
    async with Broker(port=0) as broker:
        crowds = [Crowd(AmqpBus(broker.url), PER_CONNECTION, first=at) for at in range(0, AGENTS, PER_CONNECTION)]
        for crowd in crowds:
            await crowd.start()
            crowd.pause(every=PER_CONNECTION // 4)
        client = Client(broker.url, timeout=60)
        opening = asyncio.ensure_future(client.open())
        try:
            for _ in range(3):
                await until(
                    lambda: all(crowd.paused for crowd in crowds) and any(crowd.asked_again for crowd in crowds)
                )
                for crowd in crowds:
                    await crowd.go_on()
            await opening
            assert len(client.agents) == AGENTS
        finally:
            await client.close()
            for crowd in crowds:
                await crowd.close()
