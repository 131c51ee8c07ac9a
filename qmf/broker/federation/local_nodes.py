"""The nodes of this broker at which links to other brokers end: found, created, and deleted with a link."""

from __future__ import annotations

from collections.abc import Callable

from qmf.broker.federation.definitions import LinkDefinition
from qmf.broker.nodes.arguments import LINK_QUEUE
from qmf.broker.nodes.bindings import BindingRefused
from qmf.broker.nodes.consumers import Consumer
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.node_declaration import NodeDeclarationError, read_node_declaration
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NameInUse, NoSuchExchange
from qmf.broker.nodes.router import Node
from qmf.broker.nodes.selectors import SelectorError
from qmf.broker.operations.grants import ConsumeGrant
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.publisher import Publisher
from qmf.broker.protocols.amqp.filters import binding_from_filters, selector_from_filters, subject_from_filters
from qmf.bus.engine.values import Filter

#: What keys with these characters match is more than one key.
_WILDCARDS = frozenset("*#")


class NodeUnusable(Exception):
    """A link cannot use the node of this broker; says why."""


def has_wildcards(key: str) -> bool:
    """A key matches more than itself."""
    return bool(_WILDCARDS & {*key})


def filters_of(definition: LinkDefinition) -> tuple[Filter, ...]:
    """The filters of the source of a link."""
    filters = []
    if definition.key:
        kind = "topic" if has_wildcards(definition.key) else "direct"
        name = f"legacy-amqp-{kind}-binding"
        filters.append(Filter(name, f"apache.org:{name}:string", definition.key))
    if definition.selector:
        filters.append(Filter("selector", "apache.org:selector-filter:string", definition.selector))
    return tuple(filters)


def open_target(definition: LinkDefinition, operations: Operations) -> tuple[Publisher, Node]:
    """The right to publish to the target of an incoming link.

    Raises:
        NodeUnusable: there is no such node.
        OperationRefused: the policy refuses it to the link's principal.
    """
    node = _resolve(definition, operations)
    publisher = operations.publisher(definition.principal)
    publisher.grant(node)
    return publisher, node


class LocalSource:
    """Where an outgoing link takes its messages from: a queue or, at an exchange, a queue of its own."""

    def __init__(self, definition: LinkDefinition, operations: Operations) -> None:
        self._definition = definition
        self._operations = operations

    @property
    def own_queue(self) -> str:
        """Name of the queue that the link has if its source is an exchange."""
        return f"link.{self._definition.name}"

    def open(self, holder: Consumer | None = None) -> tuple[ConsumeGrant, Node, Callable[[Message], bool] | None]:
        """The right to take messages; the node; which messages, None for all.

        Args:
            holder: the consumer that the link has at its queue already.

        Raises:
            NodeUnusable: there is no such node, or no queue can be made for it.
            OperationRefused: the policy refuses it to the link's principal.
        """
        node = _resolve(self._definition, self._operations)
        filters = filters_of(self._definition)
        if isinstance(node, Queue):
            try:
                selector, _ = selector_from_filters(filters)
            except SelectorError as error:
                raise NodeUnusable(f"selector: {error}") from error
            subjects, _ = subject_from_filters(filters)
            grant = self._consume(node, holder)
            return grant, node, _both(subjects, selector)
        if not isinstance(node, Exchange):
            raise NodeUnusable("source: the default exchange has no messages to be taken")
        return self._open_own_queue(node, holder), node, None

    def remove(self) -> None:
        """Delete the queue of the link's own, with what is left in it; for a link that is deleted."""
        queue = self._operations.registry.queue(self.own_queue)
        if queue is not None and self.owns(queue):
            self._operations.delete_owned(self._definition.principal, queue)

    def _consume(self, queue: Queue, holder: Consumer | None) -> ConsumeGrant:
        others = any(consumer is not holder for consumer in queue.delivery.consumers.all)
        if queue.owner is not None or (queue.settings.exclusive and others):
            raise NodeUnusable(f"queue {queue.name!r} belongs to another link")
        if queue.settings.browse_only:
            raise NodeUnusable(f"queue {queue.name!r} is for browsing only")
        return self._operations.consume(self._definition.principal, queue)

    def owns(self, queue: Queue) -> bool:
        """A queue is the link's own."""
        return queue.settings.arguments.get(LINK_QUEUE) == self._definition.name

    def _open_own_queue(self, exchange: Exchange, holder: Consumer | None) -> ConsumeGrant:
        definition, operations, name = self._definition, self._operations, self.own_queue
        spec, _ = binding_from_filters(filters_of(definition), exchange.kind)
        try:
            if (queue := operations.registry.queue(name)) is not None:
                if not self.owns(queue):
                    raise NodeUnusable(f"queue {name!r} exists, and is not that of the link")
                if exchange.binding(queue, spec.key) is None:
                    operations.bind(definition.principal, exchange, queue, spec)
                return self._consume(queue, holder)
            properties = {**definition.queue, "durable": definition.durable, LINK_QUEUE: definition.name}
            if definition.selector:
                properties["qpid.filter"] = definition.selector
            settings = read_node_declaration(("queue",), properties, limits=operations.registry.limits).queue
            return operations.subscribe(definition.principal, exchange, name, settings, spec)
        except (NodeDeclarationError, NameInUse, NoSuchExchange, BindingRefused) as error:
            raise NodeUnusable(f"queue {name!r}: {error}") from error


def _resolve(definition: LinkDefinition, operations: Operations) -> Node:
    try:
        node = operations.resolve(definition.principal, definition.node)
        if node is None:
            node = operations.create_by_policy(definition.principal, definition.node)
    except (NodeDeclarationError, NameInUse, NoSuchExchange) as error:
        raise NodeUnusable(f"{definition.node!r} cannot be created: {error}") from error
    if node is None:
        raise NodeUnusable(f"no exchange or queue {definition.node!r}")
    return node


def _both(
    one: Callable[[Message], bool] | None, two: Callable[[Message], bool] | None
) -> Callable[[Message], bool] | None:
    if one is None or two is None:
        return one or two
    return lambda message: one(message) and two(message)
