"""The registry of the broker's nodes: which exchanges and queues exist, and how a message is published to them."""

from __future__ import annotations

import enum
import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence

from qmf.broker.nodes.counters import BrokerCounters, QueueCounters
from qmf.broker.nodes.exchanges import (
    BindingSpec,
    DefaultExchange,
    DirectExchange,
    Exchange,
    FanoutExchange,
    HeadersExchange,
    TopicExchange,
)
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.node_declaration import NodeDeclaration
from qmf.broker.nodes.queues import OverflowPolicy, Queue, QueueLimits
from qmf.broker.observer import BrokerClient, BrokerObserver

log = logging.getLogger("qmf.broker")

#: The exchanges of every broker: AMQP 0-10's own, and those of QMF in its default domain (QMF2.md 1).
PREDECLARED_EXCHANGES: tuple[tuple[str, type[Exchange]], ...] = (
    ("amq.topic", TopicExchange),
    ("amq.direct", DirectExchange),
    ("amq.fanout", FanoutExchange),
    ("amq.match", HeadersExchange),
    ("qmf.default.topic", TopicExchange),
    ("qmf.default.direct", DirectExchange),
    ("qpid.management", TopicExchange),
)


class RoutingResult(enum.Enum):
    """What became of a published message."""

    ROUTED = "routed"  #: at least one queue has it
    DISCARDED = "discarded"  #: nothing matched; like qpidd, the broker accepts such a message from its sender
    QUEUE_FULL = "queue full"  #: the queue that it was for refused it


#: What an address names.
Node = Exchange | Queue | DefaultExchange


class NameInUse(Exception):
    """An exchange or a queue of this name exists already."""


class BindingExists(Exception):
    """A queue has a binding to the exchange with the same key and other arguments."""


