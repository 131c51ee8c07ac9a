"""The overview takes as much work for each agent, however many there are, and so do its rows."""

from __future__ import annotations

import time
from collections.abc import Callable

from support.growth import growth
from web.pages.world import World

from qmf.console.aio import Agent, AgentAdded
from qmf.protocol import AgentInfo
from qmf.web.pages.views.overview import agent_rows, overview

#: A little more than eight times the work of an eighth: sorting.
MOST = 9.0


def _agent(number: int) -> Agent:
    return Agent(AgentInfo(name=f"example.org:crowd:{number:05}", epoch=1, heartbeat_interval=10))


async def test_agents(opened: World) -> None:
    site = opened.site

    def prepare(count: int) -> Callable[[], object]:
        def work() -> None:
            now = time.time()
            for number in range(count):
                site.agents.notice(AgentAdded(_agent(number)), now)
            agent_rows(site, site.agents.names(), now)
            overview(site, now, count)

        return work

    assert growth(prepare) < MOST
