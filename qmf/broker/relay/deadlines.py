"""Which messages of a transmission queue have waited too long."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable, Sequence

from qmf.broker.nodes.entries import AVAILABLE, GONE, Entry, EntryObserver
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.relay_addresses import RELAY_UNTIL, relay_annotations

#: Seconds from one look to the next one, at least; messages that end close together are looked at together.
_LEAST = 0.05
#: And at most: the clock of the machine may be set meanwhile.
_MOST = 60.0


class Deadlines(EntryObserver):
    """The times until which the messages of a queue may wait. It observes the queue from `start` to `stop`."""

    def __init__(
        self,
        queue: Queue,
        on_late: Callable[[Sequence[Entry]], None],
        is_doubtful: Callable[[Entry], bool] = lambda _: False,
    ) -> None:
        """Make the deadlines of a queue.

        Args:
            on_late: called with entries whose time is over, and that are available or doubtful; those that it leaves in
                the queue are reported again.
            is_doubtful: tells which acquired entries nobody waits for any more.
        """
        self._queue = queue
        self._on_late = on_late
        self._is_doubtful = is_doubtful
        self._heap: list[tuple[float, int, Entry]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """Look at what waits, and at what comes."""
        for entry in self._queue.contents.waiting():
            self.on_enqueued(entry)
        self._queue.contents.observers.add(self)

    def stop(self) -> None:
        """Look at nothing any more."""
        self._queue.contents.observers.remove(self)
        if self._timer is not None:
            self._timer.cancel()

    def on_enqueued(self, entry: Entry) -> None:
        until = relay_annotations(entry.message).get(RELAY_UNTIL)
        if isinstance(until, int):
            heapq.heappush(self._heap, (until / 1000, id(entry), entry))
            if self._heap[0][2] is entry:
                self._set_timer()

    def _set_timer(self, least: float = _LEAST) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        while self._heap and self._heap[0][2].state is GONE:
            heapq.heappop(self._heap)
        if self._heap:
            wait = min(max(self._heap[0][0] - time.time(), least), _MOST)
            self._timer = self._loop.call_later(wait, self._look)

    def _look(self) -> None:
        self._timer = None
        now = time.time()
        late: list[tuple[float, int, Entry]] = []
        while self._heap and self._heap[0][0] <= now:
            item = heapq.heappop(self._heap)
            if item[2].state is not GONE:
                late.append(item)
        # One that is in flight may come back; it is looked at again.
        if waiting := [entry for _, _, entry in late if entry.state is AVAILABLE or self._is_doubtful(entry)]:
            self._on_late(waiting)
        for item in late:
            if item[2].state is not GONE:
                heapq.heappush(self._heap, item)
        self._set_timer(1.0 if late else _LEAST)
