"""How much work grows with its input, in executed instructions: the same on each machine, however busy it is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any


def instructions(work: Callable[[], object]) -> int:
    """How many instructions of the interpreter a function takes, with all that it calls; work in C counts nothing."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


async def instructions_of(work: Coroutine[Any, Any, object]) -> int:
    """How many instructions the event loop takes until a coroutine is done, with those of other tasks."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        await work
    finally:
        sys.settrace(before)
    return count


def growth(make: Callable[[int], Callable[[], object]], small: int = 50, factor: int = 8) -> float:
    """How many times as much work it is when there is `factor` times as much of what `make` prepares.

    Args:
        make: prepares so many things, and returns the work.
        small: how many there are at first.
        factor: by how much that grows.
    """
    return instructions(make(small * factor)) / instructions(make(small))
