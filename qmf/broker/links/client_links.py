"""The links of one client: which it may have, their nodes, and the queues that live as long as a link."""

from __future__ import annotations

import logging

from qmf.broker.links.filters import binding_from_filters
from qmf.broker.links.incoming import IncomingLink
from qmf.broker.links.outgoing import OutgoingLink
from qmf.broker.nodes.exchanges import DefaultExchange
from qmf.broker.nodes.queues import OverflowPolicy, Queue
from qmf.broker.nodes.registry import NameInUse, Node, NodeRegistry
from qmf.broker.observer import Client
from qmf.bus.engine.events import Delivery, OutcomeReceived
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Terminus
from qmf.bus.transport import AmqpTransport

log = logging.getLogger("qmf.broker")

#: Links per connection. Consoles and agents have fewer than ten.
MAX_LINKS = 1_000


class LinkRefused(Exception):
    """A link cannot be granted.

    Attributes:
        condition, description: AMQP error for the client.
    """

    def __init__(self, condition: str, description: str) -> None:
        self.condition = condition
        self.description = description
        super().__init__(condition, description)


class ClientLinks:
    """The links of one connection."""

    def __init__(self, client: Client, transport: AmqpTransport, registry: NodeRegistry) -> None:
        """Args:

        client: the connection.
        transport: of the connection.
        registry: of the broker.
        """
        self._client = client
        self._transport = transport
        self._registry = registry
        self._outgoing: dict[Link, OutgoingLink] = {}
        self._incoming: dict[Link, IncomingLink] = {}
        #: Queues that are deleted with the link that created them.
        self._link_queues: dict[Link, Queue] = {}

    def dispatch(self) -> None:
        """There is room again in the transport: deliver what waits."""
        for outgoing in self._outgoing.values():
            if len(outgoing.queue):
                outgoing.queue.dispatch()

    def on_delivery(self, event: Delivery) -> None:
        """The client sent a message."""
        if (incoming := self._incoming.get(event.link)) is not None:
            incoming.on_delivery(event)

    def on_outcome(self, event: OutcomeReceived) -> None:
        """The client settled a message."""
        if (outgoing := self._outgoing.get(event.link)) is not None:
            outgoing.on_outcome(event)

    def on_credit(self, link: Link) -> None:
        """The client gave credit, or asks to use it up."""
        if (outgoing := self._outgoing.get(link)) is not None:
            outgoing.queue.dispatch()
            self._transport.engine.answer_drain(link)

    def on_requested(self, link: Link) -> None:
        """The client asks for a link: grant or refuse it."""
        try:
            if len(self._outgoing) + len(self._incoming) >= MAX_LINKS:
                raise LinkRefused("amqp:resource-limit-exceeded", f"a connection may have {MAX_LINKS} links")
            if link.is_sender:
                self._attach_outgoing(link)
            else:
                self._attach_incoming(link)
        except LinkRefused as refusal:
            log.info("refused link %r of %s: %s", link.name, self._client, refusal.description)
            self._transport.engine.refuse_link(link, refusal.condition, refusal.description)
        self._transport.flush_soon()

    def on_detached(self, link: Link) -> None:
        """A link is gone: delete what was created for it."""
        registry = self._registry
        if (incoming := self._incoming.pop(link, None)) is not None:
            registry.observer.on_detached(self._client, incoming)
        if (outgoing := self._outgoing.pop(link, None)) is not None:
            registry.observer.on_detached(self._client, outgoing)
            outgoing.on_detached()
        if (queue := self._link_queues.pop(link, None)) is not None:
            registry.delete_queue(queue, self._client)

    def on_disconnected(self) -> None:
        """The connection is gone, and all links with it."""
        for link in [*self._outgoing, *self._incoming]:
            self.on_detached(link)

    def _attach_outgoing(self, link: Link) -> None:
        """The client wants to receive."""
        source = link.source
        if source is None:
            raise LinkRefused("amqp:invalid-field", "a receiving link needs a source")
        if source.dynamic:
            queue = self._create_queue(link, exclusive=True)
            source = Terminus(queue.name, dynamic=True)
        else:
            node = self._find(source.address or "")
            if source.browse and isinstance(node, Queue):
                raise LinkRefused("amqp:not-implemented", f"queue {node.name!r} cannot be browsed, only consumed")
            if isinstance(node, Queue):
                queue, source = node, Terminus(source.address)
            else:
                queue, source = self._bind_queue(link, source, node)
        if queue.exclusive and queue.consumer_count:
            raise LinkRefused("amqp:resource-locked", f"queue {queue.name!r} belongs to another link")
        self._transport.engine.accept_link(link, source=source, target=link.target)
        outgoing = self._outgoing[link] = OutgoingLink(self._transport, link, queue)
        queue.add_consumer(outgoing)
        self._registry.observer.on_attached(self._client, outgoing)
        queue.dispatch()

    def _bind_queue(self, link: Link, source: Terminus, node: Node) -> tuple[Queue, Terminus]:
        """A queue for this link, bound to an exchange by the filters of the source; and the source as granted."""
        if isinstance(node, DefaultExchange | Queue):
            raise LinkRefused("amqp:not-allowed", "the default exchange cannot be subscribed to")
        try:
            spec, applied = binding_from_filters(source.filters)
        except ValueError as error:
            raise LinkRefused("amqp:invalid-field", str(error)) from error
        queue = self._create_queue(link, exclusive=True)
        self._registry.bind(node, queue, spec, self._client)
        return queue, Terminus(source.address, filters=applied)

    def _attach_incoming(self, link: Link) -> None:
        """The client wants to send."""
        target = link.target
        if target is None:
            raise LinkRefused("amqp:invalid-field", "a sending link needs a target")
        if target.coordinator:
            raise LinkRefused("amqp:not-implemented", "transactions are not supported")
        node: Node | None = None
        if target.dynamic:
            node = self._create_queue(link, exclusive=False)
            target = Terminus(node.name, dynamic=True)
        elif target.address is not None:
            node = self._find(target.address)
        self._transport.engine.accept_link(link, source=link.source, target=target)
        incoming = self._incoming[link] = IncomingLink(
            self._transport, link, self._registry, node, relay=target.address is None
        )
        self._registry.observer.on_attached(self._client, incoming)

    def _find(self, address: str) -> Node:
        node = self._registry.find(address)
        if node is None:
            raise LinkRefused(
                "amqp:not-found", f"no exchange or queue {address!r}; queues are named when the broker is started"
            )
        return node

    def _create_queue(self, link: Link, *, exclusive: bool) -> Queue:
        """Create a queue that is deleted with the link, named as qpidd names it (QMF2.md 1.2)."""
        name = f"{self._client.info.container}_{link.name}"
        overflow = OverflowPolicy.DROP_OLDEST if exclusive else OverflowPolicy.REFUSE
        try:
            queue = self._registry.declare_queue(name, overflow=overflow, exclusive=exclusive, client=self._client)
        except NameInUse as error:
            raise LinkRefused(
                "amqp:resource-locked", f"queue {name!r} exists: another link uses this container id and link name"
            ) from error
        self._link_queues[link] = queue
        return queue
