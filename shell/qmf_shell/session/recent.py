"""The events received in this session: the last of them, and waiting for more.

Filled by a callback thread, read by commands.
"""

from __future__ import annotations

import collections
import itertools
import threading
import time
from collections.abc import Iterator

from qmf_shell.session.backend import EventRecord

#: Events kept. An event is about a kilobyte, so a storm costs a few megabytes at most.
KEPT = 1000


class RecentEvents:
    """The last events, oldest first.

    Attributes:
        since: seconds since 1970 when collecting began.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self.since = time.time()
        self._changed = threading.Condition()
        self._events: collections.deque[EventRecord] = collections.deque(maxlen=kept)
        self._total = 0

    @property
    def total(self) -> int:
        """How many events were received, those no longer kept included."""
        return self._total

    def add(self, event: EventRecord) -> None:
        """Append an event; the oldest leaves when the ring is full."""
        with self._changed:
            self._events.append(event)
            self._total += 1
            self._changed.notify_all()

    def recent(self) -> tuple[EventRecord, ...]:
        """The events kept, oldest first."""
        with self._changed:
            return tuple(self._events)

    def follow(self) -> Iterator[EventRecord]:
        """Events from now on, for ever; blocks between them. A reader slower than the ring misses the oldest."""
        seen = self._total
        while True:
            with self._changed:
                self._changed.wait_for(lambda before=seen: self._total > before)  # type: ignore[misc]
                fresh = min(self._total - seen, len(self._events))
                new = list(itertools.islice(self._events, len(self._events) - fresh, None))
                seen = self._total
            yield from new
