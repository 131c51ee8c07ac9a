"""The entries of a queue on their way to its consumers and browsers; how messages come is not known here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from qmf.broker.nodes.consumers import Browser, Consumer, Consumers
from qmf.broker.nodes.contents import QueueContents
from qmf.broker.nodes.counters import BrokerCounters
from qmf.broker.nodes.entries import ACQUIRED, AVAILABLE, GONE, DepthObserver, Entry, EntryObserver
from qmf.broker.nodes.groups import MessageGroups
from qmf.broker.nodes.orders import FifoOrder
from qmf.broker.nodes.settings import QueueSettings


class ConsumedContents(QueueContents):
    """The entries of a queue, and who receives them; the base of `Queue`.

    Attributes:
        groups: of messages, which are delivered to one consumer each; None where there are none.
    """

    def __init__(
        self, name: str, settings: QueueSettings, broker_counters: BrokerCounters, clock: Callable[[], float]
    ) -> None:
        super().__init__(name, settings, broker_counters, clock)
        self._consumers = Consumers(self._order, self._barred)
        #: Selectors are tried when messages come, rather than when consumers are ready.
        self._is_fifo = isinstance(self._order, FifoOrder) and self._values is None and not settings.group_key
        self._browsers: list[Browser] = []
        #: Nothing has to be known of single messages but their number and size; and no observer has to be notified: a
        #: message that comes while nothing waits may be delivered at once.
        self._is_simple = self._is_plain = False
        self._check_plain()
        self.groups = (
            MessageGroups(settings.group_key, timestamps=settings.group_timestamp) if settings.group_key else None
        )
        if self.groups is not None:
            self.observe(self.groups)

    @property
    def consumer_count(self) -> int:
        """Number of consumers."""
        return len(self._consumers)

    @property
    def browser_count(self) -> int:
        """Number of browsers."""
        return len(self._browsers)

    def observe(self, observer: EntryObserver) -> None:
        """See `QueueContents`."""
        super().observe(observer)
        self._check_plain()

    def ignore(self, observer: DepthObserver) -> None:
        """See `QueueContents`."""
        super().ignore(observer)
        self._check_plain()

    def _announce(self, entry: Entry) -> None:
        """An entry is available for the first time."""
        if self._consumers.choose:
            self._consumers.on_added(entry)
        for browser in self._browsers:
            browser.on_stored(entry)

    def accept(self, entry: Entry, *, transactional: bool = False) -> None:
        """A consumer is done with an entry that it had acquired. Does nothing for one that is gone."""
        if entry.state is ACQUIRED:
            if transactional:
                self.counters.transactional_dequeues += 1
                self.counters.transactional_dequeued_bytes += entry.size
            self._remove(entry)

    def accept_all(self, entries: Iterable[Entry]) -> None:
        """Consumers are done with entries that they had acquired; see `accept`."""
        acquired = [entry for entry in entries if entry.state is ACQUIRED]
        if self._delays is None and not self._barred and self._is_quiet(self._count, self._size):
            self._forget_all(acquired)
        else:
            for entry in acquired:
                self.accept(entry)

    def _restore(self, entry: Entry) -> None:
        super()._restore(entry)
        if entry.state is AVAILABLE and self._consumers.choose:
            self._consumers.on_restored(entry)

    def bar(self, entry: Entry, consumer: Consumer) -> None:
        """A consumer that gives an entry back next must not get it again."""
        if entry.state is ACQUIRED:
            self._barred.setdefault(entry, set()).add(consumer)
            self._check_plain()

    def add_consumer(self, consumer: Consumer) -> None:
        """Deliver to this consumer, too. What waits already is delivered by the next `dispatch`."""
        self._consumers.add(consumer)
        self._check_plain()

    def remove_consumer(self, consumer: Consumer) -> None:
        """Deliver nothing more to this consumer. Does nothing when it was removed before."""
        self._consumers.remove(consumer)
        for entry, consumers in list(self._barred.items()):
            consumers.discard(consumer)
            if not consumers:
                del self._barred[entry]
        self._check_plain()

    def add_browser(self, browser: Browser) -> None:
        """Notify a browser of the messages that will be stored."""
        self._browsers.append(browser)
        self._check_plain()

    def remove_browser(self, browser: Browser) -> None:
        """Notify a browser no more."""
        if browser in self._browsers:
            self._browsers.remove(browser)
            self._check_plain()

    def dispatch(self) -> None:
        """Deliver available messages to the consumers that are ready, in turn."""
        if not self._consumers:
            return
        if self._consumers.choose or self.groups is not None:
            if self._is_fifo:
                self._dispatch_matches()
            else:
                self._dispatch_chosen()
            return
        order = self._order
        if self._is_fifo and not self._shows_each and not self._mortal and self.pager is None:
            assert isinstance(order, FifoOrder)
            while delivered := self._consumers.deliver(order):
                for receiver, entries in delivered:
                    self._hand_over(receiver, entries)
                order.take_all([entry for _, entries in delivered for entry in entries])
            return
        while (entry := order.first()) is not None:
            if entry.message.expires_at is not None and entry.message.is_expired(self._clock()):
                self._expire(entry)
                continue
            consumer = self._consumers.next_ready()
            if consumer is None:
                return
            self._deliver(consumer, entry)

    def _dispatch_matches(self) -> None:
        """Deliver to each consumer that is ready the next message that its selector has chosen."""
        while (match := self._consumers.next_match()) is not None:
            consumer, entry = match
            if entry.message.expires_at is not None and entry.message.is_expired(self._clock()):
                self._expire(entry)
            else:
                self._deliver(consumer, entry)

    def _dispatch_chosen(self) -> None:
        """Deliver each available message to the next consumer that is ready and takes it."""
        self.expire()
        for entry in list(self._order):
            if not self._consumers.any_ready():
                return
            if entry.state is AVAILABLE and (taker := self._consumers.next_taker(entry, self.groups)) is not None:
                self._deliver(taker, entry)

    def _deliver(self, consumer: Consumer, entry: Entry) -> None:
        if self._counts_turns:
            self._order.on_delivered(entry)
        self._broker_counters.delivered += 1
        if consumer.presettled and not self._observers:
            self.counters.acquires += 1
            entry.state = GONE
            self._order.take(entry)
            self._forget(entry)
        else:
            self._acquire(entry, consumer)
            if consumer.presettled:
                self._remove(entry)
        consumer.deliver(entry)

    def _hand_over(self, consumer: Consumer, entries: Sequence[Entry]) -> None:
        """A consumer has got entries from a plain queue."""
        self._broker_counters.delivered += len(entries)
        self.counters.acquires += len(entries)
        acquired = self._acquired
        for entry in entries:
            entry.state = ACQUIRED
            entry.acquirer = consumer
            acquired[entry] = None
        if consumer.presettled:
            self.accept_all(entries)

    def _check_plain(self) -> None:
        """Find out what has to be known of messages that come."""
        self._is_simple = (
            not self._browsers
            and not self._consumers.choose
            and not self.settings.sequence_key
            and self._is_fifo
            and not self._shows_each
        )
        self._is_plain = self._is_simple and not self._observers
