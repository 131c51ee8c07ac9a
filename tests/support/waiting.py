"""Waiting for conditions, in coroutines and in threads. Tests wait for what they mean, never for time to pass."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from qmf import testing
from qmf.testing.waiting import pause_after

#: Seconds that anything may take before a test fails. Far above what is needed, for slow machines.
WAIT_LIMIT = 30.0


async def until(
    condition: Callable[[], object], what: str | Callable[[], str] = "the condition", timeout: float = WAIT_LIMIT
) -> None:
    """`qmf.testing.until` with the patience of this suite."""
    await testing.until(condition, what, timeout)


def wait_until(condition: Callable[[], object], what: str = "the condition", timeout: float = WAIT_LIMIT) -> None:
    """Block this thread until `condition()` is true; `what` names what is waited for, for the error."""
    deadline = time.monotonic() + timeout
    pause = threading.Event()
    while True:
        before = time.process_time()
        if condition():
            return
        cost = time.process_time() - before
        assert time.monotonic() < deadline, f"not within {timeout:g} s: {what}"
        pause.wait(pause_after(cost, 0.005))
