"""For tests of programs that use this project: no broker, no network, no waiting for intervals.

* `MemoryExchange` and `MemoryBus`: a bus in memory. Agents and clients accept a bus in place of a URL.
* `Recorder`: a console that records what agents publish, and waits for expected publications.
* `FakeAgent`: an agent with objects, methods and events that the test defines; it fails on demand.
* `ManualClock`: a clock for agents, whose time the test advances.
* `MemoryBroker`: a broker for tests of programs that use `qmf.messaging`, and connections to it.
* `InThread`: a recorder or fake agent in a thread, for tests without an event loop.
* `until`: waits for any condition.

`qmf.testing.fixtures` has fixtures for pytest. docs/agent.md shows how to use them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmf._lazy import lazy_exports
from qmf.bus import MemoryBus, MemoryExchange
from qmf.testing.fake_agent import FakeAgent
from qmf.testing.in_thread import InThread
from qmf.testing.manual_clock import ManualClock
from qmf.testing.recorder import Recorder
from qmf.testing.user_bus import UserBus
from qmf.testing.waiting import until

if TYPE_CHECKING:
    from qmf.testing.memory_broker import MemoryBroker
else:
    __getattr__, __dir__ = lazy_exports(__name__, {"qmf.testing.memory_broker": "MemoryBroker"})

__all__ = [
    "FakeAgent",
    "InThread",
    "ManualClock",
    "MemoryBroker",
    "MemoryBus",
    "MemoryExchange",
    "Recorder",
    "UserBus",
    "until",
]
