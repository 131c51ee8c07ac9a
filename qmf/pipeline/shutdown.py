"""Ending a job that runs until a signal ends it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
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


def repeat_until_stopped(step: Callable[[], object], *, every: float, once: bool = False) -> None:
    """Call a function again and again, until SIGTERM or SIGINT. For the main thread.

    Args:
        step: does a piece of work, which a signal doesn't interrupt.
        every: seconds from the start of a call to the start of the next one.
        once: call it once only.
    """
    with stop_on_signals() as stop:
        while not stop.is_set():
            started = time.monotonic()
            step()
            if once or stop.wait(max(0.0, every - (time.monotonic() - started))):
                break
