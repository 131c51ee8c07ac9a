"""What was heard in this session besides events: heartbeats, and how many objects ended.

Filled by a callback thread, read by commands.
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Iterator, Mapping

from qmf_shell.session.backend import ClassName, HeartbeatRecord

#: Heartbeats kept for whoever follows them; a reader that is slower misses the oldest.
KEPT = 1000


class RecentHeartbeats:
    """The latest heartbeat of each agent, and waiting for more."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._latest: dict[tuple[str, str], HeartbeatRecord] = {}
        self._counts: collections.Counter[tuple[str, str]] = collections.Counter()
        self._recent: collections.deque[HeartbeatRecord] = collections.deque(maxlen=KEPT)
        self._total = 0

    def add(self, heartbeat: HeartbeatRecord) -> None:
        """Take note of one."""
        with self._changed:
            key = (heartbeat.agent, heartbeat.broker)
            self._latest[key] = heartbeat
            self._counts[key] += 1
            self._recent.append(heartbeat)
            self._total += 1
            self._changed.notify_all()

    def latest(self) -> Mapping[tuple[str, str], tuple[HeartbeatRecord, int]]:
        """By agent and broker: the last one, and how many came so far."""
        with self._changed:
            return {key: (item, self._counts[key]) for key, item in self._latest.items()}

    def follow(self) -> Iterator[HeartbeatRecord]:
        """Heartbeats from now on, for ever; blocks between them."""
        seen = self._total
        while True:
            with self._changed:
                self._changed.wait_for(lambda before=seen: self._total > before)  # type: ignore[misc]
                fresh = min(self._total - seen, len(self._recent))
                new = list(self._recent)[-fresh:]
                seen = self._total
            yield from new


class DeletionCounts:
    """How many objects of each class were seen to end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: collections.Counter[ClassName] = collections.Counter()

    def add(self, name: ClassName) -> None:
        """Count one."""
        with self._lock:
            self._counts[name] += 1

    def of(self, name: ClassName) -> int:
        """How many of this class."""
        with self._lock:
            return self._counts[name]
