"""What was received in this session: the latest events and heartbeats, how many objects were deleted, and which are
lost: their agent is gone, and nobody has reported their end.

Filled by a callback thread, read by commands.
"""

from __future__ import annotations

import collections
import itertools
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

import attrs

from qmf.views.events import EventView, LostEvents
from qmf.views.objects import ObjectIdentity, ObjectKey
from qmf_shell.session.backend import ClassName, HeartbeatRecord
from qmf_shell.session.object_names import class_name

T = TypeVar("T")

#: Items kept. An event takes about a kilobyte, so a burst of them takes a few megabytes at most.
KEPT = 1000


class RecentItems(Generic[T]):
    """The last items that were received, oldest first."""

    def __init__(self, kept: int = KEPT) -> None:
        """Begin without items; `kept`: how many items are kept."""
        self._changed = threading.Condition()
        self._items: collections.deque[T] = collections.deque(maxlen=kept)
        self._total = 0

    @property
    def total(self) -> int:
        """How many items were received, including those that are no longer kept."""
        return self._total

    def add(self, item: T) -> None:
        """Append an item; the oldest one is dropped when there are too many."""
        with self._changed:
            self._items.append(item)
            self._total += 1
            self._changed.notify_all()

    def recent(self) -> tuple[T, ...]:
        """The items kept, oldest first."""
        with self._changed:
            return tuple(self._items)

    def since(self, seen: int) -> tuple[tuple[T, ...], int]:
        """The items kept that came after the first `seen` ones, oldest first, and how many were received by now."""
        with self._changed:
            fresh = min(self._total - seen, len(self._items))
            return tuple(itertools.islice(self._items, len(self._items) - fresh, None)), self._total

    def wait(self, seen: int, seconds: float) -> bool:
        """Wait until more than `seen` items were received; False if there are none after so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._total > seen, max(0.0, seconds))

    def follow(self) -> Iterator[T]:
        """Items from now on, without end; blocks between them. A reader that is too slow misses the oldest ones."""
        seen = self._total
        while True:
            with self._changed:
                self._changed.wait_for(lambda before=seen: self._total > before)  # type: ignore[misc]
            new, seen = self.since(seen)
            yield from new


class RecentEvents(RecentItems[EventView]):
    """The last events, and how many did not arrive before them (`LostEvents`)."""

    def __init__(self, kept: int = KEPT) -> None:
        super().__init__(kept)
        self._own = self._lost = 0

    def add(self, item: EventView) -> None:
        own = item.is_own
        with self._changed:
            self._own += own
            self._lost += isinstance(item, LostEvents)
            super().add(item)

    def count(self, *, everything: bool) -> int:
        """How many events were received; `everything`: with those about what agents and consoles create."""
        with self._changed:
            return self.total - self._lost - (0 if everything else self._own)


class RecentHeartbeats(RecentItems[HeartbeatRecord]):
    """The last heartbeats, and the latest one of each agent."""

    def __init__(self) -> None:
        super().__init__()
        self._latest: dict[tuple[str, str], HeartbeatRecord] = {}
        self._counts: collections.Counter[tuple[str, str]] = collections.Counter()

    def add(self, item: HeartbeatRecord) -> None:
        with self._changed:
            key = (item.agent, item.broker)
            self._latest[key] = item
            self._counts[key] += 1
            super().add(item)

    def latest(self) -> Mapping[tuple[str, str], tuple[HeartbeatRecord, int]]:
        """By agent and broker: the latest heartbeat, and how many were received."""
        with self._changed:
            return {key: (item, self._counts[key]) for key, item in self._latest.items()}


class DeletionCounts:
    """How many objects of each class were deleted while the session lasted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: collections.Counter[tuple[ClassName, bool]] = collections.Counter()

    def add(self, name: ClassName, own: bool = False) -> None:
        """Count one; `own`: it was about what an agent or a console created for itself."""
        with self._lock:
            self._counts[name, own] += 1

    def replace(self, name: ClassName, count: int) -> None:
        """Set the number of a class."""
        with self._lock:
            self._counts[name, False] = count

    def of(self, name: ClassName, *, everything: bool = True) -> int:
        """How many of this class; `everything`: with those that agents and consoles created for themselves."""
        with self._lock:
            return self._counts[name, False] + (self._counts[name, True] if everything else 0)


@attrs.frozen
class LostIdentity:
    """An object whose agent is gone.

    Attributes:
        identity: how it was named.
        created: nanoseconds since 1970; 0 if unknown.
        time: when its agent was found to be gone, in nanoseconds since 1970.
        own: it was about what an agent or a console created for itself.
    """

    identity: ObjectIdentity
    created: int
    time: int
    own: bool = False


class LostIdentities:
    """The lost objects of this session. Filled by a callback thread, read by commands."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lost: dict[ObjectKey, LostIdentity] = {}

    def add(self, found: Iterable[LostIdentity]) -> None:
        """Add objects whose agent is gone now."""
        with self._lock:
            for item in found:
                self._lost.setdefault(item.identity.key, item)

    def agent_found(self, agent: str, broker: str, epoch: int) -> None:
        """An agent is present again: objects that outlive restarts, and those of the same run, are not lost."""
        with self._lock:
            for key in [
                key
                for key in self._lost
                if (key.agent_name, key.broker) == (agent, broker) and key.agent_epoch in (0, epoch)
            ]:
                del self._lost[key]

    def exist(self, keys: Iterable[ObjectKey]) -> None:
        """These objects exist: they are not lost, or not any more."""
        with self._lock:
            if self._lost:
                for key in keys:
                    self._lost.pop(key, None)

    def get(self, key: ObjectKey) -> LostIdentity | None:
        """A lost object, or None."""
        return self._lost.get(key)

    def of(self, names: Collection[ClassName] | None = None, *, everything: bool = True) -> list[LostIdentity]:
        """The lost objects of some classes, or of all; `everything`: with those that tools created for themselves."""
        with self._lock:
            return [
                item
                for item in self._lost.values()
                if (names is None or class_name(item.identity) in names) and (everything or not item.own)
            ]
