"""What is in a queue: its entries, in their order, counted; who comes, waits and receives is not known here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qmf.broker.nodes.counters import BrokerCounters, QueueCounters
from qmf.broker.nodes.delays import Delays
from qmf.broker.nodes.entries import ACQUIRED, AVAILABLE, DELAYED, GONE, DepthObserver, Entry, EntryObserver
from qmf.broker.nodes.last_values import LastValueOrder
from qmf.broker.nodes.memory import MemoryUse
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.orders import FifoOrder, Order
from qmf.broker.nodes.priorities import PriorityOrder
from qmf.broker.nodes.settings import QueueSettings

_UNLIMITED = 1 << 62


class QueueContents:
    """The entries of a queue; the base of `Queue`.

    Attributes:
        name: of the queue.
        settings: of the queue.
        counters: read them, but don't write.
        memory: what all queues hold together; None where that is not limited, or the queue does not count.
        pager: of a queue that flows to disk: stores a message, and returns one that reads its data when it is needed,
            or None if the disk is full.
    """

    def __init__(
        self, name: str, settings: QueueSettings, broker_counters: BrokerCounters, clock: Callable[[], float]
    ) -> None:
        self.name = name
        self.settings = settings
        self.counters = QueueCounters()
        self.memory: MemoryUse | None = None
        self.pager: Callable[[Message], Message | None] | None = None
        self._broker_counters = broker_counters
        self._clock = clock
        self._order = _order_of(settings)
        self._values = self._order if isinstance(self._order, LastValueOrder) else None
        self._counts_turns = isinstance(self._order, PriorityOrder)
        limits = settings.limits
        self._most = _UNLIMITED if limits.count is None else limits.count
        self._most_bytes = _UNLIMITED if limits.size is None else limits.size
        #: Number and bytes of all entries.
        self._count = self._size = 0
        #: Entries that have a time to live.
        self._mortal = 0
        self._acquired: dict[Entry, None] = {}
        #: Entries whose time has not come; None before there is one.
        self._delays: Delays | None = None
        #: Entries that some consumers may not have again.
        self._barred: dict[Entry, set[object]] = {}
        #: Messages that had to make room for the one that is being put.
        self._given_up: list[Message] = []
        self._observers: tuple[EntryObserver, ...] = ()
        #: Those of them that need not be notified of each entry; and whether there are others.
        self._depth_observers: tuple[DepthObserver, ...] = ()
        self._shows_each = False

    def __len__(self) -> int:
        """Number of messages that are available."""
        return len(self._order)

    def depth(self) -> tuple[int, int]:
        """Number and bytes of the messages that are available, delayed or acquired."""
        return self._count, self._size

    @property
    def acquired_count(self) -> int:
        """Number of messages that are acquired."""
        return len(self._acquired)

    @property
    def delayed_count(self) -> int:
        """Number of messages that wait for the time from which on they may be delivered."""
        return 0 if self._delays is None else len(self._delays)

    def waiting(self) -> list[Entry]:
        """The available entries, in their order."""
        return list(self._order)

    def is_readable(self, entry: Entry) -> bool:
        """True if a browser may read an entry: it is available, and no newer one has replaced it."""
        return entry.state is AVAILABLE and self._order.is_current(entry)

    def on_browsed(self, entry: Entry) -> None:
        """A browser has read an entry."""
        self._order.on_browsed(entry)

    def observe(self, observer: EntryObserver) -> None:
        """Notify an observer of what happens to entries from now on."""
        self._observers = (*self._observers, observer)
        if isinstance(observer, DepthObserver):
            self._depth_observers = (*self._depth_observers, observer)
        else:
            self._shows_each = True

    def ignore(self, observer: DepthObserver) -> None:
        """Notify an observer no more. Does nothing for one that is not notified."""
        self._observers = tuple(one for one in self._observers if one is not observer)
        self._depth_observers = tuple(one for one in self._depth_observers if one is not observer)

    def fits(self, count: int, size: int) -> bool:
        """True if the limits leave room for so many messages, of so many bytes together."""
        return (
            self._count + count <= self._most
            and self._size + size <= self._most_bytes
            and (self.memory is None or self.memory.fits(count, size))
        )

    def has_memory(self, count: int, size: int) -> bool:
        """True if the limits of all queues together leave room for that; negative numbers are what would go."""
        return self.memory is None or self.memory.fits(count, size)

    def take(self, count: int = 0, matches: Callable[[Message], bool] | None = None) -> list[Entry]:
        """Acquire available entries for the broker, in their order, then delayed ones.

        The caller dequeues them, or puts them back.

        Args:
            count: how many at most; 0 for all.
            matches: chooses the messages; None for all.
        """
        taken: list[Entry] = []
        for entry in self._entries():
            if count and len(taken) >= count:
                break
            if matches is None or matches(entry.message):
                self._acquire(entry, None)
                taken.append(entry)
        return taken

    def dequeue(self, entry: Entry) -> None:
        """An entry leaves the queue, whatever its state; the caller counts why."""
        if entry.state is not GONE:
            self._remove(entry)

    def annotate(self, entry: Entry, annotations: bytes) -> bool:
        """A consumer that gives an entry back next has message annotations for it.

        Args:
            entry: that it had acquired; nothing happens to one that is gone.
            annotations: an encoded map, whose values replace those of the same keys.

        Returns:
            False if the limits leave no room for them: the message stays as it was.

        Raises:
            DecodeError: the annotations are no map.
        """
        if entry.state is not ACQUIRED:
            return True
        message = entry.message.with_annotations(annotations)
        growth = len(message.data) - len(entry.message.data)
        if growth > 0 and not self.fits(0, growth):
            return False
        if entry.message.paged and self.pager is not None:
            paged = self.pager(message)
            if paged is None:
                return False
            message = paged
        entry.message = message
        entry.size += growth
        self._size += growth
        self.counters.enqueued_bytes += growth
        if self.memory is not None:
            self.memory.add(0, growth)
        for observer in self._observers:
            observer.on_changed(entry, growth)
        return True

    def purge(self, count: int = 0, matches: Callable[[Message], bool] | None = None) -> int:
        """Remove available and delayed messages; arguments as of `take`. Returns their number."""
        taken = self.take(count, matches)
        for entry in taken:
            self._remove(entry)
        self.counters.purged += len(taken)
        return len(taken)

    def abandon(self) -> list[Message]:
        """Remove all messages, since the queue is deleted; acquired ones, too."""
        entries = sorted([*self._acquired, *self._entries()], key=lambda entry: entry.position)
        for entry in entries:
            self._remove(entry)
        self.close()
        return [entry.message for entry in entries]

    def close(self) -> None:
        """Deliver nothing later: delayed messages stay so."""
        if self._delays is not None:
            self._delays.close()

    def expire(self) -> int:
        """Remove the available and delayed messages whose time to live has ended; their number."""
        if not self._mortal:
            return 0
        now = self._clock()
        expired = [entry for entry in self._entries() if entry.message.is_expired(now)]
        for entry in expired:
            self._expire(entry)
        return len(expired)

    def oldest(self) -> Entry | None:
        """The entry to give up first where there is no room for a new one, or None. It may be acquired."""
        oldest = self._order.oldest()
        if self._acquired:
            acquired = next(iter(self._acquired))
            if oldest is None or (acquired.position < oldest.position and not self._counts_turns):
                return acquired
        if oldest is None and self._delays is not None:
            return next(iter(self._delays), None)
        return oldest

    def give_up(self, entry: Entry) -> None:
        """Remove an entry to make room. One that a consumer has is not lost, and not counted."""
        if entry.state is not ACQUIRED:
            self.counters.dropped += 1
            self._broker_counters.dropped += 1
        self._remove(entry)
        self._given_up.append(entry.message)

    def _is_quiet(self, count: int, size: int) -> bool:
        """True if no observer has to be notified while the depth is at most this."""
        return not self._observers or (
            not self._shows_each and all(observer.is_quiet(count, size) for observer in self._depth_observers)
        )

    def _forget_all(self, entries: Sequence[Entry]) -> None:
        """Entries that the queue has acquired leave it. No observer has to be notified; none is delayed, or barred."""
        acquired = self._acquired
        size = mortal = 0
        for entry in entries:
            del acquired[entry]
            entry.state = GONE
            size += entry.size
            if entry.message.expires_at is not None:
                mortal += 1
        self._count -= len(entries)
        self._size -= size
        self._mortal -= mortal
        if self.memory is not None:
            self.memory.add(-len(entries), -size)

    def _entries(self) -> list[Entry]:
        """The available entries in their order, then the delayed ones."""
        return list(self._order) if self._delays is None else [*self._order, *self._delays]

    def _expire(self, entry: Entry) -> None:
        self._remove(entry)
        self.counters.expired += 1
        self._broker_counters.expired += 1

    def _acquire(self, entry: Entry, acquirer: object | None) -> None:
        was_delayed = entry.state is DELAYED
        entry.state = ACQUIRED
        entry.acquirer = acquirer
        self._acquired[entry] = None
        if was_delayed and self._delays is not None:
            self._delays.take(entry)
        else:
            self._order.take(entry)
        self.counters.acquires += 1
        for observer in self._observers:
            observer.on_acquired(entry)

    def _restore(self, entry: Entry) -> None:
        """An entry that was acquired is available again or, if it never was, waits for its time again."""
        del self._acquired[entry]
        if self._delays is not None and entry in self._delays:
            entry.state = DELAYED
            self._delays.add(entry)
        elif not self._order_again(entry):
            entry.state = ACQUIRED
            self._acquired[entry] = None
            self._remove(entry)
            self.counters.replaced += 1
            return
        for observer in self._observers:
            observer.on_released(entry)
        entry.acquirer = None

    def _order_again(self, entry: Entry) -> bool:
        entry.state = AVAILABLE
        return self._order.restore(entry)

    def _remove(self, entry: Entry) -> None:
        """An entry leaves the queue, whatever its state."""
        for observer in self._observers:
            observer.on_dequeued(entry)
        if self._delays is not None:
            self._delays.forget(entry)
        if entry.state is ACQUIRED:
            del self._acquired[entry]
            entry.state = GONE
        elif entry.state is DELAYED:
            entry.state = GONE
        else:
            entry.state = GONE
            self._order.take(entry)
        self._forget(entry)

    def _forget(self, entry: Entry) -> None:
        entry.state = GONE
        self._count -= 1
        self._size -= entry.size
        if self.memory is not None:
            self.memory.add(-1, -entry.size)
        if self._barred:
            self._barred.pop(entry, None)
        if entry.message.expires_at is not None:
            self._mortal -= 1


def _order_of(settings: QueueSettings) -> Order:
    if settings.replacement is not None:
        return LastValueOrder(settings.value_key, settings.replacement)
    if settings.priorities:
        return PriorityOrder(settings.priorities, settings.fairshare, settings.shares)
    return FifoOrder()
