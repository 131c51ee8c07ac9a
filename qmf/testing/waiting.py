"""Waiting for conditions instead of sleeping: a test continues at once, and a failure names the condition."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: Seconds between two tests of a condition.
PAUSE = 0.001


async def until(condition: Callable[[], T], what: str | Callable[[], str] = "the condition", timeout: float = 5.0) -> T:
    """Wait until a condition is true; it is tested again and again.

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
    while not (result := condition()):
        if loop.time() >= deadline:
            raise AssertionError(f"not within {timeout:g} s: {what if isinstance(what, str) else what()}")
        # Most conditions come true after some turns of the loop, without real waiting.
        await asyncio.sleep(0 if turns < 100 else PAUSE)
        turns += 1
    return result
