"""The callback dispatcher: a thread that runs a console's callbacks, one at a time and in order.

It is not the thread of the event loop, so a callback may block and may call methods of the session. The queue is
bounded: when it is full, callbacks whose information will be superseded are dropped. Results of a program's own calls
are never dropped.
"""

from __future__ import annotations

import collections
import logging
import threading
from collections.abc import Callable

log = logging.getLogger("qmf.console")

#: Callbacks that may wait before some are dropped: some seconds of a busy broker, some tens of MB.
LIMIT = 10_000

#: Callbacks that are removed from the queue at a time.
BATCH = 100

#: Callbacks that may be dropped: the next publication supersedes them, or there are too many to keep all.
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
        self._running = 0
        self._gap = 0
        self.dropped = 0
        """Callbacks dropped so far."""

    def put(self, name: str, callback: Callable[[], object]) -> None:
        """Queue a callback; `name` is the console's method, which decides whether it may be dropped."""
        with self._wake:
            if self._closing:
                return
            if len(self._queue) + self._running >= self._limit and name in DROPPABLE:
                self._gap += 1
                self.dropped += 1
                return
            self._log_gap()
            self._queue.append((name, callback))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            if self._idle:
                self._wake.notify()

    def close(self) -> None:
        """Run the queued callbacks, then end the thread; does not wait when called from a callback."""
        with self._wake:
            self._closing = True
            self._log_gap()
            thread = self._thread
            self._wake.notify()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def open(self) -> None:
        """Accept callbacks again after a `close`; when called from a callback, the same thread continues."""
        with self._wake:
            self._closing = False

    def _log_gap(self) -> None:
        if self._gap:
            log.warning("callbacks are too slow: %d updates were dropped", self._gap)
            self._gap = 0

    def _run(self) -> None:
        while batch := self._take():
            for name, callback in batch:
                self._running -= 1
                try:
                    callback()
                except BaseException:
                    # SystemExit, too: it would end this thread, and all callbacks, without a message.
                    log.exception("callback %s failed", name)

    def _take(self) -> list[tuple[str, Callable[[], object]]]:
        """Remove up to `BATCH` callbacks from the queue, waiting for the first; empty once the dispatcher is closed."""
        with self._wake:
            while not self._queue:
                if self._closing:
                    self._thread = None
                    return []
                self._idle = True
                self._wake.wait()
                self._idle = False
            batch = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
            self._running = len(batch)
            return batch