class NodeRegistry:
    """All nodes of a broker.

    Attributes:
        default_exchange: the nameless exchange.
        counters: totals of the broker.
        deleted_queues: totals of the queues that were deleted.
        clock: returns seconds; for times to live.
        observer: notified of what is created and deleted; may be replaced.
        on_deleted: called after a node was deleted; may be replaced.
    """

    def __init__(
        self,
        *,
        queues: Iterable[str] = (),
        domains: Iterable[str] = (),
        limits: QueueLimits | None = None,
        counters: BrokerCounters | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Args:

        queues: names of queues that exist from the start.
        domains: QMF domains besides ``default`` whose exchanges exist.
        limits: of each queue.
        counters: the totals to update.
        clock: returns seconds; for times to live.
        """
        self.counters = counters if counters is not None else BrokerCounters()
        self.deleted_queues = QueueCounters()
        self.clock = clock
        self.observer = BrokerObserver()
        self.on_deleted: Callable[[Queue | Exchange], None] = lambda _: None
        self._limits = limits or QueueLimits()
        self._exchanges = {name: kind(name) for name, kind in PREDECLARED_EXCHANGES}
        for domain in domains:
            for name, kind in ((f"qmf.{domain}.topic", TopicExchange), (f"qmf.{domain}.direct", DirectExchange)):
                self._exchanges.setdefault(name, kind(name))
        self._predeclared = frozenset(self._exchanges)
        self._queues: dict[str, Queue] = {}
        self.default_exchange = DefaultExchange(self._queues)
        for name in queues:
            self.declare_queue(name, overflow=OverflowPolicy.REFUSE)

    @property
    def exchanges(self) -> Collection[Exchange]:
        """All exchanges but the default one."""
        return self._exchanges.values()

    @property
    def queues(self) -> Collection[Queue]:
        """All queues."""
        return self._queues.values()

    def find(self, address: str) -> Node | None:
        """The node that an address names, or None. The empty address names the default exchange."""
        if not address:
            return self.default_exchange
        return self._exchanges.get(address) or self._queues.get(address)

    def create(self, name: str, declaration: NodeDeclaration, client: BrokerClient | None = None) -> Queue | Exchange:
        """Create a node for a client, or for the broker itself (None).

        Raises:
            NameInUse: a node of that name exists.
        """
        if declaration.exchange is not None:
            if name in self._queues or name in self._exchanges:
                raise NameInUse(name)
            exchange = self._exchanges[name] = declaration.exchange(name)
            self.observer.on_exchange_declared(exchange, client)
            return exchange
        return self.declare_queue(
            name,
            overflow=declaration.overflow,
            exclusive=declaration.exclusive,
            auto_delete=declaration.auto_delete or declaration.delete_on_close,
            limits=declaration.limits(self._limits),
            client=client,
        )

    def is_predeclared(self, exchange: Exchange | DefaultExchange) -> bool:
        """True for an exchange that exists from the start: it is not to be deleted."""
        return exchange.name in self._predeclared or exchange is self.default_exchange

    def delete(self, node: Queue | Exchange, client: BrokerClient | None = None) -> None:
        """Delete a node, for a client or for the broker itself (None)."""
        if isinstance(node, Queue):
            self.delete_queue(node, client)
        elif self._exchanges.get(node.name) is node:
            self.observer.on_exchange_deleted(node, client)
            del self._exchanges[node.name]
            self.on_deleted(node)

    def targets(self, node: Node | None, message: Message) -> Sequence[Queue]:
        """The queues that a message to `node` would be put into now."""
        if node is None:
            return ()
        if isinstance(node, Queue):
            return (node,)
        if isinstance(node, DefaultExchange):
            queue = node.route(message)
            return () if queue is None else (queue,)
        return node.route(message)

    def declare_queue(
        self,
        name: str,
        *,
        overflow: OverflowPolicy,
        exclusive: bool = False,
        auto_delete: bool = False,
        limits: QueueLimits | None = None,
        client: BrokerClient | None = None,
    ) -> Queue:
        """Create a queue.

        Args:
            name: its name.
            overflow: what it does when it is full.
            exclusive: allow only one consumer.
            auto_delete: delete it when its last consumer is gone.
            limits: None for those of the broker.
            client: on whose behalf; None for the broker itself.

        Raises:
            NameInUse: a node of that name exists.
        """
        if name in self._queues or name in self._exchanges:
            raise NameInUse(name)
        queue = self._queues[name] = Queue(
            name,
            limits or self._limits,
            overflow,
            self.counters,
            self.clock,
            exclusive=exclusive,
            auto_delete=auto_delete,
        )
        self.observer.on_queue_declared(queue, client)
        return queue

    def bind(self, exchange: Exchange, queue: Queue, spec: BindingSpec, client: BrokerClient | None = None) -> None:
        """Bind a queue to an exchange, for a client or for the broker itself (None).

        Does nothing when it has that binding.

        Raises:
            BindingExists: it has a binding with the same key and other arguments.
        """
        if exchange.bind(queue, spec):
            self.observer.on_bound(exchange, queue, spec, client)
        elif spec not in exchange.bindings(queue):
            raise BindingExists(
                f"queue {queue.name!r} has a binding to exchange {exchange.name!r} with the key {spec.key!r} "
                "and other arguments"
            )

    def unbind(self, exchange: Exchange, queue: Queue, key: str, client: BrokerClient | None = None) -> bool:
        """Remove a binding, for a client or for the broker itself (None); False if there is none with this key."""
        for spec in exchange.bindings(queue):
            if spec.key == key:
                self.observer.on_unbound(exchange, queue, spec, client)
                exchange.unbind(queue, key)
                return True
        return False

    def delete_queue(self, queue: Queue, client: BrokerClient | None = None) -> None:
        """Delete a queue with its bindings and messages, for a client or for the broker itself (None)."""
        if self._queues.get(queue.name) is not queue:
            return
        queue.counters.abandoned += len(queue)
        self.observer.on_queue_deleted(queue, client)
        self.deleted_queues.add(queue.counters)
        del self._queues[queue.name]
        for exchange in self._exchanges.values():
            for spec in exchange.bindings(queue):
                exchange.unbind(queue, spec.key)
        self.on_deleted(queue)

    def publish(self, node: Node | None, message: Message) -> RoutingResult:
        """Route a message that was sent to `node`; None means that its address names nothing."""
        self.counters.received += 1
        if node is None:
            self.counters.discarded += 1
            log.debug("discarded a message to %r, which is neither an exchange nor a queue", message.to)
            return RoutingResult.DISCARDED
        if isinstance(node, Queue):
            if node.enqueue(message):
                node.counters.by_name += 1
                return RoutingResult.ROUTED
            self.counters.rejected += 1
            return RoutingResult.QUEUE_FULL
        return self._publish_to_exchange(node, message)

    def _publish_to_exchange(self, exchange: Exchange | DefaultExchange, message: Message) -> RoutingResult:
        counters, size = exchange.counters, len(message.data)
        counters.received += 1
        counters.received_bytes += size
        copies = 0
        full = False
        if isinstance(exchange, DefaultExchange):
            if (queue := exchange.route(message)) is not None:
                full = not queue.enqueue(message)
                if not full:
                    queue.counters.by_default += 1
                    copies = 1
        else:
            for queue in exchange.route(message):
                if queue.enqueue(message):
                    copies += 1
        if copies:
            if copies > 1:
                counters.copies += copies - 1
                counters.copies_bytes += (copies - 1) * size
            return RoutingResult.ROUTED
        counters.discarded += 1
        counters.discarded_bytes += size
        if full:
            self.counters.rejected += 1
            return RoutingResult.QUEUE_FULL
        self.counters.discarded += 1
        return RoutingResult.DISCARDED
