"""The thread that runs a console's callbacks: one at a time, in order, away from the event loop.

So a callback may take its time and may call back into the session. The queue is bounded by dropping what loses value
with age; what a program must not miss, such as the answer to its own call, is never dropped.
"""

from __future__ import annotations

import collections
import logging
import threading
from collections.abc import Callable

log = logging.getLogger("qmf.console")

#: Callbacks that may wait before droppable ones are dropped: some seconds of a busy broker, some tens of MB.
LIMIT = 10_000

#: Callbacks that are taken at a time.
BATCH = 100

#: Callbacks that the next publication makes up for, or that are too many to keep them all.
DROPPABLE = frozenset({"objectProps", "objectStats", "event", "heartbeat"})


class CallbackDispatcher:
    """Runs callbacks on one daemon thread, started by the first one."""

    def __init__(self, name: str, limit: int = LIMIT) -> None:
        self._name = name
        self._limit = limit
        self._queue: collections.deque[tuple[str, Callable[[], object]]] = collections.deque()
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._idle = False
        self._taken = 0
        self._gap = 0
        self.dropped = 0
        """Callbacks dropped so far."""

    def put(self, name: str, callback: Callable[[], object]) -> None:
        """Have a callback run; `name` is the console's method, for messages and for what may be dropped."""
        with self._wake:
            if self._closing:
                return
            if len(self._queue) + self._taken >= self._limit and name in DROPPABLE:
                self._gap += 1
                self.dropped += 1
                return
            self._tell_gap()
            self._queue.append((name, callback))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            if self._idle:
                self._wake.notify()

    def close(self) -> None:
        """Run what is queued, then end the thread. Called from a callback, it doesn't wait."""
        with self._wake:
            self._closing = True
            self._tell_gap()
            thread = self._thread
            self._wake.notify()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def open(self) -> None:
        """Take callbacks again after a `close`; in a callback, its own thread goes on."""
        with self._wake:
            self._closing = False

    def _tell_gap(self) -> None:
        if self._gap:
            log.warning("callbacks are too slow: %d updates were dropped", self._gap)
            self._gap = 0

    def _run(self) -> None:
        while batch := self._take():
            for name, callback in batch:
                self._taken -= 1
                try:
                    callback()
                except BaseException:
                    # SystemExit, too: it would end this thread, and with it all callbacks, in silence.
                    log.exception("callback %s failed", name)

    def _take(self) -> list[tuple[str, Callable[[], object]]]:
        """Some callbacks that wait, in order: one turn with the lock for many. None when it is closed."""
        with self._wake:
            while not self._queue:
                if self._closing:
                    self._thread = None
                    return []
                self._idle = True
                self._wake.wait()
                self._idle = False
            batch = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
            self._taken = len(batch)
            return batch
