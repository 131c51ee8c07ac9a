"""The nodes of a broker as managed objects: `sample` brings their statistics up to date.

Whatever the broker does not know or do stays unset: there are no durable messages, transactions, last-value queues,
redirections and links to other brokers here.
"""

from __future__ import annotations

import math
import platform
import uuid
from collections.abc import Callable, Mapping
from typing import Never

from qmf._version import __version__
from qmf.agent import MethodError
from qmf.broker.management.sampling import SampledObject
from qmf.broker.management.values import long, plain, short
from qmf.broker.nodes.counters import ExchangeCounts, QueueCounts
from qmf.broker.nodes.exchanges import BindingSpec, Exchange
from qmf.broker.nodes.queues import OverflowPolicy, Queue
from qmf.broker.nodes.registry import DefaultExchange, NodeRegistry
from qmf.models.broker import agent as model

#: Name of the broker within its agent, as with qpidd: programs know it.
BROKER = "amqp-broker"

_POLICIES = {OverflowPolicy.DROP_OLDEST: "ring", OverflowPolicy.REFUSE: "reject"}


def unsupported(name: str) -> Callable[..., Never]:
    """A method that is refused; `name` is its class's and its own."""

    def refuse(*_args: object, **_kwargs: object) -> Never:
        raise MethodError(f"{name} is not supported by this broker")

    return refuse


class ManagedSystem(model.System, SampledObject):
    """The machine."""

    def __init__(self) -> None:
        machine = platform.uname()
        super().__init__(
            systemId=uuid.uuid4(),
            osName=short(machine.system),
            nodeName=short(machine.node),
            release=short(machine.release),
            version=short(machine.version),
            machine=short(machine.machine),
        )


class ManagedBroker(model.Broker, SampledObject):
    """The broker, with totals over the queues that are there and those that were."""

    def __init__(
        self, system: model.System, registry: NodeRegistry, *, port: int, backlog: int, interval: float
    ) -> None:
        """Args:

        system: where it runs.
        registry: of the broker.
        port, backlog: of the listening socket.
        interval: seconds between publications.
        """
        super().__init__(
            name=BROKER,
            systemRef=system,
            port=port,
            workerThreads=1,
            connBacklog=backlog,
            mgmtPublish=True,
            mgmtPubInterval=min(65_535, max(1, math.ceil(interval))),
            version=short(__version__),
        )
        self._registry = registry
        self._started = registry.clock()

    def sample(self) -> None:
        """Read the counters."""
        registry = self._registry
        total = QueueCounts()
        total.add(registry.gone)
        depth = depth_bytes = 0
        for queue in registry.queues:
            total.add(queue.counts)
            count, size = queue.depth()
            depth += count
            depth_bytes += size
        self.uptime = max(0, round((registry.clock() - self._started) * 1e9))
        self.queueCount.set(len(registry.queues))
        _sample_queue(self, total, depth, depth_bytes)
        self.discardsNoRoute.set(registry.counters.discarded)
        self.abandoned.set(total.abandoned)

    def echo(self, sequence: int, body: str) -> model.BrokerEchoResult:
        """See the schema."""
        return model.BrokerEchoResult(sequence=sequence, body=body)

    connect = unsupported("Broker.connect")
    queueMoveMessages = unsupported("Broker.queueMoveMessages")
    setLogLevel = unsupported("Broker.setLogLevel")
    getLogLevel = unsupported("Broker.getLogLevel")
    getTimestampConfig = unsupported("Broker.getTimestampConfig")
    setTimestampConfig = unsupported("Broker.setTimestampConfig")
    create = unsupported("Broker.create")
    delete = unsupported("Broker.delete")
    query = unsupported("Broker.query")
    getLogHiresTimestamp = unsupported("Broker.getLogHiresTimestamp")
    setLogHiresTimestamp = unsupported("Broker.setLogHiresTimestamp")
    queueRedirect = unsupported("Broker.queueRedirect")
    shutdown = unsupported("Broker.shutdown")

    def _qmf_set_property(self, name: str, value: object) -> Never:  # noqa: ARG002
        raise MethodError(f"setting Broker.{name} is not supported by this broker")


