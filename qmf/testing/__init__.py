"""For tests of programs that use this project: no broker, no network, no waiting for intervals.

* `MemoryExchange` and `MemoryBus`: a bus in memory. Agents and clients take a bus in place of a URL.
* `Recorder`: a console that keeps what agents publish, and waits for what shall come.
* `FakeAgent`: an agent that serves objects, methods and events as a test says, and fails on demand.
* `ManualClock`: time for an agent that goes on when the test says so.
* `InThread`: the two of them for tests without an event loop.
* `until`: waits for any condition.

`qmf.testing.fixtures` has fixtures for pytest. docs/agent.md shows how to use all of it.
"""

from __future__ import annotations

from qmf.bus import MemoryBus, MemoryExchange
from qmf.testing.agent import FakeAgent
from qmf.testing.clock import ManualClock
from qmf.testing.recorder import Recorder
from qmf.testing.threads import InThread
from qmf.testing.users import UserBus
from qmf.testing.waiting import until

__all__ = ["FakeAgent", "InThread", "ManualClock", "MemoryBus", "MemoryExchange", "Recorder", "UserBus", "until"]
