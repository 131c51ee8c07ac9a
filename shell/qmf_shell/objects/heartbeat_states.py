"""How the agents are, by their heartbeats."""

from __future__ import annotations

import time

import attrs

from qmf.views.agents import AgentHealth, health_by_heartbeat
from qmf_shell.session.backend import AgentRecord, HeartbeatRecord
from qmf_shell.session.context import Context


@attrs.frozen
class HeartbeatState:
    """The state of an agent.

    Attributes:
        agent, broker: its name, and the URL of its broker.
        state: ``alive``, ``late``, ``gone`` or ``no heartbeat yet``.
        interval: seconds between heartbeats; 0 if unknown.
        last: the latest heartbeat, or None.
        age: nanoseconds since then.
        count: how many were received.
    """

    agent: str
    broker: str
    state: str
    interval: float
    last: HeartbeatRecord | None = None
    age: int = 0
    count: int = 0


def heartbeat_states(context: Context, agents: list[AgentRecord], wanted: str = "") -> list[HeartbeatState]:
    """The states of the agents that are alive, then of those that are gone.

    Args:
        wanted: only agents whose name contains this, in lower case.
    """
    now = time.time_ns()
    latest = dict(context.heartbeats.latest())
    states: list[HeartbeatState] = []
    for agent in agents:
        found = latest.pop((agent.name, agent.broker), None)
        if found is None:
            states.append(HeartbeatState(agent.name, agent.broker, AgentHealth.UNKNOWN.value, agent.heartbeat))
            continue
        last, count = found
        age = max(0, now - last.received)
        state = health_by_heartbeat(age / 1e9, agent.heartbeat).value
        states.append(HeartbeatState(agent.name, agent.broker, state, agent.heartbeat, last, age, count))
    for _, (last, count) in sorted(latest.items()):
        age = max(0, now - last.received)
        states.append(HeartbeatState(last.agent, last.broker, AgentHealth.GONE.value, last.interval, last, age, count))
    return [item for item in states if wanted in item.agent.lower()]
