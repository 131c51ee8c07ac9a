"""What is in a queue: its entries, in their order, counted; who sends and who receives them is not known here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from qmf.broker.nodes.counters import BrokerCounters, QueueCounters
from qmf.broker.nodes.delays import CallLater, Delays
from qmf.broker.nodes.depth import Depth
from qmf.broker.nodes.entries import ACQUIRED, AVAILABLE, DELAYED, GONE, Entry, Observers
from qmf.broker.nodes.last_values import LastValueOrder
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.orders import FifoOrder, Order
from qmf.broker.nodes.priorities import PriorityOrder
from qmf.broker.nodes.settings import QueueSettings


class Contents:
    """The entries of a queue: available ones in an order, delayed ones, acquired ones.

    Attributes:
        order: the available entries.
        depth: number and bytes of all entries, with their limits; changed here alone.
        counters: of the queue.
        observers: notified of what happens to the entries.
        pager: of a queue that flows to disk: stores a message, and returns one that reads its data when it is needed,
            or None if the disk is full.
        position: that of the newest entry.
        mortal: number of entries that have a time to live.
        given_up: messages that had to make room for others, until the queue has taken them from here.
    """

    def __init__(
        self,
        settings: QueueSettings,
        broker_counters: BrokerCounters,
        clock: Callable[[], float],
        on_due: Callable[[Sequence[Entry]], None],
        *,
        call_later: CallLater | None = None,
        within: Depth | None = None,
    ) -> None:
        """Make the contents of an empty queue.

        Args:
            broker_counters: totals of the broker, which are counted along.
            clock: returns seconds; for times to live and delivery times.
            on_due: called with entries that are available now, since their time has come.
            call_later: calls a function after some seconds; None to leave delayed messages delayed.
            within: of the depth.
        """
        self.order = _order_of(settings)
        self.depth = Depth(settings.limits, within)
        self.counters = QueueCounters()
        self.observers = Observers()
        self.pager: Callable[[Message], Message | None] | None = None
        self.position = 0
        self.mortal = 0
        self.given_up: list[Message] = []
        self._broker_counters = broker_counters
        self._clock = clock
        self._on_due = on_due
        self._call_later = call_later
        self._acquired: dict[Entry, None] = {}
        #: Entries whose time has not come; None before there is one.
        self._delays: Delays | None = None

    def __len__(self) -> int:
        """Number of messages that are available."""
        return len(self.order)

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
        return list(self.order)

    def all_entries(self) -> list[Entry]:
        """The available, delayed and acquired entries, by the order in which they came."""
        return sorted([*self._acquired, *self._entries()], key=lambda entry: entry.position)

    def is_readable(self, entry: Entry) -> bool:
        """True if a browser may read an entry: it is available, and no newer one has replaced it."""
        return entry.state is AVAILABLE and self.order.is_current(entry)

    # Entries that come

    def add(self, message: Message, size: int, record: int | None = None) -> Entry | None:
        """Append a message, available or delayed.

        Args:
            size: its bytes, as its sender sent it.
            record: of a message that is recorded already.

        Returns:
            its entry; None if an older entry has this message now, in place of its own.
        """
        self.position += 1
        entry = Entry(message, self.position, size)
        entry.record = record
        counters = self.counters
        counters.enqueues += 1
        counters.enqueued_bytes += size
        self.depth.add(1, size)
        if message.expires_at is not None:
            self.mortal += 1
        if message.deliver_at is not None and message.deliver_at > self._clock():
            if self._delays is None:
                self._delays = Delays(self._clock, self._call_later, self._end_delays)
            entry.state = DELAYED
            self._delays.add(entry)
            replaced = None
        else:
            replaced = self.order.add(entry)
        for observer in self.observers.all:
            observer.on_enqueued(entry if replaced is None else replaced[0])
        return entry if replaced is None or self._replace(entry, replaced[1]) else None

    def add_all(self, messages: Sequence[Message]) -> bool:
        """Append messages in one go; False, and nothing is done, if they have to be looked at one by one."""
        count, sizes = len(messages), [len(message.data) for message in messages]
        size = sum(sizes)
        depth = self.depth
        if (
            not depth.fits(count, size)
            or not self.observers.are_quiet(depth.count + count, depth.size + size)
            or any(message.deliver_at is not None for message in messages)
        ):
            return False
        first = self.position + 1
        self.position += count
        self.counters.enqueues += count
        self.counters.enqueued_bytes += size
        depth.add(count, size)
        self.mortal += sum([message.expires_at is not None for message in messages])
        self.order.add_all(list(map(Entry, messages, range(first, first + count), sizes)))
        return True

    def pass_through(self, message: Message, size: int, acquirer: object | None) -> Entry:
        """A message is acquired as it comes, without a place in the order; nobody observes.

        Args:
            acquirer: who has it; None if the message leaves the queue at once.
        """
        self.position += 1
        counters = self.counters
        counters.enqueues += 1
        counters.enqueued_bytes += size
        counters.acquires += 1
        entry = Entry(message, self.position, size)
        if acquirer is None:
            entry.state = GONE
        else:
            entry.state = ACQUIRED
            entry.acquirer = acquirer
            self._acquired[entry] = None
            self.depth.add(1, size)
        return entry

    def _replace(self, entry: Entry, displaced: Entry) -> bool:
        """A message has replaced an older one, which an entry has now: `entry` that came, or the older one."""
        self.counters.replaced += 1
        if displaced is not entry:
            self.remove(displaced)
            return True
        entry.state = DELAYED  # like a delayed one, it is not in the order
        self.remove(entry)
        return False

    def _end_delays(self, due: Iterable[Entry]) -> None:
        """The time of some entries has come: each is the newest of the queue now."""
        for entry in due:
            self.position += 1
            entry.position = self.position
            entry.state = AVAILABLE
            if (replaced := self.order.add(entry)) is not None:
                self._replace(entry, replaced[1])
        self._on_due([entry for entry in due if entry.state is AVAILABLE])

    # Entries that are taken, and come back

    def acquire(self, entry: Entry, acquirer: object | None) -> None:
        """Somebody has an available or delayed entry: a consumer, or the broker itself (None)."""
        was_delayed = entry.state is DELAYED
        entry.state = ACQUIRED
        entry.acquirer = acquirer
        self._acquired[entry] = None
        if was_delayed and self._delays is not None:
            self._delays.take(entry)
        else:
            self.order.take(entry)
        self.counters.acquires += 1
        for observer in self.observers.all:
            observer.on_acquired(entry)

    def acquire_all(self, entries: Sequence[Entry], acquirer: object) -> None:
        """As `acquire`, for available entries, where no observer has to be notified of each."""
        acquired = self._acquired
        for entry in entries:
            entry.state = ACQUIRED
            entry.acquirer = acquirer
            acquired[entry] = None
        self.order.take_all(entries)
        self.counters.acquires += len(entries)

    def take(self, count: int = 0, matches: Callable[[Message], bool] | None = None) -> list[Entry]:
        """Acquire available entries for the broker, in their order, then delayed ones.

        The caller removes them, or puts them back (`Delivery.put_back`).

        Args:
            count: how many at most; 0 for all.
            matches: chooses the messages; None for all.
        """
        taken: list[Entry] = []
        for entry in self._entries():
            if count and len(taken) >= count:
                break
            if matches is None or matches(entry.message):
                self.acquire(entry, None)
                taken.append(entry)
        return taken

    def restore(self, entry: Entry) -> None:
        """An acquired entry is available again or, if it never was, waits for its time again.

        It is gone if a newer one has replaced it meanwhile.
        """
        del self._acquired[entry]
        if self._delays is not None and entry in self._delays:
            entry.state = DELAYED
            self._delays.add(entry)
        else:
            entry.state = AVAILABLE
            if not self.order.restore(entry):
                entry.state = ACQUIRED
                self._acquired[entry] = None
                self.remove(entry)
                self.counters.replaced += 1
                return
        for observer in self.observers.all:
            observer.on_released(entry)
        entry.acquirer = None

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
        if growth > 0 and not self.depth.fits(0, growth):
            return False
        if entry.message.paged and self.pager is not None:
            paged = self.pager(message)
            if paged is None:
                return False
            message = paged
        entry.message = message
        entry.size += growth
        self.depth.add(0, growth)
        self.counters.enqueued_bytes += growth
        for observer in self.observers.all:
            observer.on_changed(entry, growth)
        return True

    # Entries that go

    def remove(self, entry: Entry) -> None:
        """An entry leaves the queue, whatever its state; the caller counts why. Does nothing for one that is gone."""
        state = entry.state
        if state is GONE:
            return
        for observer in self.observers.all:
            observer.on_dequeued(entry)
        if self._delays is not None:
            self._delays.forget(entry)
        entry.state = GONE
        self.depth.add(-1, -entry.size)
        if entry.message.expires_at is not None:
            self.mortal -= 1
        if state is ACQUIRED:
            del self._acquired[entry]
        elif state is AVAILABLE:
            self.order.take(entry)

    def remove_acquired(self, entries: Iterable[Entry]) -> None:
        """As `remove`, for many; does nothing for those that are not acquired."""
        found = [entry for entry in entries if entry.state is ACQUIRED]
        depth = self.depth
        if self._delays is not None or not self.observers.are_quiet(depth.count, depth.size):
            for entry in found:
                self.remove(entry)
            return
        acquired = self._acquired
        size = 0
        for entry in found:
            del acquired[entry]
            entry.state = GONE
            size += entry.size
            if entry.message.expires_at is not None:
                self.mortal -= 1
        depth.add(-len(found), -size)

    def purge(self, count: int = 0, matches: Callable[[Message], bool] | None = None) -> int:
        """Remove available and delayed messages; arguments as of `take`. Returns their number."""
        taken = self.take(count, matches)
        for entry in taken:
            self.remove(entry)
        self.counters.purged += len(taken)
        return len(taken)

    def abandon(self) -> list[Message]:
        """Remove all messages, since the queue is deleted; acquired ones, too."""
        entries = self.all_entries()
        for entry in entries:
            self.remove(entry)
        self.close()
        return [entry.message for entry in entries]

    def close(self) -> None:
        """Deliver nothing later: delayed messages stay so."""
        if self._delays is not None:
            self._delays.close()

    def expire(self) -> int:
        """Remove the available and delayed messages whose time to live has ended; their number."""
        if not self.mortal:
            return 0
        now = self._clock()
        expired = [entry for entry in self._entries() if entry.message.is_expired(now)]
        for entry in expired:
            self._expire(entry)
        return len(expired)

    def expire_entry(self, entry: Entry) -> bool:
        """Remove an available entry if its time to live has ended; True then."""
        expired = entry.message.is_expired(self._clock())
        if expired:
            self._expire(entry)
        return expired

    def data_to_send(self, message: Message) -> bytes:
        """See `Message.data_to_send`."""
        return message.data_to_send(self._clock())

    def oldest(self) -> Entry | None:
        """The entry to give up first where there is no room for a new one, or None. It may be acquired."""
        oldest = self.order.oldest()
        if self._acquired:
            acquired = next(iter(self._acquired))
            if oldest is None or (acquired.position < oldest.position and not isinstance(self.order, PriorityOrder)):
                return acquired
        if oldest is None and self._delays is not None:
            return next(iter(self._delays), None)
        return oldest

    def give_up(self, entry: Entry) -> None:
        """Remove an entry to make room. One that a consumer has is not lost, and not counted."""
        if entry.state is not ACQUIRED:
            self.counters.dropped += 1
            self._broker_counters.dropped += 1
        self.remove(entry)
        self.given_up.append(entry.message)

    def _entries(self) -> list[Entry]:
        """The available entries in their order, then the delayed ones."""
        return list(self.order) if self._delays is None else [*self.order, *self._delays]

    def _expire(self, entry: Entry) -> None:
        self.remove(entry)
        self.counters.expired += 1
        self._broker_counters.expired += 1


def _order_of(settings: QueueSettings) -> Order:
    if settings.replacement is not None:
        return LastValueOrder(settings.value_key, settings.replacement)
    if settings.priorities:
        return PriorityOrder(settings.priorities, settings.fairshare, settings.shares)
    return FifoOrder()
