"""Orders: in which order the available entries of a queue are delivered."""

from __future__ import annotations

import abc
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice

from qmf.broker.nodes.entries import AVAILABLE, Entry

#: Entries that are not available any more and may lie between available ones, besides as many as those.
_SLACK = 1_000


class Order(abc.ABC):
    """The available entries of a queue.

    Whoever takes or restores an entry changes its state first.
    """

    @abc.abstractmethod
    def add(self, entry: Entry) -> tuple[Entry, Entry] | None:
        """Add a new entry.

        Returns:
            None; or, if its message replaces an older one, the entries that have the new message and the older one
            now: either `entry` and an older entry, which the caller has to take, or an older entry, which keeps its
            place, and `entry`, which was not added.
        """

    def add_all(self, entries: Sequence[Entry]) -> None:
        """Add new entries, where none is replaced."""
        for entry in entries:
            self.add(entry)

    @abc.abstractmethod
    def restore(self, entry: Entry) -> bool:
        """An entry is available again, at its place; False if a newer one has replaced it: then it is not added."""

    @abc.abstractmethod
    def take(self, entry: Entry) -> None:
        """An entry is not available any more."""

    def take_all(self, entries: Sequence[Entry]) -> None:
        """Entries, mostly the first, are not available any more."""
        for entry in entries:
            self.take(entry)

    @abc.abstractmethod
    def first(self) -> Entry | None:
        """The entry to deliver next, or None."""

    @abc.abstractmethod
    def oldest(self) -> Entry | None:
        """The entry to give up first where there is no room for a new one, or None."""

    @abc.abstractmethod
    def __iter__(self) -> Iterator[Entry]:
        """All entries, in the order of their delivery. The entries must not change meanwhile."""

    @abc.abstractmethod
    def __len__(self) -> int:
        """Number of entries."""

    def __bool__(self) -> bool:
        """True if there are entries."""
        return len(self) > 0

    def on_browsed(self, entry: Entry) -> None:  # noqa: B027 - most orders need nothing
        """A browser has read an entry."""

    def is_current(self, entry: Entry) -> bool:  # noqa: ARG002
        """False for an entry that browsers leave out, because there is a newer one for the same key."""
        return True

    def on_delivered(self, entry: Entry) -> None:  # noqa: B027
        """An entry is about to be delivered, and not only removed."""


class FifoOrder(Order):
    """First in, first out. An entry that comes back has its old place again."""

    __slots__ = ("_available", "_entries")

    def __init__(self) -> None:
        #: By position. Entries that are not available any more are removed once they are the first, or are too many.
        self._entries: deque[Entry] = deque()
        self._available = 0

    def add(self, entry: Entry) -> tuple[Entry, Entry] | None:
        """See `Order`: nothing is replaced, but by subclasses."""
        entry.linked = True
        self._entries.append(entry)
        self._available += 1
        return None

    def add_all(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            entry.linked = True
        self._entries.extend(entries)
        self._available += len(entries)

    def front(self, most: int) -> list[Entry]:
        """The first entries that are available."""
        if self.first() is None:
            return []
        if self._available == len(self._entries):
            return list(islice(self._entries, most))
        return list(islice(self, most))

    def take_all(self, entries: Sequence[Entry]) -> None:
        self._available -= len(entries)
        self.first()  # drops them where they are the first
        if len(self._entries) > 2 * self._available + _SLACK:
            self._compact()

    def restore(self, entry: Entry) -> bool:
        self._available += 1
        if not entry.linked:
            entries, position = self._entries, entry.position
            entry.linked = True
            if not entries or position < entries[0].position:
                entries.appendleft(entry)
            else:
                entries.insert(bisect_left(entries, position, key=_position), entry)
        return True

    def take(self, entry: Entry) -> None:
        self._available -= 1
        entries = self._entries
        if entries[0] is entry:
            entries.popleft()
            entry.linked = False
        elif len(entries) > 2 * self._available + _SLACK:
            self._compact()

    def first(self) -> Entry | None:
        entries = self._entries
        while entries:
            entry = entries[0]
            if entry.state is AVAILABLE:
                return entry
            entries.popleft()
            entry.linked = False
        return None

    oldest = first

    def __iter__(self) -> Iterator[Entry]:
        return (entry for entry in self._entries if entry.state is AVAILABLE)

    def __len__(self) -> int:
        return self._available

    def __bool__(self) -> bool:
        return self._available > 0

    def _compact(self) -> None:
        kept: deque[Entry] = deque()
        for entry in self._entries:
            if entry.state is AVAILABLE:
                kept.append(entry)
            else:
                entry.linked = False
        self._entries = kept


def _position(entry: Entry) -> int:
    return entry.position
