"""Waiting for conditions instead of sleeping: a test goes on at once, and its failure names what did not come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: Seconds between two looks at a condition.
PAUSE = 0.001


async def until(condition: Callable[[], T], what: str | Callable[[], str] = "the condition", timeout: float = 5.0) -> T:
    """Wait until a condition is true, and look at it again and again.

    Args:
        condition: true once the result counts as true; must not block.
        what: what is waited for, for the error; or a function that returns it.
        timeout: seconds to wait at most.

    Returns:
        what the condition returned.

    Raises:
        AssertionError: not true in time.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    turns = 0
    while not (result := condition()):
        if loop.time() >= deadline:
            raise AssertionError(f"not within {timeout:g} s: {what if isinstance(what, str) else what()}")
        # Most conditions come true after some turns of the loop: no need to let the system's clock into it.
        await asyncio.sleep(0 if turns < 100 else PAUSE)
        turns += 1
    return result
