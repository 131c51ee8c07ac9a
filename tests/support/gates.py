"""A gate that is held open by a thread which waits at it, as the thread of a loop does."""

from __future__ import annotations

import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from support.waiting import WAIT_LIMIT, wait_until

from qmf.bus.gate import Gate, new_gate


class WaitingThread:
    """A thread that waits at a gate, once; the gate is open when this is made."""

    def __init__(self, gate: Gate, descriptor: int = -1, buffer: memoryview | None = None) -> None:
        self.found: list[tuple[int, int]] | None = None
        self._arguments = gate, descriptor, buffer
        self._thread = threading.Thread(target=self._wait)
        self._thread.start()
        wait_until(lambda: gate.epoch() or self.found is not None)

    def _wait(self) -> None:
        gate, descriptor, buffer = self._arguments
        self.found = gate.wait(-1, descriptor, buffer)

    def end(self) -> list[tuple[int, int]]:
        """What it has found, once something has ended its wait."""
        self._thread.join(WAIT_LIMIT)
        assert self.found is not None
        return self.found


@contextmanager
def gate(posted: list[object]) -> Iterator[Gate]:
    """A gate."""
    with select.epoll() as poll:
        yield new_gate(poll.fileno(), posted)
