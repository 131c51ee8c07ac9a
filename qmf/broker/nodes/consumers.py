"""What receives the messages of a queue, seen from the queue."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from qmf.broker.nodes.entries import AVAILABLE, Entry
from qmf.broker.nodes.groups import MessageGroups
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.orders import FifoOrder, Order


class Consumer(Protocol):
    """A receiver of a queue's messages.

    What is delivered is acquired: the consumer calls `Delivery.accept`, `release` or `reject` with it later.

    Attributes:
        selector: the messages that it takes; None for all.
    """

    selector: Callable[[Message], bool] | None

    @property
    def presettled(self) -> bool:
        """True when a message leaves the queue as it is delivered. Does not change."""

    def ready(self) -> bool:
        """True when `deliver` may be called."""

    def deliver(self, entry: Entry) -> None:
        """Send the message to the receiver."""

    def room(self) -> int:
        """Messages that it takes now, as far as is known: 0 when it is not ready."""

    def deliver_all(self, entries: Sequence[Entry]) -> int:
        """Send messages to the receiver, in their order, while it is ready; returns how many were sent.

        They are acquired after this call.
        """


class Browser(Protocol):
    """Reads the messages of a queue and leaves them there. It calls `Order.on_browsed` for each."""

    def on_stored(self, entry: Entry) -> None:
        """A message waits in the queue now."""


class AlternateExchange(Protocol):
    """Where the messages of a queue go that are rejected, dropped or orphaned."""

    @property
    def name(self) -> str:
        """Name of the exchange."""

    def reroute(self, message: Message) -> bool:
        """Publish a message; False if no queue has it."""


#: Entries that are delivered together, at most.
_TOGETHER = 256

#: Entries that a selector has chosen and that others have got, besides as many as are available.
_SLACK = 1_000


class Consumers:
    """The consumers of a queue, which get messages in turn.

    Each entry is tried once with each selector: those that match wait in a list of the consumer.

    Attributes:
        all: in the order of their turns; changed here alone.
    """

    def __init__(self, order: Order, barred: Mapping[Entry, set[object]]) -> None:
        """Make the consumers of a queue, which has none yet.

        Args:
            barred: entries with the consumers that may not have them; the queue changes it.
        """
        self._order = order
        self._excluded = barred
        self.all: deque[Consumer] = deque()
        #: Entries that match the selectors, in their order. Those that are not available any more are left out later.
        self._chosen: dict[Consumer, deque[Entry]] = {}

    def __len__(self) -> int:
        return len(self.all)

    @property
    def choose(self) -> bool:
        """True if a consumer has a selector, or may not have all entries."""
        return bool(self._chosen or self._excluded)

    def add(self, consumer: Consumer) -> None:
        """Add a consumer."""
        self.all.append(consumer)
        if (selector := consumer.selector) is not None:
            self._chosen[consumer] = deque(entry for entry in self._order if selector(entry.message))

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer. Does nothing when it was removed before."""
        if consumer in self.all:
            self.all.remove(consumer)
            self._chosen.pop(consumer, None)

    def on_added(self, entry: Entry) -> None:
        """A new entry is available, behind all others."""
        for consumer, chosen in self._chosen.items():
            if consumer.selector is not None and consumer.selector(entry.message):
                if len(chosen) > 2 * len(self._order) + _SLACK:
                    self._chosen[consumer] = chosen = deque(one for one in chosen if one.state is AVAILABLE)
                chosen.append(entry)

    def on_restored(self, entry: Entry) -> None:
        """An entry is available again."""
        for consumer, chosen in self._chosen.items():
            if consumer.selector is not None and consumer.selector(entry.message):
                index = bisect_left(chosen, entry.position, key=_position)
                if index == len(chosen) or chosen[index] is not entry:
                    chosen.insert(index, entry)

    def next_ready(self) -> Consumer | None:
        """The next consumer that is ready."""
        consumers = self.all
        if len(consumers) == 1:
            return consumers[0] if consumers[0].ready() else None
        for _ in range(len(consumers)):
            consumer = consumers[0]
            consumers.rotate(-1)
            if consumer.ready():
                return consumer
        return None

    def deliver(self, order: FifoOrder) -> list[tuple[Consumer, Sequence[Entry]]]:
        """Deliver the first entries to the consumers that are ready, in turn, whatever their selectors.

        Returns:
            who got which, for the queue to take them out of the order; empty when nobody is ready, or nothing waits.
        """
        if len(self.all) == 1:
            consumer = self.all[0]
            if (room := consumer.room()) <= 0 or not (entries := order.front(min(room, _TOGETHER))):
                return []
            sent = consumer.deliver_all(entries)
            return [(consumer, entries if sent == len(entries) else entries[:sent])] if sent else []
        return self._deliver_in_turn(order)

    def _deliver_in_turn(self, order: FifoOrder) -> list[tuple[Consumer, Sequence[Entry]]]:
        """As `deliver`, to several consumers: first each gets its share of the entries, then it is sent them."""
        rooms = [(consumer, room) for consumer in self.all if (room := consumer.room()) > 0]
        shares: dict[Consumer, list[Entry]] = {consumer: [] for consumer, _ in rooms}
        turns = deque(rooms)
        last = None
        for entry in order.front(min(sum(room for _, room in rooms), _TOGETHER)) if rooms else ():
            last, room = turns.popleft()
            shares[last].append(entry)
            if room > 1:
                turns.append((last, room - 1))
        if last is not None:  # it is the last one in the next turn, too
            self.all.rotate(-1 - self.all.index(last))
        delivered: list[tuple[Consumer, Sequence[Entry]]] = []
        for consumer, share in shares.items():
            if share and (sent := consumer.deliver_all(share)):
                delivered.append((consumer, share[:sent]))
        return delivered

    def next_match(self) -> tuple[Consumer, Entry] | None:
        """The next consumer that is ready and for which there is an entry, and the first such entry."""
        consumers = self.all
        for _ in range(len(consumers)):
            consumer = consumers[0]
            consumers.rotate(-1)
            if consumer.ready() and (entry := self._first_for(consumer)) is not None:
                return consumer, entry
        return None

    def next_taker(self, entry: Entry, groups: MessageGroups | None) -> Consumer | None:
        """The next consumer that is ready, and may have an entry."""
        consumers = self.all
        for _ in range(len(consumers)):
            consumer = consumers[0]
            consumers.rotate(-1)
            if (
                consumer.ready()
                and (consumer.selector is None or consumer.selector(entry.message))
                and (groups is None or groups.allows(entry, consumer))
                and consumer not in self._excluded.get(entry, ())
            ):
                return consumer
        return None

    def any_ready(self) -> bool:
        """True if a consumer is ready."""
        return any(consumer.ready() for consumer in self.all)

    def _first_for(self, consumer: Consumer) -> Entry | None:
        chosen = self._chosen.get(consumer)
        if chosen is None:
            return self._first_allowed(consumer, self._order) if self._excluded else self._order.first()
        while chosen and chosen[0].state is not AVAILABLE:
            chosen.popleft()
        if self._excluded:
            return self._first_allowed(consumer, chosen)
        return chosen[0] if chosen else None

    def _first_allowed(self, consumer: Consumer, entries: Iterable[Entry]) -> Entry | None:
        barred = self._excluded
        for entry in entries:
            if entry.state is AVAILABLE and consumer not in barred.get(entry, ()):
                return entry
        return None


def _position(entry: Entry) -> int:
    return entry.position
