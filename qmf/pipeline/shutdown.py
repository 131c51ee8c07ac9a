"""Ending a job that runs until a signal ends it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """An event that SIGTERM and SIGINT set, until the block ends. For the main thread."""
    stop = threading.Event()

    def handle(*_: object) -> None:
        # Not `stop.set()` itself: a handler runs in the main thread, which may hold the event's lock at that moment,
        # inside `stop.wait`, and would deadlock.
        threading.Thread(target=stop.set, name="stop").start()

    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
