"""The broker and its nodes as managed objects.

Properties and statistics without a meaning for this broker stay unset.
"""

from __future__ import annotations

import logging
import math
import platform
import uuid
from collections.abc import Awaitable, Mapping
from typing import Never

from qmf._version import __version__
from qmf.agent import ErrorCode, MethodError
from qmf.broker.management.administration import Administration
from qmf.broker.management.callers import refusal
from qmf.broker.management.sampling import SampledObject
from qmf.broker.management.setup import BrokerSetup
from qmf.broker.management.values import lstr, simple_map, sstr
from qmf.broker.nodes.bindings import Binding
from qmf.broker.nodes.counters import ExchangeCounters, QueueCounters
from qmf.broker.nodes.exchanges import DefaultExchange, Exchange
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.settings import ExchangeSettings
from qmf.broker.nodes.topics import NodePolicy, Topic
from qmf.broker.process_control import ProcessControl
from qmf.models.broker import agent as model

log = logging.getLogger("qmf.broker")

#: Name of the broker object, as with qpidd: programs rely on it.
BROKER = "amqp-broker"


class ManagedSystem(model.System, SampledObject):
    """The machine."""

    def __init__(self, system_id: uuid.UUID) -> None:
        machine = platform.uname()
        super().__init__(
            systemId=system_id,
            osName=sstr(machine.system),
            nodeName=sstr(machine.node),
            release=sstr(machine.release),
            version=sstr(machine.version),
            machine=sstr(machine.machine),
        )


class ManagedBroker(model.Broker, SampledObject):
    """The broker, with totals over all queues, deleted ones included."""

    def __init__(
        self,
        system: model.System,
        registry: NodeRegistry,
        process: ProcessControl | None,
        setup: BrokerSetup,
        administration: Administration,
    ) -> None:
        """Make the object of the broker.

        Args:
            process: what consoles may change in the process of the broker; None for nothing.
        """
        super().__init__(
            name=BROKER,
            systemRef=system,
            port=setup.port,
            workerThreads=1,
            maxConns=min(65_535, setup.connection_limits.total),
            connBacklog=setup.backlog,
            stagingThreshold=0,
            mgmtPublish=setup.publishes,
            mgmtPubInterval=min(65_535, max(1, math.ceil(setup.interval))),
            version=sstr(__version__),
            dataDir=None if setup.data_dir is None else lstr(str(setup.data_dir)),
        )
        self._registry = registry
        self._process = process
        self._administration = administration
        self._started = registry.clock()

    def sample(self) -> None:
        registry = self._registry
        total = QueueCounters()
        total.add(registry.deleted_queues)
        depth = depth_bytes = 0
        for queue in registry.queues:
            total.add(queue.counters)
            depth += queue.contents.depth.count
            depth_bytes += queue.contents.depth.size
        self.uptime = max(0, round((registry.clock() - self._started) * 1e9))
        self.queueCount.set(len(registry.queues))
        _sample_queue(self, total, depth, depth_bytes)
        self.discardsNoRoute.set(registry.counters.discarded)
        self.abandoned.set(registry.counters.abandoned)
        self.abandonedViaAlt.set(registry.counters.abandoned_to_alternate)

    def echo(self, sequence: int, body: str) -> model.BrokerEchoResult:
        return model.BrokerEchoResult(sequence=sequence, body=body)

    def create(self, type: str, name: str, properties: Mapping[str, object], strict: bool) -> Awaitable[None]:
        """See the schema. It is answered when it is on the disk."""
        self._administration.create(type, name, properties, strict)
        return self._administration.wait_until_stored()

    def delete(self, type: str, name: str, options: Mapping[str, object]) -> Awaitable[None]:
        """See the schema. It is answered when it is on the disk."""
        self._administration.delete(type, name, options)
        return self._administration.wait_until_stored()

    def query(self, type: str, name: str) -> model.BrokerQueryResult:
        queue = self._administration.queue(type, name)
        contents, delivery = queue.contents, queue.delivery
        results: dict[str, object] = {
            "name": queue.name,
            "msgDepth": contents.depth.count,
            "byteDepth": contents.depth.size,
            "consumerCount": len(delivery.consumers),
        }
        if contents.delayed_count:
            results["delayedCount"] = contents.delayed_count
        if delivery.groups is not None:
            results["qpid.message_group_queue"] = {
                "group_header_key": delivery.groups.key,
                "group_state": [
                    {
                        "group_id": name,
                        "msg_count": count,
                        "timestamp": delivery.groups.began(name),
                        "consumer": "" if owner is None else _name_of(owner),
                    }
                    for name, (count, owner) in delivery.groups.owners().items()
                ],
            }
        return model.BrokerQueryResult(results=results)

    def queueMoveMessages(self, srcQueue: str, destQueue: str, qty: int, filter: Mapping[str, object]) -> None:
        self._administration.move(srcQueue, destQueue, qty, filter)

    def queueRedirect(self, sourceQueue: str, targetQueue: str) -> None:
        self._administration.redirect(sourceQueue, targetQueue)

    def getLogLevel(self) -> model.BrokerGetLogLevelResult:
        return model.BrokerGetLogLevelResult(level=self._control_for("getLogLevel").log_rules)

    def setLogLevel(self, level: str) -> None:
        try:
            self._control_for("setLogLevel").set_log_rules(level)
        except ValueError as error:
            raise MethodError(str(error)) from error

    def getLogHiresTimestamp(self) -> model.BrokerGetLogHiresTimestampResult:
        precise = self._control_for("getLogHiresTimestamp").precise_times
        return model.BrokerGetLogHiresTimestampResult(logHires=precise)

    def setLogHiresTimestamp(self, logHires: bool) -> None:
        self._control_for("setLogHiresTimestamp").set_precise_times(logHires)

    def shutdown(self) -> None:
        self._control_for("shutdown").shut_down()

    def _control_for(self, method: str) -> ProcessControl:
        if self._process is None:
            raise refusal(ErrorCode.NOT_IMPLEMENTED, f"Broker.{method}: the broker runs within another program")
        return self._process

    def getTimestampConfig(self) -> model.BrokerGetTimestampConfigResult:
        return model.BrokerGetTimestampConfigResult(receive=self._administration.timestamps())

    def setTimestampConfig(self, receive: bool) -> None:
        self._administration.set_timestamps(receive=receive)
        log.log(25, "messages that come get %s timestamp", "a" if receive else "no")

    def connect(
        self,
        host: str,
        port: int,
        durable: bool,
        authMechanism: str,
        username: str,
        password: str,
        transport: str,
    ) -> Awaitable[None]:
        """See the schema. It is answered when it is on the disk."""
        login = {"authMechanism": authMechanism, "username": username, "password": password}
        self._administration.connect(host, port, transport, {"durable": durable, **login})
        return self._administration.wait_until_stored()

    def _qmf_set_property(self, name: str, value: object) -> Never:  # noqa: ARG002
        raise MethodError(f"setting Broker.{name} is not supported by this broker")


