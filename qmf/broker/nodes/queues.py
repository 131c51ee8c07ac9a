"""Queues: bounded, in order, dispatched to the consumers that have credit.

A message in a queue is an entry: available, acquired by a consumer, or gone. What a queue does besides is in objects of
its own: its order, what it does when it is full, groups of messages, and observers such as flow control, alerts and the
journal of a durable queue. A plain queue has none of the latter. This module knows nothing of AMQP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from qmf.broker.nodes.consumed import ConsumedContents
from qmf.broker.nodes.consumers import AlternateExchange, Consumer
from qmf.broker.nodes.counters import BrokerCounters, DurableCounts, PageCounts
from qmf.broker.nodes.delays import Delays
from qmf.broker.nodes.entries import ACQUIRED, AVAILABLE, DELAYED, GONE, Entry
from qmf.broker.nodes.flow_control import FlowControl
from qmf.broker.nodes.limits import overflow_of
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.orders import FifoOrder
from qmf.broker.nodes.recorder import Recorder
from qmf.broker.nodes.settings import OverflowPolicy, QueueSettings
from qmf.broker.nodes.timers import CallLater


class Queue(ConsumedContents):
    """A queue.

    Attributes:
        name: unique in the broker.
        settings: how it behaves.
        counters: read them, but don't write.
        groups: of messages; None where there are none.
        alternate: where messages go that are rejected, dropped or orphaned; None for nowhere.
        redirected: the queue that gets the messages of this one, and this one its messages; None for none.
        redirect_source: of the two, it is the one whose messages were to be redirected.
        filter: the messages that it keeps; None for all. Set by `set_filter` and `exclude`.
        recorder: of a durable queue; None for any other.
        held: while a transaction is committed: entries that come are not available before `release_held`; else None.
        on_limit: called when a queue with the policy `SELF_DESTRUCT` is full.
    """

    def __init__(
        self,
        name: str,
        settings: QueueSettings,
        broker_counters: BrokerCounters,
        clock: Callable[[], float],
        call_later: CallLater | None = None,
    ) -> None:
        """Args:

        name, settings: as the attributes.
        broker_counters: totals of the broker, which are counted along.
        clock: returns seconds; for times to live.
        call_later: calls a function after some seconds, for messages with a delivery time; None where `check_delays`
            is called instead.
        """
        super().__init__(name, settings, broker_counters, clock)
        self.alternate: AlternateExchange | None = None
        self.redirected: Queue | None = None
        self.redirect_source = False
        self.filter: Callable[[Message], bool] | None = None
        self.recorder: Recorder | None = None
        self.held: list[Entry] | None = None
        self.on_limit: Callable[[], None] = lambda: None
        self._call_later = call_later
        self._selector: Callable[[Message], bool] | None = None
        self.exclude(settings.excluded)
        self._overflow = overflow_of(settings)
        self._position = 0
        self._rerouting = False
        self.flow = FlowControl(name, settings, self.counters, self.depth) if settings.flow_stop else None
        durable = DurableCounts(self.counters) if settings.durable else None
        pages = PageCounts(self.counters) if settings.overflow is OverflowPolicy.FLOW_TO_DISK else None
        for observer in (self.flow, durable, pages):
            if observer is not None:
                self.observe(observer)

    @property
    def exclusive(self) -> bool:
        """Only one consumer is allowed."""
        return self.settings.exclusive

    def set_filter(self, selector: Callable[[Message], bool]) -> None:
        """Keep only messages that a selector matches."""
        self._selector = self.filter = selector
        self.exclude(self.settings.excluded)

    def exclude(self, container: str) -> None:
        """Keep no messages of the client with this container id; empty to keep those of all clients."""
        selector = self._selector
        if container:

            def keeps(message: Message) -> bool:
                own = message.origin is not None and message.origin.container == container
                return not own and (selector is None or selector(message))

            self.filter = keeps
        else:
            self.filter = selector

    # Messages that come

    def enqueue(self, message: Message) -> bool:
        """Append a message, or deliver it at once when none waits before it.

        Returns:
            False when the queue is full and refuses the message. A message that the queue's filter leaves out is not
            refused.
        """
        return self.put(message) if self.redirected is None else self.redirected.put(message)

    def enqueue_all(self, messages: Sequence[Message]) -> Mapping[int, str]:
        """As `enqueue`, for messages that come one after the other.

        Returns:
            why messages were refused, by their places in `messages`.
        """
        queue = self if self.redirected is None else self.redirected
        if queue._put_together(messages):
            return {}
        refused: dict[int, str] = {}
        for place, message in enumerate(messages):
            if not queue.put(message):
                refused[place] = queue.refusal(message)
        return refused

    def _put_together(self, messages: Sequence[Message]) -> bool:
        """Enqueue messages in one go; False if they have to be looked at one by one."""
        count = len(messages)
        if (
            not self._is_simple
            or count == 1
            or self.filter is not None
            or self.pager is not None
            or self.held is not None
        ):
            return False
        sizes = [len(message.data) for message in messages]
        size = sum(sizes)
        depth, held = self._count + count, self._size + size
        if (
            depth > self._most
            or held > self._most_bytes
            or (self.memory is not None and not self.memory.fits(count, size))
            or not self._is_quiet(depth, held)
            or any(message.deliver_at is not None for message in messages)
        ):
            return False
        first = self._position + 1
        self._position += count
        entries = list(map(Entry, messages, range(first, first + count), sizes))
        self.counters.enqueues += count
        self.counters.enqueued_bytes += size
        self._count, self._size = depth, held
        if self.memory is not None:
            self.memory.add(count, size)
        self._mortal += sum([message.expires_at is not None for message in messages])
        assert isinstance(self._order, FifoOrder)
        self._order.extend(entries)
        self.dispatch()
        return True

    def put(self, message: Message) -> bool:
        """Enqueue a message here, even if the queue is redirected; see `enqueue`."""
        size = len(message.data)
        if self.filter is not None and not self.filter(message):
            return True
        if (
            self._count >= self._most
            or self._size + size > self._most_bytes
            or (self.memory is not None and not self.memory.fits(1, size))
        ) and not self._overflow.make_room(self, message):
            if self._given_up:
                self._reroute_given_up()
            return self._drops(message)
        if self.pager is not None and not self.fits(1, size):
            paged = self.pager(message)
            if paged is None:
                return self._drops(message)
            message = paged
        self._position += 1
        if (
            self._is_plain
            and message.expires_at is None
            and message.deliver_at is None
            and self.held is None
            and not self._order
            and (consumer := self._consumers.next_ready()) is not None
        ):
            self._pass(message, size, consumer)
            return True
        if self.settings.sequence_key:
            message = message.with_annotation(self.settings.sequence_key, self._position & 0xFFFFFFFF)
        self._add(Entry(message, self._position, size))
        if self._given_up:
            self._reroute_given_up()
        return True

    def _pass(self, message: Message, size: int, consumer: Consumer) -> None:
        """Deliver a message at once, without putting it into the order of the queue."""
        counters = self.counters
        counters.enqueues += 1
        counters.enqueued_bytes += size
        counters.acquires += 1
        self._broker_counters.delivered += 1
        entry = Entry(message, self._position, size)
        if consumer.presettled:
            entry.state = GONE
        else:
            entry.state = ACQUIRED
            entry.acquirer = consumer
            self._acquired[entry] = None
            self._count += 1
            self._size += size
            if self.memory is not None:
                self.memory.add(1, size)
        consumer.deliver(entry)

    def recover(self, message: Message, record: int) -> Entry:
        """Put a message of a durable queue back that was recorded before the broker started; observers see it."""
        self._position += 1
        entry = Entry(message, self._position, len(message.data))
        entry.record = record
        self._add(entry)
        return entry

    def refusal(self, message: Message) -> str:
        """Why `enqueue` refused a message, in qpidd's words."""
        limits, size = self.settings.limits, len(message.data)
        if self.settings.overflow is OverflowPolicy.RING and limits.size is not None and size > limits.size:
            return f"Message larger than configured maximum depth on {self.name}: size={size}, max-size={limits.size}"
        if self.memory is not None and not self.memory.fits(1, size):
            return f"Maximum depth of all queues exceeded: {self.memory}, increment=[count: 1, size: {size}]"
        most = [
            f"{name}: {most}" for name, most in (("count", limits.count), ("size", limits.size)) if most is not None
        ]
        return (
            f"Maximum depth exceeded on {self.name}: current=[count: {self._count}, size: {self._size}], "
            f"max=[{', '.join(most)}], increment=[count: 1, size: {size}]"
        )

    def has_room(self, count: int, size: int) -> bool:
        """True if so many messages, of so many bytes together, would be taken, whatever happens to others for that."""
        if not self.has_memory(count, size):
            return False
        if self.settings.overflow is not OverflowPolicy.REJECT or self.fits(count, size):
            return True
        self.expire()
        return self.fits(count, size)

    def _drops(self, message: Message) -> bool:
        """A message found no room: False, or True if that is no reason to refuse it."""
        oldest = self._order.oldest()
        if (
            self.settings.overflow is OverflowPolicy.RING
            and self._counts_turns
            and len(message.data) <= self._most_bytes
            and oldest is not None
            and oldest.message.priority > message.priority
        ):
            self.counters.dropped += 1
            self._broker_counters.dropped += 1
            return True
        self.counters.refused += 1
        return False

    def _add(self, entry: Entry) -> None:
        size = entry.size
        counters = self.counters
        counters.enqueues += 1
        counters.enqueued_bytes += size
        self._count += 1
        self._size += size
        if self.memory is not None:
            self.memory.add(1, size)
        if entry.message.expires_at is not None:
            self._mortal += 1
        if (deliver_at := entry.message.deliver_at) is not None and deliver_at > self._clock():
            self._delay(entry)
            return
        displaced = None
        added = entry
        if self._values is None:
            self._order.add(entry)
        else:
            added, displaced = self._values.put(entry)
        for observer in self._observers:
            observer.on_enqueued(added)
        if displaced is not None:
            counters.replaced += 1
            self._replace(displaced, in_place=displaced is entry)
        if self.held is not None:
            if added is entry:
                self._acquire(entry, None)
                self.held.append(entry)
            return
        if added is entry:
            self._announce(entry)
        if self._consumers:
            self.dispatch()

    def _delay(self, entry: Entry) -> None:
        """An entry that comes is not available before its time."""
        if self._delays is None:
            self._delays = Delays(self._clock, self._call_later, self._on_due)
        entry.state = DELAYED
        self._delays.add(entry)
        for observer in self._observers:
            observer.on_enqueued(entry)
        if self.held is not None:
            self._acquire(entry, None)
            self.held.append(entry)

    def check_delays(self) -> None:
        """Make the entries available whose time has come."""
        if self._delays is not None:
            self._delays.check()

    def _on_due(self, due: Iterable[Entry]) -> None:
        """The time of some entries has come: each is the newest of the queue now."""
        for entry in due:
            self._position += 1
            entry.position = self._position
            entry.state = AVAILABLE
            added, displaced = entry, None
            if self._values is None:
                self._order.add(entry)
            else:
                added, displaced = self._values.put(entry)
            if displaced is not None:
                self.counters.replaced += 1
                self._replace(displaced, in_place=displaced is entry)
            if added is entry:
                self._announce(entry)
        self.dispatch()

    def _replace(self, displaced: Entry, *, in_place: bool) -> None:
        """An entry is gone because a newer one has its key; `in_place` if that has its place, too."""
        if not in_place:
            self._remove(displaced)
            return
        for observer in self._observers:
            observer.on_dequeued(displaced)
        self._forget(displaced)

    # Messages that go

    def release(self, entries: Iterable[Entry], *, failed: bool = False) -> None:
        """Consumers give back entries that they had acquired. Those that are gone are left out.

        Args:
            entries: in any order; they get their old places.
            failed: they count one more failed delivery. With too many the message goes to the alternate exchange.
        """
        for entry in entries:
            if entry.state is not ACQUIRED:
                continue
            self.counters.releases += 1
            if failed:
                entry.message = entry.message.after_failure()
                if 0 < self.settings.max_deliveries <= entry.message.delivery_count:
                    self._reject(entry)
                    continue
            self._restore(entry)
        self.dispatch()

    def put_back(self, entries: Iterable[Entry]) -> None:
        """As `release`, for entries that the broker itself had taken."""
        for entry in entries:
            if entry.state is ACQUIRED:
                self._restore(entry)
        self.dispatch()

    def release_held(self, entries: Iterable[Entry]) -> None:
        """Entries that came while `held` was set are available now; those that have left the queue are left out."""
        for entry in entries:
            if entry.state is ACQUIRED:
                self._restore(entry)
                for browser in self._browsers if entry.state is AVAILABLE else ():
                    browser.on_stored(entry)
        self.dispatch()

    def reject(self, entry: Entry) -> None:
        """A consumer rejects an entry that it had acquired: it goes to the alternate exchange, or is dropped."""
        if entry.state is ACQUIRED:
            self._reject(entry)

    def _reroute_given_up(self) -> None:
        """Send what was given up to the alternate exchange."""
        given_up, self._given_up = self._given_up, []
        # Where that routes to this queue again, there is no room either.
        if self.alternate is None or self._rerouting:
            return
        self._rerouting = True
        try:
            for message in given_up:
                self.alternate.reroute(message)
        finally:
            self._rerouting = False

    def _reject(self, entry: Entry) -> None:
        self.counters.rejected += 1
        self._remove(entry)
        if self.alternate is not None:
            self.alternate.reroute(entry.message)
