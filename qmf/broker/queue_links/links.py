"""The links within a broker: created, deleted and restored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qmf.broker.nodes.exchanges import DefaultExchange, Exchange
from qmf.broker.nodes.last_values import LastValueOrder
from qmf.broker.nodes.observed_definitions import LinkMode
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import AmbiguousNode
from qmf.broker.nodes.router import Node
from qmf.broker.operations.forwarders import ForwardingError, PausableForwarders
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import Action, ObjectType, OperationRefused
from qmf.broker.operations.principal import Principal
from qmf.broker.queue_links.copying import CopyingLink
from qmf.broker.queue_links.definitions import QueueLinkDefinition, read_queue_link, read_stored_queue_link
from qmf.broker.queue_links.link import LinkPlaces, QueueLink
from qmf.broker.queue_links.moving import MovingLink

_CLASSES: Mapping[LinkMode, type[QueueLink]] = {LinkMode.MOVE: MovingLink, LinkMode.COPY: CopyingLink}


class BrokerQueueLinks(PausableForwarders[QueueLink]):
    """The links within a broker."""

    def __init__(self, operations: Operations) -> None:
        super().__init__(operations.registry, "link between queues", "link")
        self._operations = operations

    def add(self, principal: Principal, name: str, properties: Mapping[str, object], *, strict: bool) -> None:
        if not name:
            raise ForwardingError("invalid-argument: the name is empty")
        if self.has(name):
            raise ForwardingError(f"object already exists: {name}")
        definition = read_queue_link(name, properties, principal, strict=strict)
        link = self._make(definition)
        link.start(self._places(definition))
        self._keep(link)

    def remove(self, name: str) -> None:
        self._take(name).close()

    def pause(self, name: str) -> None:
        self.find(name).pause()

    def resume(self, name: str) -> None:
        self.find(name).resume()

    def restore(self, name: str, fields: Mapping[str, object]) -> None:
        stored = read_stored_queue_link(name, fields)
        link = self._make(stored.definition, stored.cursor, stored.passed)
        try:
            link.start(self._places(stored.definition))
        except (ForwardingError, OperationRefused) as error:
            link.fail(str(error))
        self._keep(link)

    def on_node_deleted(self, node: Queue | Exchange) -> None:
        for link in self:
            link.on_node_deleted(node)

    def on_policy_changed(self) -> None:
        for link in self:
            link.on_policy_changed()

    def close(self) -> None:
        """End all links."""
        for link in self:
            link.close()

    # Details

    def _make(self, definition: QueueLinkDefinition, cursor: int = 0, passed: int = 0) -> QueueLink:
        return _CLASSES[definition.mode](
            definition,
            self._operations,
            lambda link: self._registry.observer.on_queue_link_changed(link),
            cursor=cursor,
            passed=passed,
        )

    def _report_declared(self, item: QueueLink) -> None:
        self._registry.observer.on_queue_link_declared(item)

    def _report_deleted(self, item: QueueLink) -> None:
        self._registry.observer.on_queue_link_deleted(item)

    def _places(self, definition: QueueLinkDefinition) -> LinkPlaces:
        """The nodes of a link.

        Raises:
            ForwardingError: they do not exist, or a link between them is not possible.
            OperationRefused: the policy refuses the target's address.
        """
        source = self._registry.queue(definition.source)
        if source is None:
            for action in (Action.ACCESS, Action.CONSUME):
                self._operations.ask_missing(definition.principal, action, ObjectType.QUEUE, definition.source)
            raise ForwardingError(f"not-found: source: no queue {definition.source!r}")
        # Who may not take its messages learns nothing of its state either.
        if definition.mode is LinkMode.COPY:
            self._operations.browse(definition.principal, source)
        else:
            self._operations.consume(definition.principal, source)
        self._check_source(definition, source)
        try:
            target = self._operations.resolve(definition.principal, definition.target)
        except AmbiguousNode as error:
            raise ForwardingError(f"invalid-argument: target: {error}") from error
        if target is None:
            raise ForwardingError(f"not-found: target: {self._registry.missing(definition.target)}")
        if target is source:
            raise ForwardingError("invalid-argument: target: is the source")
        if definition.durable and not (source.settings.durable and self._is_durable(target)):
            raise ForwardingError("invalid-argument: durable: its source and its target must be durable as well")

        def leads_back(queues: Sequence[Queue]) -> str:
            return self._way_to(source, queues)

        if way := leads_back(_queues_behind(target)):
            raise ForwardingError(f"not-allowed: messages would come back to queue {source.name!r} by {way}")
        return LinkPlaces(source, target, leads_back)

    def _check_source(self, definition: QueueLinkDefinition, source: Queue) -> None:
        if definition.mode is LinkMode.COPY:
            return
        if source.settings.browse_only:
            raise ForwardingError(f"not-allowed: source: queue {source.name!r} is for browsing only")
        if source.exclusive or source.owner is not None:
            raise ForwardingError(f"resource-locked: source: queue {source.name!r} belongs to another link")
        if isinstance(source.contents.order, LastValueOrder) and definition.start.passed_over(source.contents):
            raise ForwardingError("not-allowed: start: a last value queue can be moved from its head alone")

    def _is_durable(self, node: Node) -> bool:
        if isinstance(node, DefaultExchange) or (isinstance(node, Exchange) and self._registry.is_predeclared(node)):
            return True
        return node.settings.durable or not self._registry.has(node)

    def _way_to(self, source: Queue, queues: Sequence[Queue]) -> str:
        """By which links messages for some queues come to a queue, for people; empty if they do not."""
        seen: set[Queue] = set()
        ahead = [(queue, "") for queue in queues]
        while ahead:
            queue, way = ahead.pop()
            if queue is source:
                return way or "itself"
            if queue in seen:
                continue
            seen.add(queue)
            for link in self:
                if link.places is not None and link.places.source is queue:
                    by = f"{way}, {link.name}" if way else f"link {link.name}"
                    ahead.extend((behind, by) for behind in _queues_behind(link.places.target))
        return ""


def _queues_behind(node: Node) -> Sequence[Queue]:
    """The queues to which a node may route messages now."""
    if isinstance(node, Queue):
        return (node,)
    if isinstance(node, DefaultExchange):
        return ()
    return [binding.queue for binding in node.all_bindings()]
