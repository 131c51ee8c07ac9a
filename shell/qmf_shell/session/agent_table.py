"""The agents that are present: a change of one costs the same however many there are.

Changed on the loop's thread, read on others.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

import attrs

from qmf_shell.session.backend import AgentRecord


class AgentTable:
    """Agents by name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._agents: dict[str, AgentRecord] = {}
        self._seen: dict[str, int] = {}
        self._sorted: tuple[AgentRecord, ...] | None = ()

    def replace(self, agents: Iterable[AgentRecord]) -> None:
        """These are all agents now."""
        with self._lock:
            self._agents = {item.name: item for item in agents}
            self._sorted = None

    def put(self, agent: AgentRecord) -> None:
        """An agent is present, perhaps again."""
        with self._lock:
            self._agents[agent.name] = agent
            self._sorted = None

    def remove(self, name: str) -> None:
        """An agent is gone."""
        with self._lock:
            if self._agents.pop(name, None) is not None:
                self._sorted = None

    def on_heartbeat(self, name: str, at: int) -> None:
        """The last heartbeat of an agent was received at `at`, in nanoseconds since 1970."""
        with self._lock:
            self._seen[name] = at
            self._sorted = self._sorted if name not in self._agents else None

    def has(self, name: str, epoch: int) -> bool:
        """True if an agent is known in this run of it."""
        agent = self._agents.get(name)
        return agent is not None and agent.epoch == epoch

    def agents(self) -> Sequence[AgentRecord]:
        """The agents by name, with the times of their heartbeats."""
        with self._lock:
            if self._sorted is None:
                names = sorted(self._agents)
                self._sorted = tuple(attrs.evolve(self._agents[name], seen=self._seen.get(name, 0)) for name in names)
            return self._sorted
