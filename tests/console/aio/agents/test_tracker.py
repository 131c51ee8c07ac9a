"""The tracker: agents removed by the clock, and waiting for the first answers."""

from __future__ import annotations

import asyncio

import pytest
from console.aio.agents.infos import NAME, info

from qmf.console.aio.agents.registry import (
    AgentChange,
    AgentChangeKind,
)
from qmf.console.aio.agents.tracker import AgentTracker


async def test_the_tracker_removes_silent_agents_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    changes: list[AgentChange] = []
    tracker = AgentTracker(changes.append, ageing=True)
    now = 1000.0
    monkeypatch.setattr("qmf.console.aio.agents.tracker._now", lambda: now)
    tracker.announced(info())
    now += 31
    tracker._check()
    tracker.close()
    assert [item.kind for item in changes] == [AgentChangeKind.ADDED, AgentChangeKind.REMOVED]


async def test_settling_ends_at_the_limit_when_no_agent_answers() -> None:
    tracker = AgentTracker(lambda _: None, ageing=False)
    await tracker.settle(0.01)
    assert len(tracker.agents) == 0


async def test_settling_waits_for_announcements() -> None:
    tracker = AgentTracker(lambda _: None, ageing=False)
    tracker.mentioned(NAME)
    settled = asyncio.ensure_future(tracker.settle(30.0))
    await asyncio.sleep(0)
    assert not settled.done()
    tracker.announced(info())
    async with asyncio.timeout(5.0):
        await settled
    assert [agent.info.epoch for agent in tracker.agents] == [info().epoch]
