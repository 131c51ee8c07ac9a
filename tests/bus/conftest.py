"""The bus is tested on asyncio's own event loop and on uvloop's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import uvloop

#: Test modules that open connections.
_ON_BOTH_LOOPS = {
    "test_base_conformance.py",
    "test_amqp_bus.py",
    "test_network_connection.py",
    "test_amqp_bus_leaks.py",
    "test_failures.py",
}


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loops on which a test runs."""
    loops: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    if item.path.name in _ON_BOTH_LOOPS:
        loops["uvloop"] = uvloop.new_event_loop
    return loops
