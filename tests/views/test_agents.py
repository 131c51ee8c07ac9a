"""How agents are, by their heartbeats."""

from __future__ import annotations

import pytest

from qmf.views.agents import AgentHealth, health_by_heartbeat


@pytest.mark.parametrize(
    ("age", "interval", "health"),
    [
        (0.0, 10.0, AgentHealth.ALIVE),
        (15.0, 10.0, AgentHealth.ALIVE),
        (15.1, 10.0, AgentHealth.LATE),
        (1e6, 0.0, AgentHealth.ALIVE),
    ],
)
def test_an_agent_is_late_after_one_and_a_half_intervals(age: float, interval: float, health: AgentHealth) -> None:
    assert health_by_heartbeat(age, interval) is health
