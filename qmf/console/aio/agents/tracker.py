"""The agent tracker: the registry with a clock. It removes silent agents, and waits for answers to locate requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from qmf.console.aio.agents.registry import AgentChange, AgentChangeKind, AgentRegistry
from qmf.protocol import AgentInfo

#: Shortest time without a new agent, in seconds, after which all agents are assumed to have answered.
QUIET = 0.05


class AgentTracker:
    """Keeps an `AgentRegistry` up to date and reports its changes."""

    def __init__(self, on_change: Callable[[AgentChange], None], *, ageing: bool) -> None:
        self.agents = AgentRegistry()
        self._on_change = on_change
        self._ageing = ageing
        self._timer: asyncio.TimerHandle | None = None
        self._new_agent = asyncio.Event()
        #: Names of the agents that announced themselves; one that is only mentioned, by an event, has still to answer.
        self._announced: set[str] = set()

    def mentioned(self, name: str) -> None:
        """A message names an agent as its sender."""
        self._report(self.agents.mentioned(name, _now()))

    def announced(self, info: AgentInfo, *, connected: bool = False) -> None:
        """An agent announced itself; `connected` when only the connected broker's agent could."""
        self._report(self.agents.announced(info, _now(), connected=connected))
        if info.name not in self._announced and self.agents.get(info.name) is not None:
            self._announced.add(info.name)
            self._new_agent.set()

    def cut(self) -> None:
        """The connection was lost, and with it every agent."""
        self._announced.clear()
        for change in self.agents.cut(_now()):
            self._report(change)

    def close(self) -> None:
        """Stop the clock."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def settle(self, limit: float) -> None:
        """Wait until the agents have answered a locate request.

        No message marks the end of the answers (QMF2.md 4.2). So this waits until no new agent has answered for as
        long as the first took, and `limit` seconds at most.
        """
        start = _now()
        try:
            async with asyncio.timeout(limit):
                if not self._announced:
                    self._new_agent.clear()
                    await self._new_agent.wait()
                quiet = max(_now() - start, QUIET)
                while await self._another(quiet):
                    pass
        except TimeoutError:
            return

    async def _another(self, seconds: float) -> bool:
        """True when a new agent was found within so many seconds."""
        self._new_agent.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._new_agent.wait()
        except TimeoutError:
            return False
        return True

    def _report(self, change: AgentChange | None) -> None:
        if change is not None:
            if change.kind is AgentChangeKind.REMOVED:
                self._announced.discard(change.agent.name)
            self._on_change(change)
        if self._ageing and self._timer is None:
            self._arm()

    def _arm(self) -> None:
        due = self.agents.next_check()
        if due is not None:
            loop = asyncio.get_running_loop()
            # An agent found later that may be silent for less time is removed at most this much too late.
            self._timer = loop.call_at(min(due, _now() + 5.0) + 0.01, self._check)

    def _check(self) -> None:
        self._timer = None
        for change in self.agents.silent(_now()):
            self._report(change)
        if self._timer is None:
            self._arm()


def _now() -> float:
    return asyncio.get_running_loop().time()