class ManagedVhost(model.Vhost, SampledObject):
    """The only virtual host."""

    def __init__(self, broker: model.Broker) -> None:
        super().__init__(brokerRef=broker, name="/")


class ManagedQueue(model.Queue, SampledObject):
    """A queue.

    Attributes:
        bindings: those that lead to it.
    """

    def __init__(self, vhost: model.Vhost, queue: Queue, *, temporary: bool, creator: str) -> None:
        """Args:

        vhost: where it is.
        queue: of the broker.
        temporary: it ends with the link that made it.
        creator: user who made it; empty for the broker.
        """
        super().__init__(
            vhostRef=vhost,
            name=short(queue.name),
            durable=False,
            autoDelete=temporary,
            exclusive=queue.exclusive,
            arguments={
                "qpid.max_count": queue.limits.count,
                "qpid.max_size": queue.limits.size,
                "qpid.policy_type": _POLICIES[queue.overflow],
            },
        )
        self.creator = short(creator)
        self.bindings = 0
        self._queue = queue

    def sample(self) -> None:
        """Read the counters."""
        queue = self._queue
        _sample_queue(self, queue.counts, *queue.depth())
        self.consumerCount.set(queue.consumers)
        self.bindingCount.set(self.bindings)

    def purge(self, request: int, filter: Mapping[str, object]) -> None:
        """See the schema. Messages that a receiver holds are not thrown away."""
        if filter:
            raise MethodError("Queue.purge with a filter is not supported by this broker")
        self._queue.purge(request)

    reroute = unsupported("Queue.reroute")


class ManagedExchange(model.Exchange, SampledObject):
    """An exchange."""

    def __init__(self, vhost: model.Vhost, exchange: Exchange | DefaultExchange) -> None:
        super().__init__(
            vhostRef=vhost, name=short(exchange.name), type=exchange.kind, durable=False, autoDelete=False, arguments={}
        )
        self._exchange = exchange

    def sample(self) -> None:
        """Read the counters."""
        counts: ExchangeCounts = self._exchange.counts
        self.bindingCount.set(self._exchange.bindings)
        self.msgReceives.set(counts.received)
        self.byteReceives.set(counts.received_bytes)
        self.msgRoutes.set(counts.routed)
        self.byteRoutes.set(counts.routed_bytes)
        self.msgDrops.set(counts.discarded)
        self.byteDrops.set(counts.discarded_bytes)


class ManagedBinding(model.Binding, SampledObject):
    """A binding, with the number of messages that came by it."""

    def __init__(
        self, exchange: ManagedExchange, queue: ManagedQueue, match: BindingSpec, matched: Callable[[], int]
    ) -> None:
        """Args:

        exchange, queue: what it joins.
        match: which messages.
        matched: gives how many came by it.
        """
        super().__init__(
            exchangeRef=exchange, queueRef=queue, bindingKey=long(match.key), arguments=plain(match.headers)
        )
        self._matched = matched

    def sample(self) -> None:
        """Read the counters."""
        self.msgMatched.set(self._matched())


def _sample_queue(it: model.Queue | model.Broker, counts: QueueCounts, depth: int, size: int) -> None:
    """What a queue and the whole broker have in common; `depth` and `size` are what has not left for good."""
    it.msgTotalEnqueues.set(counts.enqueues)
    it.byteTotalEnqueues.set(counts.enqueued_bytes)
    it.msgTotalDequeues.set(counts.enqueues - depth)
    it.byteTotalDequeues.set(counts.enqueued_bytes - size)
    it.acquires.set(counts.acquires)
    it.releases.set(counts.releases)
    it.discardsTtl.set(counts.expired)
    it.discardsRing.set(counts.dropped)
    it.discardsOverflow.set(counts.refused)
    it.discardsSubscriber.set(counts.rejected)
    it.discardsPurge.set(counts.purged)
