"""Scripted agents on a memory bus, and sessions on it."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from support.scripted_agent import ScriptedAgent

from qmf.bus import Backoff, Bus, MemoryBus, MemoryExchange
from qmf.console import Console, LoopThread, Object, Session
from qmf.console.broker_options import AddBrokerOptions


class World:
    """Scripted agents on a loop of their own, and sessions on their bus."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.exchange = MemoryExchange()
        self.loop = LoopThread("test-agents")
        self.agents: list[ScriptedAgent] = []
        self.sessions: list[Session] = []
        self.reconnect: list[bool] = []
        self.monkeypatch = monkeypatch

        def make_bus(options: AddBrokerOptions, *, reconnect: bool) -> Bus:
            self.reconnect.append(reconnect)
            return MemoryBus(self.exchange, reconnect=reconnect, backoff=Backoff(first=0.001, limit=0.01))

        monkeypatch.setattr(AddBrokerOptions, "make_bus", make_bus)
        monkeypatch.setattr("qmf.console.broker_connection.FIRST_DELAY", 0.001)

    def agent(self, name: str = "example.org:widgets:1", **options: Any) -> ScriptedAgent:
        async def start() -> ScriptedAgent:
            return await ScriptedAgent(self.exchange, name, **options).start()

        agent = self.loop.run(start())
        self.agents.append(agent)
        return agent

    def session(self, console: Console | None = None, **options: Any) -> Session:
        # Long enough for the agents there are, however busy the machine; no longer where there is none to wait for.
        self.monkeypatch.setattr("qmf.console.broker_connection.SETTLE", 3.0 if self.agents else 0.01)
        self.monkeypatch.setattr("qmf.console.aio.agent_search.QUIET", 0.01 if len(self.agents) < 2 else 0.15)
        session = Session(console, **options)
        self.sessions.append(session)
        return session

    def close(self) -> None:
        for session in self.sessions:
            session.close()
        for agent in self.agents:
            self.loop.run(agent.bus.close())
        self.loop.stop()


def started_since(before: list[threading.Thread]) -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread not in before]


def first(session: Session, **arguments: Any) -> Object:
    return session.getObjects(_class="widget", **arguments)[0]