class ManagedVhost(model.Vhost, SampledObject):
    """The only virtual host."""

    def __init__(self, broker: model.Broker, tag: str) -> None:
        """Make the object of the virtual host; `tag`: identifies the broker among others."""
        super().__init__(brokerRef=broker, name="/", federationTag=tag)


class ManagedQueue(model.Queue, SampledObject):
    """A queue. What has high and low values is counted when it changes, the rest when it is read."""

    def __init__(
        self,
        vhost: model.Vhost,
        queue: Queue,
        administration: Administration,
        *,
        alternate: ManagedExchange | None,
        creator: str,
    ) -> None:
        """Make the object of a queue.

        Args:
            alternate: its alternate exchange; None for none.
            creator: user that created it; empty for the broker.
        """
        super().__init__(
            vhostRef=vhost,
            name=sstr(queue.name),
            durable=queue.settings.durable,
            autoDelete=queue.settings.auto_delete,
            exclusive=queue.settings.exclusive,
            arguments=simple_map(queue.settings.arguments),
            altExchange=alternate,
        )
        self.creator = sstr(creator)
        # Every queue begins without receivers and with its binding to the default exchange.
        self.consumerCount.set(0)
        self.unackedMessages.set(0)
        self._bindings = 0
        self.count_binding(1)
        self._queue = queue
        self._administration = administration

    def sample(self) -> None:
        queue = self._queue
        _sample_queue(self, queue.counters, queue.contents.depth.count, queue.contents.depth.size)
        self.sample_consumers()
        self.unackedMessages.set(queue.contents.acquired_count)
        self.flowStopped = queue.flow is not None and queue.flow.stopped
        self.flowStoppedCount.set(queue.counters.flow_stops)
        self.redirectPeer = sstr("" if queue.redirected is None else queue.redirected.name)
        self.redirectSource = queue.redirect_source

    def sample_consumers(self) -> None:
        """Update the number of receivers; browsers are counted as well, as with qpidd."""
        self.consumerCount.set(self._queue.delivery.receiver_count)

    def count_binding(self, change: int) -> None:
        """A binding was created (1) or is about to be removed (-1)."""
        self._bindings += change
        self.bindingCount.set(self._bindings)

    def purge(self, request: int, filter: Mapping[str, object]) -> None:
        """See the schema. Unsettled messages are not removed."""
        self._administration.purge(self._queue, request, filter)

    def reroute(self, request: int, useAltExchange: bool, exchange: str, filter: Mapping[str, object]) -> None:
        """See the schema. Unsettled messages are not sent."""
        self._administration.reroute(self._queue, request, None if useAltExchange else exchange, filter)


