"""Fixtures for pytest. They are not registered automatically; import them in a ``conftest.py``::

from qmf.testing.fixtures import qmf_clock, qmf_exchange, qmf_memory_broker, qmf_recorder
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from qmf.bus import MemoryExchange
from qmf.testing.in_thread import InThread
from qmf.testing.manual_clock import ManualClock
from qmf.testing.memory_broker import MemoryBroker
from qmf.testing.recorder import Recorder


@pytest.fixture
def qmf_exchange() -> MemoryExchange:
    """A memory exchange, which connects the buses of one test."""
    return MemoryExchange()


@pytest.fixture
def qmf_memory_broker() -> Iterator[MemoryBroker]:
    """A broker for messaging within the process; it ends with the test."""
    with MemoryBroker() as broker:
        yield broker


@pytest.fixture
def qmf_clock() -> ManualClock:
    """A clock whose time only the test advances."""
    return ManualClock()


@pytest.fixture
def qmf_recorder(qmf_exchange: MemoryExchange) -> Iterator[InThread[Recorder]]:
    """A recorder on `qmf_exchange` in a thread, for tests without an event loop."""
    with InThread(lambda: Recorder(qmf_exchange)) as recorder:
        yield recorder
