"""What `scale.py` measures a step of: the processes that take part, their processor time, the clock and memory."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping

import attrs
import psutil
from figures import Figure, note
from processes import Program


@attrs.frozen
class Step:
    """What one step cost.

    Attributes:
        name: what was done.
        size: of what the row varies.
        processor: seconds of processor time by part.
        wall: seconds.
        memory: MB that were added, of all parts.
        more: figures beside these.
    """

    name: str
    size: int
    processor: Mapping[str, float]
    wall: float
    memory: float
    more: tuple[Figure, ...] = ()

    @property
    def total(self) -> float:
        """Seconds of processor time of all parts."""
        return sum(self.processor.values())


class Meter:
    """Measures steps of some processes, and of this one as the console."""

    def __init__(self, size: int, **parts: Program) -> None:
        self._size = size
        self._parts = parts
        self._own = psutil.Process()
        self.steps: list[Step] = []

    def add(self, name: str, part: Program) -> None:
        """Measure this process from now on."""
        self._parts[name] = part

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure what the block does."""
        used, memory, began = self._used(), self._memory(), time.perf_counter()
        yield
        wall = time.perf_counter() - began
        spent = {part: value - used.get(part, 0.0) for part, value in self._used().items()}
        step = Step(name, self._size, spent, wall, self._memory() - memory)
        self.steps.append(step)
        parts = ", ".join(f"{part} {value:.2f}" for part, value in spent.items())
        note(f"{name}, {self._size:,}: {step.total:.2f} s ({parts}), {wall:.2f} s by the clock, {step.memory:+.1f} MB")

    def _used(self) -> dict[str, float]:
        return {**{name: part.cpu() for name, part in self._parts.items()}, "here": time.process_time()}

    def _memory(self) -> float:
        return sum(part.memory() for part in self._parts.values()) + self._own.memory_info().rss / 1e6


def expect(actual: object, expected: object, what: str) -> None:
    """End the program unless a step gave what it has to give."""
    if actual != expected:
        sys.exit(f"{what}: {actual} instead of {expected}")
