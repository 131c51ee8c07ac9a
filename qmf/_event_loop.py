"""The event loop of our commands and background threads: uvloop's where it is installed, else asyncio's own.

uvloop comes with the extra `speed`. Programs that run a loop themselves choose it themselves.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Collection, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A new event loop."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def run(work: Coroutine[Any, Any, T], special: Callable[[], asyncio.AbstractEventLoop | None] = lambda: None) -> T:
    """`asyncio.run` on such a loop, or on the one that `special` makes."""
    with asyncio.Runner(loop_factory=lambda: special() or new_event_loop()) as runner:
        return runner.run(work)


def on_end_signals(callback: Callable[[], object]) -> AbstractContextManager[None]:
    """Call `callback` on the running loop for SIGINT and SIGTERM; see `on_signals`."""
    return on_signals((signal.SIGINT, signal.SIGTERM), callback)


@contextmanager
def on_signals(numbers: Collection[signal.Signals], callback: Callable[[], object]) -> Iterator[None]:
    """Call `callback` on the running loop for some signals.

    Afterwards they have Python's handlers again: a loop of uvloop would leave its own, which do nothing once the loop
    is closed, so that Ctrl-C had no effect any more.
    """
    loop = asyncio.get_running_loop()
    for number in numbers:
        loop.add_signal_handler(number, callback)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