class ManagedExchange(model.Exchange, SampledObject):
    """An exchange."""

    def __init__(
        self, vhost: model.Vhost, exchange: Exchange | DefaultExchange, alternate: ManagedExchange | None = None
    ) -> None:
        settings = exchange.settings if isinstance(exchange, Exchange) else ExchangeSettings(exchange.kind)
        super().__init__(
            vhostRef=vhost,
            name=sstr(exchange.name),
            type=exchange.kind,
            durable=settings.durable,
            autoDelete=settings.auto_delete,
            arguments=simple_map(settings.arguments),
            altExchange=alternate,
        )
        self._exchange = exchange

    def sample(self) -> None:
        counters: ExchangeCounters = self._exchange.counters
        self.sample_bindings()
        self.msgReceives.set(counters.received)
        self.byteReceives.set(counters.received_bytes)
        self.msgRoutes.set(counters.routed)
        self.byteRoutes.set(counters.routed_bytes)
        self.msgDrops.set(counters.discarded)
        self.byteDrops.set(counters.discarded_bytes)

    def sample_bindings(self) -> None:
        """Update the number of bindings."""
        self.bindingCount.set(self._exchange.binding_count)


class ManagedBinding(model.Binding, SampledObject):
    """A binding, with the number of messages that it routed."""

    def __init__(self, exchange: ManagedExchange, queue: ManagedQueue, binding: Binding) -> None:
        spec = binding.spec
        super().__init__(
            exchangeRef=exchange, queueRef=queue, bindingKey=lstr(spec.key), arguments=simple_map(spec.headers)
        )
        self._binding = binding

    def sample(self) -> None:
        self.msgMatched.set(self._binding.matched)


def _name_of(consumer: object) -> str:
    return str(getattr(consumer, "name", ""))


def _sample_queue(obj: model.Queue | model.Broker, counters: QueueCounters, depth: int, size: int) -> None:
    """The statistics that queues and the broker share; `depth` and `size` as of `Queue.depth`."""
    obj.msgTotalEnqueues.set(counters.enqueues)
    obj.byteTotalEnqueues.set(counters.enqueued_bytes)
    obj.msgTotalDequeues.set(counters.enqueues - depth)
    obj.byteTotalDequeues.set(counters.enqueued_bytes - size)
    obj.msgTxnEnqueues.set(counters.transactional_enqueues)
    obj.byteTxnEnqueues.set(counters.transactional_enqueued_bytes)
    obj.msgTxnDequeues.set(counters.transactional_dequeues)
    obj.byteTxnDequeues.set(counters.transactional_dequeued_bytes)
    obj.msgPersistEnqueues.set(counters.durable_enqueues)
    obj.bytePersistEnqueues.set(counters.durable_enqueued_bytes)
    obj.msgPersistDequeues.set(counters.durable_dequeues)
    obj.bytePersistDequeues.set(counters.durable_dequeued_bytes)
    obj.acquires.set(counters.acquires)
    obj.releases.set(counters.releases)
    obj.discardsTtl.set(counters.expired)
    obj.discardsRing.set(counters.dropped)
    obj.discardsLvq.set(counters.replaced)
    obj.discardsOverflow.set(counters.refused)
    obj.discardsSubscriber.set(counters.rejected)
    obj.discardsPurge.set(counters.purged)
    obj.reroutes.set(counters.rerouted)
    obj.msgFtdEnqueues.set(counters.paged)
    obj.byteFtdEnqueues.set(counters.paged_bytes)
    obj.msgFtdDequeues.set(counters.paged_dequeues)
    obj.byteFtdDequeues.set(counters.paged_dequeued_bytes)
    obj.msgFtdDepth.set(counters.paged - counters.paged_dequeues)
    obj.byteFtdDepth.set(counters.paged_bytes - counters.paged_dequeued_bytes)


class ManagedTopic(model.Topic, SampledObject):
    """A topic."""

    def __init__(self, topic: Topic, exchange: model.Exchange | None) -> None:
        super().__init__(
            name=sstr(topic.name),
            exchangeRef=exchange,
            durable=topic.durable,
            properties=simple_map(topic.properties),
        )


class ManagedQueuePolicy(model.QueuePolicy, SampledObject):
    """A policy that creates queues."""

    def __init__(self, policy: NodePolicy) -> None:
        super().__init__(name=sstr(policy.pattern), properties=simple_map(policy.properties))


class ManagedTopicPolicy(model.TopicPolicy, SampledObject):
    """A policy that creates topics."""

    def __init__(self, policy: NodePolicy) -> None:
        super().__init__(name=sstr(policy.pattern), properties=simple_map(policy.properties))
