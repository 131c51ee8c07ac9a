"""An event loop whose wait is a gate: while it is open, another thread may do what a callback of the loop would do.

It is for the background thread of a synchronous API: a program's thread that sends need not wake up the loop's for it.
A thread that the loop wakes up finds the interpreter free and the gate open, for its signal is given when the loop
begins to wait. One socket is read by the wait itself.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections import deque
from collections.abc import Callable
from typing import Protocol

from qmf.bus.gate import LEFT, READ, Gate, has_gates, new_gate

#: Events of epoll, of which each of the two says nothing about the other direction.
_IN, _OUT = 1, 4


class SocketReader(Protocol):
    """What is done with a socket that the wait reads.

    Attributes:
        descriptor: of the socket.
    """

    descriptor: int

    def buffer(self) -> memoryview:
        """Where to read to."""

    def on_read(self, size: int) -> None:
        """So many bytes were read; 0 at the end of the stream, or if reading failed."""

    def on_left(self) -> None:
        """Another thread has left something for the loop."""

    def give_back(self) -> None:
        """The wait does not read it any more."""


class _GatedSelector(selectors.DefaultSelector):
    """The selector of a loop, with its gate.

    Attributes:
        gate: of the loop.
        posted: what the loop has to call.
        reader: of the socket that the wait reads, or None.
        loop: set before the first `select`.
    """

    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        super().__init__()
        self.posted: deque[Callable[[], object]] = deque()
        self.gate: Gate = new_gate(self.fileno(), self.posted)
        self.reader: SocketReader | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """See `selectors`."""
        milliseconds = -1 if timeout is None else math.ceil(timeout * 1000) if timeout > 0 else 0
        if self.posted:
            self._call_posted()
            milliseconds = 0  # these may have given the loop work
        reader = self.reader
        if reader is None:
            found = self.gate.wait(milliseconds, -1, None)
        else:
            found = self.gate.wait(milliseconds, reader.descriptor, reader.buffer())
        ready: list[tuple[selectors.SelectorKey, int]] = []
        for descriptor, what in found:
            if descriptor == READ:
                if reader is not None and reader is self.reader:
                    reader.on_read(what)
            elif descriptor == LEFT:
                if self.reader is not None:
                    self.reader.on_left()
            else:
                self._add(ready, descriptor, what)
        if self.posted:
            self._call_posted()
        return ready

    def close(self) -> None:
        """See `selectors`."""
        self.gate.close()
        super().close()

    def _call_posted(self) -> None:
        posted = self.posted
        for _ in range(len(posted)):
            callback = posted.popleft()
            try:
                callback()
            except Exception as error:  # noqa: BLE001 - as the loop does with callbacks
                self.loop.call_exception_handler({"message": f"error in {callback!r}", "exception": error})

    def _add(self, ready: list[tuple[selectors.SelectorKey, int]], descriptor: int, what: int) -> None:
        """Note what can be done with a descriptor, as other selectors do."""
        key = self.get_map().get(descriptor)
        if key is not None:
            events = (selectors.EVENT_READ if what & ~_OUT else 0) | (selectors.EVENT_WRITE if what & ~_IN else 0)
            ready.append((key, events & key.events))


class GatedLoop(asyncio.SelectorEventLoop):
    """An event loop with a gate; see above.

    Attributes:
        gate: of the loop.
    """

    def __init__(self) -> None:
        self._gated = _GatedSelector()
        self._gated.loop = self
        self.gate = self._gated.gate
        super().__init__(self._gated)

    def post(self, callback: Callable[[], object]) -> None:
        """Call something on the loop's thread soon; on any thread, and cheaper than `call_soon_threadsafe`.

        Raises:
            RuntimeError: the loop is closed.
        """
        if self.is_closed():
            raise RuntimeError("the loop is closed")
        self._gated.posted.append(callback)
        self.gate.wake()

    @property
    def reader(self) -> SocketReader | None:
        """Of the socket that the wait reads, or None."""
        return self._gated.reader

    def read_by(self, reader: SocketReader) -> None:
        """Have the wait read a socket; not the one before any more."""
        if self._gated.reader is not None:
            self._gated.reader.give_back()
        self.gate.watch(reader.descriptor)
        self._gated.reader = reader

    def stop_reading(self, reader: SocketReader) -> bool:
        """Undo `read_by`; before the socket is closed. True if another thread will close the descriptor."""
        if self._gated.reader is not reader:
            return False
        self._gated.reader = None
        return self.gate.unwatch(reader.descriptor)


def new_gated_loop() -> GatedLoop | None:
    """A loop with a gate; None where loops cannot have one."""
    return GatedLoop() if has_gates() else None
