"""The broker's directory: which exchanges and queues there are, and how a message gets into them."""

from __future__ import annotations

import enum
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from qmf.broker.counters import Counters, ExchangeCounts, QueueCounts
from qmf.broker.exchanges import (
    DirectExchange,
    Exchange,
    FanoutExchange,
    HeadersExchange,
    Match,
    TopicExchange,
)
from qmf.broker.observer import Observer
from qmf.broker.parcel import Parcel
from qmf.broker.queues import Limits, Overflow, Queue

if TYPE_CHECKING:
    from qmf.broker.connection import Connection

log = logging.getLogger("qmf.broker")

#: The exchanges that are always there: AMQP 0-10's own, and those of QMF in its default domain (QMF2.md 1).
EXCHANGES: tuple[tuple[str, type[Exchange]], ...] = (
    ("amq.topic", TopicExchange),
    ("amq.direct", DirectExchange),
    ("amq.fanout", FanoutExchange),
    ("amq.match", HeadersExchange),
    ("qmf.default.topic", TopicExchange),
    ("qmf.default.direct", DirectExchange),
    ("qpid.management", TopicExchange),
)


class Routed(enum.Enum):
    """What became of a message."""

    TAKEN = "taken"
    DISCARDED = "discarded"  #: nobody wants it; its sender is not told, as qpidd does it
    FULL = "full"


class DefaultExchange:
    """The nameless exchange: the routing key is the name of a queue.

    Attributes:
        name, kind, counts: as of `Exchange`.
    """

    name = ""
    kind = DirectExchange.kind

    def __init__(self, queues: Mapping[str, Queue]) -> None:
        self.counts = ExchangeCounts()
        self._queues = queues

    @property
    def bindings(self) -> int:
        """Number of queues: each is bound with its name."""
        return len(self._queues)

    def route(self, parcel: Parcel) -> Queue | None:
        """The queue that the message is for, if there is one."""
        return self._queues.get(parcel.subject)


#: What an address can name.
Target = Exchange | Queue | DefaultExchange


class NameTaken(Exception):
    """A queue of this name exists already."""


class Directory:
    """All nodes of a broker.

    Attributes:
        counters: totals of the broker.
        gone: what queues counted that are no more.
        clock: seconds; for times to live.
        observer: who is told what comes and goes.
    """

    def __init__(
        self,
        *,
        queues: Iterable[str] = (),
        domains: Iterable[str] = (),
        limits: Limits | None = None,
        counters: Counters | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Args:

        queues: names of queues that exist from the start.
        domains: QMF domains besides ``default`` whose exchanges exist.
        limits: of each queue.
        counters: where to count.
        clock: seconds; for times to live.
        """
        self.counters = counters if counters is not None else Counters()
        self.gone = QueueCounts()
        self.clock = clock
        self.observer = Observer()
        self._limits = limits or Limits()
        self._exchanges = {name: kind(name) for name, kind in EXCHANGES}
        for domain in domains:
            for name, kind in ((f"qmf.{domain}.topic", TopicExchange), (f"qmf.{domain}.direct", DirectExchange)):
                self._exchanges.setdefault(name, kind(name))
        self._queues: dict[str, Queue] = {}
        self.default = DefaultExchange(self._queues)
        for name in queues:
            self.declare(name, overflow=Overflow.REFUSE)

    @property
    def exchanges(self) -> Collection[Exchange]:
        """All exchanges but the default one."""
        return self._exchanges.values()

    @property
    def queues(self) -> Collection[Queue]:
        """All queues."""
        return self._queues.values()

    def find(self, address: str) -> Target | None:
        """The node of that name. Exchanges come before queues; the empty name is the default exchange."""
        if not address:
            return self.default
        return self._exchanges.get(address) or self._queues.get(address)

    def declare(
        self, name: str, *, overflow: Overflow, exclusive: bool = False, client: Connection | None = None
    ) -> Queue:
        """Make a queue, for a client or for the broker itself.

        Raises:
            NameTaken: there is a node of that name.
        """
        if name in self._queues or name in self._exchanges:
            raise NameTaken(name)
        queue = self._queues[name] = Queue(name, self._limits, overflow, self.counters, self.clock, exclusive=exclusive)
        self.observer.declared(queue, client)
        return queue

    def bind(self, exchange: Exchange, queue: Queue, match: Match, client: Connection | None = None) -> None:
        """Have an exchange send a queue what matches."""
        exchange.bind(queue, match)
        self.observer.bound(exchange, queue, match, client)

    def delete(self, queue: Queue, client: Connection | None = None) -> None:
        """Remove a queue with its bindings and messages."""
        if self._queues.get(queue.name) is queue:
            queue.counts.abandoned += len(queue)
            self.observer.deleted(queue, client)
            self.gone.add(queue.counts)
            del self._queues[queue.name]
        for exchange in self._exchanges.values():
            exchange.unbind(queue)

    def publish(self, target: Target | None, parcel: Parcel) -> Routed:
        """Route a message that was sent to `target`; None stands for a name that nothing has."""
        self.counters.received += 1
        if isinstance(target, Queue):
            if target.put(parcel):
                target.counts.by_name += 1
                return Routed.TAKEN
            self.counters.rejected += 1
            return Routed.FULL
        if target is None:
            self.counters.discarded += 1
            log.debug("discarded a message to %r, which is no exchange or queue", parcel.to)
            return Routed.DISCARDED
        counts, size = target.counts, len(parcel.data)
        counts.received += 1
        counts.received_bytes += size
        taken = 0
        full = False
        if isinstance(target, DefaultExchange):
            if (queue := target.route(parcel)) is not None:
                full = not queue.put(parcel)
                if not full:
                    queue.counts.by_default += 1
                    taken = 1
        else:
            for queue in target.route(parcel):
                if queue.put(parcel):
                    taken += 1
        if taken:
            if taken > 1:
                counts.copies += taken - 1
                counts.copies_bytes += (taken - 1) * size
            return Routed.TAKEN
        counts.discarded += 1
        counts.discarded_bytes += size
        if full:
            self.counters.rejected += 1
            return Routed.FULL
        self.counters.discarded += 1
        return Routed.DISCARDED


__all__ = ["EXCHANGES", "DefaultExchange", "Directory", "Match", "NameTaken", "Routed", "Target"]
