"""For tests of programs that use this project: no broker, no network, no waiting for intervals.

* `MemoryExchange` and `MemoryBus`: a bus in memory. Agents and clients accept a bus in place of a URL.
* `Recorder`: a console that records what agents publish, and waits for expected publications.
* `FakeAgent`: an agent with objects, methods and events that the test defines; it fails on demand.
* `ManualClock`: a clock for agents, whose time the test advances.
* `InThread`: a recorder or fake agent in a thread, for tests without an event loop.
* `until`: waits for any condition.

`qmf.testing.fixtures` has fixtures for pytest. docs/agent.md shows how to use them.
"""

from __future__ import annotations

from qmf.bus import MemoryBus, MemoryExchange
from qmf.testing.fake_agent import FakeAgent
from qmf.testing.in_thread import InThread
from qmf.testing.manual_clock import ManualClock
from qmf.testing.recorder import Recorder
from qmf.testing.user_bus import UserBus
from qmf.testing.waiting import until

__all__ = ["FakeAgent", "InThread", "ManualClock", "MemoryBus", "MemoryExchange", "Recorder", "UserBus", "until"]
