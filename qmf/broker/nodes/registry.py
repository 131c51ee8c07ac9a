"""The broker's registry: which exchanges and queues there are, and how a message gets into them."""

from __future__ import annotations

import enum
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from qmf.broker.nodes.counters import Counters, ExchangeCounts, QueueCounts
from qmf.broker.nodes.exchanges import (
    BindingSpec,
    DirectExchange,
    Exchange,
    FanoutExchange,
    HeadersExchange,
    TopicExchange,
)
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import Limits, OverflowPolicy, Queue
from qmf.broker.observer import BrokerObserver

if TYPE_CHECKING:
    from qmf.broker.links.connection import Connection

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


class RoutingResult(enum.Enum):
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

    def route(self, message: Message) -> Queue | None:
        """The queue that the message is for, if there is one."""
        return self._queues.get(message.subject)


#: What an address can name.
Node = Exchange | Queue | DefaultExchange


class NameInUse(Exception):
    """A queue of this name exists already."""


class NodeRegistry:
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
        self.observer = BrokerObserver()
        self._limits = limits or Limits()
        self._exchanges = {name: kind(name) for name, kind in EXCHANGES}
        for domain in domains:
            for name, kind in ((f"qmf.{domain}.topic", TopicExchange), (f"qmf.{domain}.direct", DirectExchange)):
                self._exchanges.setdefault(name, kind(name))
        self._queues: dict[str, Queue] = {}
        self.default = DefaultExchange(self._queues)
        for name in queues:
            self.declare(name, overflow=OverflowPolicy.REFUSE)

    @property
    def exchanges(self) -> Collection[Exchange]:
        """All exchanges but the default one."""
        return self._exchanges.values()

    @property
    def queues(self) -> Collection[Queue]:
        """All queues."""
        return self._queues.values()

    def find(self, address: str) -> Node | None:
        """The node of that name. Exchanges come before queues; the empty name is the default exchange."""
        if not address:
            return self.default
        return self._exchanges.get(address) or self._queues.get(address)

    def declare(
        self, name: str, *, overflow: OverflowPolicy, exclusive: bool = False, client: Connection | None = None
    ) -> Queue:
        """Make a queue, for a client or for the broker itself.

        Raises:
            NameInUse: there is a node of that name.
        """
        if name in self._queues or name in self._exchanges:
            raise NameInUse(name)
        queue = self._queues[name] = Queue(name, self._limits, overflow, self.counters, self.clock, exclusive=exclusive)
        self.observer.declared(queue, client)
        return queue

    def bind(self, exchange: Exchange, queue: Queue, match: BindingSpec, client: Connection | None = None) -> None:
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

    def publish(self, target: Node | None, message: Message) -> RoutingResult:
        """Route a message that was sent to `target`; None stands for a name that nothing has."""
        self.counters.received += 1
        if isinstance(target, Queue):
            if target.put(message):
                target.counts.by_name += 1
                return RoutingResult.TAKEN
            self.counters.rejected += 1
            return RoutingResult.FULL
        if target is None:
            self.counters.discarded += 1
            log.debug("discarded a message to %r, which is no exchange or queue", message.to)
            return RoutingResult.DISCARDED
        counts, size = target.counts, len(message.data)
        counts.received += 1
        counts.received_bytes += size
        taken = 0
        full = False
        if isinstance(target, DefaultExchange):
            if (queue := target.route(message)) is not None:
                full = not queue.put(message)
                if not full:
                    queue.counts.by_default += 1
                    taken = 1
        else:
            for queue in target.route(message):
                if queue.put(message):
                    taken += 1
        if taken:
            if taken > 1:
                counts.copies += taken - 1
                counts.copies_bytes += (taken - 1) * size
            return RoutingResult.TAKEN
        counts.discarded += 1
        counts.discarded_bytes += size
        if full:
            self.counters.rejected += 1
            return RoutingResult.FULL
        self.counters.discarded += 1
        return RoutingResult.DISCARDED


__all__ = ["EXCHANGES", "BindingSpec", "DefaultExchange", "NameInUse", "Node", "NodeRegistry", "RoutingResult"]
