"""The way of a queue's entries to its consumers and browsers, and back; how messages come is not known here."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from qmf.broker.nodes.consumers import AlternateExchange, Browser, Consumer, Consumers
from qmf.broker.nodes.contents import Contents
from qmf.broker.nodes.counters import BrokerCounters
from qmf.broker.nodes.entries import ACQUIRED, AVAILABLE, Entry, EntryObserver, Observers
from qmf.broker.nodes.groups import MessageGroups
from qmf.broker.nodes.last_values import LastValueOrder
from qmf.broker.nodes.orders import FifoOrder
from qmf.broker.nodes.settings import QueueSettings


class QueueDelivery:
    """Gives the entries of a queue to its consumers, and takes them back.

    Attributes:
        consumers, browsers: of the queue; changed here alone.
        groups: of messages, which are delivered to one consumer each; None where there are none.
        plain: all consumers get any message, first in, first out, and nobody browses.
    """

    def __init__(
        self,
        contents: Contents,
        settings: QueueSettings,
        broker_counters: BrokerCounters,
        alternate: AlternateExchange | None = None,
    ) -> None:
        """Make the delivery of a queue without consumers.

        Args:
            broker_counters: totals of the broker, which are counted along.
            alternate: where rejected messages go; None for nowhere.
        """
        self._contents = contents
        self._counters = contents.counters
        self._broker_counters = broker_counters
        self._alternate = alternate
        self._max_deliveries = settings.max_deliveries
        self._excluded = _Barred(contents.observers)
        self.consumers = Consumers(contents.order, self._excluded.consumers)
        self.browsers: list[Browser] = []
        self.groups = (
            MessageGroups(settings.group_key, timestamps=settings.group_timestamp) if settings.group_key else None
        )
        if self.groups is not None:
            contents.observers.add(self.groups)
        order = contents.order
        #: The order, where selectors can be tried when messages come, rather than when consumers are ready.
        self._fifo = (
            order
            if isinstance(order, FifoOrder) and not isinstance(order, LastValueOrder) and self.groups is None
            else None
        )
        self.plain = self._is_plain()

    # Who receives

    def add_consumer(self, consumer: Consumer) -> None:
        """Deliver to this consumer, too. What waits already is delivered by the next `dispatch`."""
        self.consumers.add(consumer)
        self.plain = self._is_plain()

    def remove_consumer(self, consumer: Consumer) -> None:
        """Deliver nothing more to this consumer. Does nothing when it was removed before."""
        self.consumers.remove(consumer)
        self._excluded.forget(consumer)
        self.plain = self._is_plain()

    def add_browser(self, browser: Browser) -> None:
        """Notify a browser of the messages that will be stored."""
        self.browsers.append(browser)
        self.plain = False

    def remove_browser(self, browser: Browser) -> None:
        """Notify a browser no more. Does nothing when it was removed before."""
        if browser in self.browsers:
            self.browsers.remove(browser)
            self.plain = self._is_plain()

    def _is_plain(self) -> bool:
        return self._fifo is not None and not self.browsers and not self.consumers.choose

    @property
    def receiver_count(self) -> int:
        """Number of the consumers and browsers."""
        return len(self.consumers) + len(self.browsers)

    # Entries that go to consumers

    def announce(self, entry: Entry) -> None:
        """An entry is available for the first time; the next `dispatch` delivers it."""
        if self.consumers.choose:
            self.consumers.on_added(entry)
        for browser in self.browsers:
            browser.on_stored(entry)

    def dispatch(self) -> None:
        """Deliver available messages to the consumers that are ready, in turn."""
        consumers = self.consumers
        if not consumers.all:
            return
        if consumers.choose or self.groups is not None:
            if self._fifo is not None:
                self._dispatch_matches()
            else:
                self._dispatch_chosen()
            return
        contents = self._contents
        if (fifo := self._fifo) is not None and not (
            contents.observers.need_acquired or contents.mortal or contents.pager is not None
        ):
            while delivered := consumers.deliver(fifo):
                for receiver, entries in delivered:
                    self._broker_counters.delivered += len(entries)
                    contents.acquire_all(entries, receiver)
                    if receiver.presettled:
                        contents.remove_acquired(entries)
        else:
            self._dispatch_each()

    def _dispatch_each(self) -> None:
        """Deliver one message after the other, each to the next consumer that is ready."""
        contents = self._contents
        order = contents.order
        while (entry := order.first()) is not None:
            if entry.message.expires_at is not None and contents.expire_entry(entry):
                continue
            if (consumer := self.consumers.next_ready()) is None:
                return
            self._deliver(consumer, entry)

    def _dispatch_matches(self) -> None:
        """Deliver to each consumer that is ready the next message that its selector has chosen."""
        while (match := self.consumers.next_match()) is not None:
            consumer, entry = match
            if not self._contents.expire_entry(entry):
                self._deliver(consumer, entry)

    def _dispatch_chosen(self) -> None:
        """Deliver each available message to the next consumer that is ready and takes it."""
        self._contents.expire()
        for entry in self._contents.waiting():
            if not self.consumers.any_ready():
                return
            if entry.state is AVAILABLE and (taker := self.consumers.next_taker(entry, self.groups)) is not None:
                self._deliver(taker, entry)

    def _deliver(self, consumer: Consumer, entry: Entry) -> None:
        contents = self._contents
        contents.order.on_delivered(entry)
        self._broker_counters.delivered += 1
        if consumer.presettled and not contents.observers.all:
            self._counters.acquires += 1
            contents.remove(entry)
        else:
            contents.acquire(entry, consumer)
            if consumer.presettled:
                contents.remove(entry)
        consumer.deliver(entry)

    # Entries that consumers are done with, or give back; nothing happens to those that are gone

    def accept(self, entry: Entry, *, transactional: bool = False) -> None:
        """A consumer is done with an entry that it had acquired."""
        if entry.state is ACQUIRED:
            if transactional:
                self._counters.transactional_dequeues += 1
                self._counters.transactional_dequeued_bytes += entry.size
            self._contents.remove(entry)

    def accept_all(self, entries: Iterable[Entry]) -> None:
        """Consumers are done with entries that they had acquired; see `accept`."""
        self._contents.remove_acquired(entries)

    def reject(self, entry: Entry) -> None:
        """A consumer rejects an entry that it had acquired: it goes to the alternate exchange, or is dropped."""
        if entry.state is ACQUIRED:
            self._counters.rejected += 1
            self._contents.remove(entry)
            if self._alternate is not None:
                self._alternate.reroute(entry.message)

    def claim(self, records: Collection[int], consumer: Consumer) -> dict[int, Entry]:
        """A consumer has available entries already, from before a restart.

        Args:
            records: that identify them in the store.
            consumer: which gets nothing else.

        Returns:
            the entries that are there, by their records.
        """
        claimed = {entry.record: entry for entry in self._contents.waiting() if entry.record in records}
        for entry in claimed.values():
            self._contents.acquire(entry, consumer)
        return {record: entry for record, entry in claimed.items() if record is not None}

    def exclude(self, entry: Entry, consumer: Consumer) -> None:
        """A consumer that gives an entry back next must not get it again."""
        if entry.state is ACQUIRED:
            self._excluded.add(entry, consumer)
            self.plain = False

    def bar(self, entries: Iterable[Entry], consumer: Consumer) -> None:
        """A consumer must not get some entries, whatever their states."""
        for entry in entries:
            self._excluded.add(entry, consumer)
            self.plain = False

    def release(self, entries: Iterable[Entry], *, failed: bool = False) -> None:
        """Consumers give back entries that they had acquired.

        Args:
            entries: in any order; they get their old places.
            failed: they count one more failed delivery. With too many the message goes to the alternate exchange.
        """
        for entry in entries:
            if entry.state is not ACQUIRED:
                continue
            self._counters.releases += 1
            if failed:
                entry.message = entry.message.after_failure()
                if 0 < self._max_deliveries <= entry.message.delivery_count:
                    self.reject(entry)
                    continue
            self._restore(entry)
        self.dispatch()

    def put_back(self, entries: Iterable[Entry]) -> None:
        """As `release`, for entries that the broker itself had taken."""
        for entry in entries:
            if entry.state is ACQUIRED:
                self._restore(entry)
        self.dispatch()

    def offer(self, entries: Iterable[Entry]) -> None:
        """As `put_back`, for entries that the broker had taken as they came: browsers see them for the first time."""
        for entry in entries:
            if entry.state is ACQUIRED:
                self._restore(entry)
                for browser in self.browsers if entry.state is AVAILABLE else ():
                    browser.on_stored(entry)
        self.dispatch()

    def _restore(self, entry: Entry) -> None:
        self._contents.restore(entry)
        if entry.state is AVAILABLE and self.consumers.choose:
            self.consumers.on_restored(entry)


class _Barred(EntryObserver):
    """Entries of a queue that some consumers may not have again. It observes the queue while there are any.

    Attributes:
        consumers: by entry.
    """

    def __init__(self, observers: Observers) -> None:
        self.consumers: dict[Entry, set[object]] = {}
        self._observers = observers

    def add(self, entry: Entry, consumer: object) -> None:
        """A consumer may not have an acquired entry again."""
        if not self.consumers:
            self._observers.add(self)
        self.consumers.setdefault(entry, set()).add(consumer)

    def forget(self, consumer: object) -> None:
        """A consumer is gone."""
        for entry, consumers in list(self.consumers.items()):
            consumers.discard(consumer)
            if not consumers:
                self.on_dequeued(entry)

    def on_dequeued(self, entry: Entry) -> None:
        if self.consumers.pop(entry, None) is not None and not self.consumers:
            self._observers.remove(self)
