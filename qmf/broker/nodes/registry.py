"""The registry of the broker's nodes: which exchanges and queues exist, and how a message is published to them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping

import attrs

from qmf._extras import install_hint
from qmf.broker.nodes.alerts import Alerts, thresholds
from qmf.broker.nodes.bindings import Binding, BindingRefused, BindingSpec
from qmf.broker.nodes.counters import BrokerCounters, QueueCounters
from qmf.broker.nodes.delays import CallLater
from qmf.broker.nodes.depth import Depth
from qmf.broker.nodes.exchange_types import EXCHANGE_TYPES
from qmf.broker.nodes.exchanges import (
    DefaultExchange,
    DirectExchange,
    Exchange,
    FanoutExchange,
    HeadersExchange,
    TopicExchange,
)
from qmf.broker.nodes.lifetimes import Lifetimes
from qmf.broker.nodes.link_memory import LinkMemories
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.node_declaration import NodeDeclaration, NodeDeclarationError
from qmf.broker.nodes.observed_clients import BrokerClient
from qmf.broker.nodes.observer import BrokerObserver
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.recorder import Recorder
from qmf.broker.nodes.relay_addresses import RelayTable
from qmf.broker.nodes.router import Node, Router
from qmf.broker.nodes.selectors import SelectorError, compile_selector
from qmf.broker.nodes.settings import (
    ExchangeSettings,
    OverflowPolicy,
    QueueLimits,
    QueueSettings,
    SubscriptionSettings,
)
from qmf.broker.nodes.topics import Topics

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


class NameInUse(Exception):
    """A node of this kind and name exists already."""


class AmbiguousNode(Exception):
    """A queue and an exchange have the name, and nothing says which is meant."""


class NoSuchExchange(Exception):
    """The alternate exchange of a new node does not exist."""


class BindingExists(BindingRefused):
    """A queue has a binding to the exchange with the same key and other arguments."""


class ExchangeInUse(Exception):
    """An exchange is the alternate exchange of a node, and so cannot be deleted."""


class NodeRegistry(Router):
    """All nodes of a broker.

    Attributes:
        default_exchange: the nameless exchange.
        deleted_queues: totals of the queues that were deleted.
        clock: returns seconds; for times to live.
        observer: notified of what is created and deleted; may be replaced.
        on_deleted: called after a node was deleted; may be replaced.
        depth: of all queues together; None where that is not limited.
        recorder: records durable nodes and their messages; None for a broker that keeps nothing over a restart.
        memories: of lasting links, on which messages come.
        timestamps: messages that come get the time as an annotation.
        topics: the topics and policies.
        subscriptions: settings of the queues of subscriptions.
        relay: the domains of other brokers to which messages are relayed; None for none.
        agents: users whose messages may name other users: transfer agents of other brokers.
    """

    def __init__(
        self,
        *,
        queues: Iterable[str] = (),
        domains: Iterable[str] = (),
        limits: QueueLimits | None = None,
        total_limits: QueueLimits | None = None,
        counters: BrokerCounters | None = None,
        clock: Callable[[], float] = time.monotonic,
        call_later: CallLater | None = None,
    ) -> None:
        """Make the nodes that a broker has from the start.

        Args:
            queues: names of queues that exist from the start.
            domains: QMF domains besides ``default`` whose exchanges exist.
            limits: of queues that ask for none; None for those of qpidd. Queues of subscriptions have
                `SUBSCRIPTION_LIMITS` where these are the usual ones.
            total_limits: of all queues together; None for none. Those that flow to disk do not count.
            counters: the totals to update.
            clock: returns seconds; for times to live.
            call_later: calls a function after some seconds, as asyncio's loops do; for messages with a delivery time,
                and for queues that are deleted some time after their last use. None to delete them at once.
        """
        super().__init__(counters if counters is not None else BrokerCounters())
        self.deleted_queues = QueueCounters()
        self.clock = clock
        self.observer = BrokerObserver()
        self.on_deleted: Callable[[Queue | Exchange], None] = lambda _: None
        self.recorder: Recorder | None = None
        self.memories = LinkMemories()
        self.timestamps = False
        self.relay: RelayTable | None = None
        self.agents: frozenset[str] = frozenset()
        self.topics = Topics(self)
        self.limits = limits or QueueLimits()
        self.depth = None if total_limits is None else Depth(total_limits)
        self.subscriptions = SubscriptionSettings(self.limits)
        self._call_later = call_later
        self._lifetimes = Lifetimes(self.delete_queue, call_later)
        self._exchanges = {name: kind(name) for name, kind in PREDECLARED_EXCHANGES}
        for domain in domains:
            for name, kind in ((f"qmf.{domain}.topic", TopicExchange), (f"qmf.{domain}.direct", DirectExchange)):
                self._exchanges.setdefault(name, kind(name))
        self._predeclared = frozenset(self._exchanges)
        self._queues: dict[str, Queue] = {}
        self._default_bindings: dict[str, Binding] = {}
        self.default_exchange = DefaultExchange(self._default_bindings)
        for name in queues:
            self.declare_queue(name)

    @property
    def exchanges(self) -> Collection[Exchange]:
        """All exchanges but the default one."""
        return self._exchanges.values()

    @property
    def queues(self) -> Collection[Queue]:
        """All queues."""
        return self._queues.values()

    def queue(self, name: str) -> Queue | None:
        """The queue of a name, or None."""
        return self._queues.get(name)

    def exchange(self, name: str) -> Exchange | DefaultExchange | None:
        """The exchange of a name, or None. The empty name is that of the default exchange."""
        return self._exchanges.get(name) if name else self.default_exchange

    def find(self, address: str) -> Node | None:
        """The queue of a name, or else the exchange, or None."""
        return self._queues.get(address) or self.exchange(address)

    def has(self, node: Node) -> bool:
        """True unless a node was deleted."""
        if self.queue(node.name) is node or self.exchange(node.name) is node:
            return True
        return self.relay is not None and self.relay.has(node)

    def resolve(self, address: str, kind: type[Queue | Exchange] | None = None) -> Node | None:
        """The node that the address of a link names; a topic is its exchange.

        Args:
            address: as the client has it.
            kind: of the node; None if the client does not say.

        Raises:
            AmbiguousNode: the client does not say, and there are a queue and an exchange.
        """
        topic = None if kind is Queue else self.topics.get(address)
        if topic is not None:
            return topic.exchange
        queue = None if kind is Exchange else self._queues.get(address)
        exchange = None if kind is Queue else self.exchange(address)
        if queue is not None and exchange is not None:
            raise AmbiguousNode(f"{address!r} is ambiguous: there are a queue and an exchange of this name")
        found = exchange if queue is None else queue
        if found is None and self.relay is not None and (parts := self.relay.split(address)) is not None:
            return self.resolve(parts[0], kind) if self.relay.is_local(parts[1]) else self.relay.find(address)
        return found

    def relay_target(self, address: str) -> Node | None:
        """The node of a message that names it itself, and cannot say of which kind it is; as qpidd: the queue first."""
        if (queue := self._queues.get(address)) is not None:
            return queue
        topic = self.topics.get(address)
        found = self.exchange(address) if topic is None else topic.exchange
        if found is None and self.relay is not None and (parts := self.relay.split(address)) is not None:
            return self.relay_target(parts[0]) if self.relay.is_local(parts[1]) else self.relay.find(address)
        return found

    def missing(self, address: str) -> str:
        """Why an address names nothing, for people."""
        parts = None if self.relay is None else self.relay.split(address)
        if self.relay is None or parts is None or self.relay.is_local(parts[1]):
            return f"no exchange or queue {address!r}"
        return f"no relay to the domain {parts[1]!r} of {address!r}"

    def default_binding(self, queue: Queue) -> Binding:
        """The binding of a queue to the default exchange."""
        return self._default_bindings[queue.name]

    # Creating and deleting

    def create(self, name: str, declaration: NodeDeclaration, client: BrokerClient | None = None) -> Queue | Exchange:
        """Create a node for a client, or for the broker itself (None).

        Raises:
            NameInUse: a node of its kind has that name.
            NoSuchExchange: its alternate exchange does not exist.
            NodeDeclarationError: this broker cannot have such a node.
        """
        if declaration.exchange is None:
            return self.declare_queue(name, declaration.queue, client=client)
        return self._declare_exchange(name, declaration.exchange, client)

    def declare_queue(
        self, name: str, settings: QueueSettings | None = None, *, client: BrokerClient | None = None
    ) -> Queue:
        """Create a queue.

        Args:
            settings: how it behaves; None for a plain queue with the limits of the broker.
            client: on whose behalf; None for the broker itself.

        Raises:
            NameInUse, NoSuchExchange, NodeDeclarationError: as of `create`.
        """
        self._check_name(name, Queue, client)
        settings = settings or QueueSettings(limits=self.limits)
        if settings.overflow is OverflowPolicy.FLOW_TO_DISK and self.recorder is None:
            raise NodeDeclarationError("qpid.policy_type: flow-to-disk needs a data directory")
        alternate = self._alternate(settings.alternate)
        if settings.durable:
            self.warn_durable(f"queue {name}")
        try:
            selector = compile_selector(settings.filter) if settings.filter else None
        except SelectorError as error:
            raise NodeDeclarationError(f"qpid.filter: {error}") from error
        queue = Queue(
            name,
            settings,
            self.counters,
            self.clock,
            call_later=self._call_later,
            within=None if settings.overflow is OverflowPolicy.FLOW_TO_DISK else self.depth,
            selector=selector,
            alternate=None if alternate is None else _Alternate(self, alternate, alternate.name),
            delete=self.delete_queue,
        )
        if alternate is not None:
            alternate.alternate_users += 1
        self._queues[name] = queue
        self._default_bindings[name] = Binding(queue, BindingSpec(name))
        self._lifetimes.watch(queue)
        if up := thresholds(settings):
            contents = queue.contents
            contents.observers.add(
                Alerts(up, settings.alert_down, contents.depth, lambda it: self.observer.on_threshold(queue, it))
            )
        self.observer.on_queue_declared(queue, client)
        return queue

    def is_predeclared(self, exchange: Exchange | DefaultExchange) -> bool:
        """True for an exchange that exists from the start: it is not to be deleted."""
        return exchange.name in self._predeclared or exchange is self.default_exchange

    def delete(self, node: Queue | Exchange, client: BrokerClient | None = None) -> None:
        """Delete a node, for a client or for the broker itself (None).

        Raises:
            ExchangeInUse: it is an alternate exchange.
        """
        if isinstance(node, Queue):
            self.delete_queue(node, client)
        elif self._exchanges.get(node.name) is node:
            if node.alternate_users:
                raise ExchangeInUse(f"Cannot delete {node.name}, in use as alternate-exchange.")
            self.topics.on_exchange_deleted(node)
            self.observer.on_exchange_deleted(node, client)
            del self._exchanges[node.name]
            node.close()
            if node.alternate is not None:
                self._leave_alternate(node.alternate)
            self.on_deleted(node)

    def delete_queue(self, queue: Queue, client: BrokerClient | None = None) -> None:
        """Delete a queue with its bindings, for a client or for the broker itself (None).

        Its messages go to its alternate exchange, if it has one.
        """
        if self._queues.get(queue.name) is not queue:
            return
        if queue.redirected is not None:
            self.end_redirection(queue, move=False)
        self.observer.on_queue_deleted(queue, client)
        self._lifetimes.forget(queue)
        del self._queues[queue.name]
        del self._default_bindings[queue.name]
        for exchange in list(self._exchanges.values()):
            for binding in exchange.bindings(queue):
                exchange.unbind(queue, binding.spec.key)
                self._delete_unused(exchange)
        for message in queue.contents.abandon():
            if queue.alternate is None:
                self.counters.abandoned += 1
            else:  # as qpidd counts it, also when the alternate exchange has no queue for it
                queue.alternate.reroute(message)
                self.counters.abandoned_to_alternate += 1
        self.deleted_queues.add(queue.counters)
        if queue.flow is not None and queue.flow.stopped:
            queue.flow.resume()
        if queue.settings.alternate and (alternate := self._exchanges.get(queue.settings.alternate)) is not None:
            self._leave_alternate(alternate)
        self.on_deleted(queue)

    def on_unused(self, queue: Queue) -> None:
        """A consumer or browser of a queue is gone: delete the queue if that was the last one, and it asks for it."""
        if self._queues.get(queue.name) is queue:
            self._lifetimes.check(queue)

    def bind(self, exchange: Exchange, queue: Queue, spec: BindingSpec, client: BrokerClient | None = None) -> None:
        """Bind a queue to an exchange, for a client or for the broker itself (None).

        Does nothing when it has that binding. One that is exclusive replaces the others with its key; no message is
        routed meanwhile.

        Raises:
            BindingExists: it has a binding with the same key and other arguments.
            BindingRefused: the arguments are invalid.
        """
        if queue.reserved:
            raise BindingRefused(f"queue {queue.name!r}: only {queue.reserved} puts messages into it")
        if not exchange.bind(queue, spec):
            existing = exchange.binding(queue, spec.key)
            if existing is not None and existing.spec != spec:
                raise BindingExists(
                    f"queue {queue.name!r} has a binding to exchange {exchange.name!r} with the key {spec.key!r} "
                    "and other arguments"
                )
            return
        for binding in exchange.bindings_replaced_by(queue, spec):
            self.unbind(exchange, binding.queue, spec.key, client)
        self.observer.on_bound(exchange, queue, spec, client)
        message = exchange.initial_value
        if message is not None and any(binding.queue is queue for binding in exchange.route(message)):
            queue.enqueue(message)

    def unbind(self, exchange: Exchange, queue: Queue, key: str, client: BrokerClient | None = None) -> bool:
        """Remove a binding, for a client or for the broker itself (None); False if there is none with this key."""
        binding = exchange.binding(queue, key)
        if binding is None:
            return False
        self.observer.on_unbound(exchange, queue, binding.spec, client)
        exchange.unbind(queue, key)
        self._delete_unused(exchange)
        return True

    def redirect(self, source: Queue, target: Queue) -> None:
        """Let two queues exchange the messages that come: those of `source` go to `target`, and the reverse."""
        source.redirected, source.redirect_source = target, True
        target.redirected, target.redirect_source = source, False
        self.observer.on_redirected(source, target)

    def end_redirection(self, queue: Queue, *, move: bool) -> None:
        """End the redirection of a queue.

        Args:
            queue: one of both.
            move: the messages of the target go to the source.
        """
        other = queue.redirected
        if other is None:
            return
        source, target = (queue, other) if queue.redirect_source else (other, queue)
        source.redirected = target.redirected = None
        source.redirect_source = False
        if move:
            self.move(target, source)
        self.observer.on_redirection_ended(source, target)

    def expire(self) -> None:
        """Remove the messages whose time to live has ended, in all queues."""
        for queue in list(self._queues.values()):
            queue.contents.expire()

    def close(self) -> None:
        """Delete no more queues, and deliver no more messages, later; end what exchanges have begun."""
        self._lifetimes.close()
        for exchange in self._exchanges.values():
            exchange.close()
        for queue in self._queues.values():
            queue.contents.close()

    # Declaring

    def _declare_exchange(self, name: str, settings: ExchangeSettings, client: BrokerClient | None) -> Exchange:
        self._check_name(name, Exchange, client)
        alternate = self._alternate(settings.alternate)
        if settings.durable:
            self.warn_durable(f"exchange {name}")
        try:
            exchange = EXCHANGE_TYPES[settings.kind](name, settings)
        except ImportError as error:
            raise NodeDeclarationError(
                f"exchange-type: {settings.kind} needs a library that is not installed: {install_hint('xml')}"
            ) from error
        if alternate is not None:
            exchange.alternate = alternate
            alternate.alternate_users += 1
        self._exchanges[name] = exchange
        self.observer.on_exchange_declared(exchange, client)
        return exchange

    def _check_name(self, name: str, kind: type[Queue | Exchange], client: BrokerClient | None) -> None:
        known: Mapping[str, Queue | Exchange] = self._queues if kind is Queue else self._exchanges
        others: Mapping[str, Queue | Exchange] = self._exchanges if kind is Queue else self._queues
        if (existing := known.get(name)) is not None:
            if client is not None:
                self.observer.on_declared_again(existing, client)
            raise NameInUse(name)
        if name in others:
            log.warning("node %s is ambiguous: there will be a queue and an exchange of this name", name)

    def warn_durable(self, what: str) -> None:
        """Something durable is created: the log says if it will be gone with the process; `what`: kind and name."""
        if self.recorder is None:
            log.warning("%s: durable, but gone at a restart, as all here: this broker has no data directory", what)

    def _alternate(self, name: str) -> Exchange | None:
        if not name:
            return None
        found = self._exchanges.get(name)
        if found is None:
            raise NoSuchExchange(f"Exchange not found: {name}")
        return found

    def _leave_alternate(self, alternate: Exchange) -> None:
        alternate.alternate_users -= 1
        self._delete_unused(alternate)

    def _delete_unused(self, exchange: Exchange) -> None:
        """Delete an exchange that has no bindings, is no alternate exchange, and asks for it."""
        if exchange.settings.auto_delete and not exchange.binding_count and not exchange.alternate_users:
            self.delete(exchange)


@attrs.frozen
class _Alternate:
    """The `AlternateExchange` of a queue."""

    registry: NodeRegistry
    exchange: Exchange
    name: str

    def reroute(self, message: Message) -> bool:
        return self.registry.send_to_alternate(self.exchange, message)
