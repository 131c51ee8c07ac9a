"""Waiting for conditions instead of sleeping: a test continues at once, and a failure names the condition."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: Seconds between two tests of a condition that costs nothing, and at most between those of one that costs much.
PAUSE, LONGEST_PAUSE = 0.001, 0.25

#: Seconds of the processor from which on a condition is tested less often, and how many times that the pause is longer.
_COSTLY, _SHARE = 0.001, 3


def pause_after(seconds: float, shortest: float = PAUSE) -> float:
    """How long to wait before a condition is tested again: testing it takes a quarter of the processor at most.

    Args:
        seconds: of the processor that the test took.
        shortest: pause in seconds.

    Returns:
        seconds.
    """
    return min(max(_SHARE * seconds, shortest), LONGEST_PAUSE)


async def until(condition: Callable[[], T], what: str | Callable[[], str] = "the condition", timeout: float = 5.0) -> T:
    """Wait until a condition is true; it is tested again and again, the less often the more that costs.

    Args:
        condition: called until its result is true; must not block.
        what: what is expected, for the error message; or a function that returns it.
        timeout: seconds to wait at most.

    Returns:
        the result of the condition.

    Raises:
        AssertionError: not true in time.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    turns = 0
    while True:
        before = time.process_time()
        if result := condition():
            return result
        cost = time.process_time() - before
        if loop.time() >= deadline:
            raise AssertionError(f"not within {timeout:g} s: {what if isinstance(what, str) else what()}")
        # Most conditions come true after some turns of the loop, without real waiting.
        await asyncio.sleep(0 if turns < 100 and cost < _COSTLY else pause_after(cost))
        turns += 1
