"""The links that a client asks for: what each needs of the broker, and the broker's end of it, not used yet."""

from __future__ import annotations

import attrs

from qmf.broker.client_info import ClientInfo
from qmf.broker.nodes.exchanges import DefaultExchange, Exchange
from qmf.broker.nodes.observed_clients import ClientSession
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.router import Node
from qmf.broker.nodes.selectors import Selector
from qmf.broker.operations.grants import BrowseGrant, ConsumeGrant
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.principal import Principal
from qmf.broker.operations.publisher import Publisher
from qmf.broker.protocols.amqp.bindings import LINK_DECLARATION, make_bindings
from qmf.broker.protocols.amqp.browsing import BrowsingLink
from qmf.broker.protocols.amqp.conditions import LinkRefused
from qmf.broker.protocols.amqp.filters import (
    binding_from_filters,
    no_local_filter,
    selector_of,
    start_of,
    subscription_settings,
)
from qmf.broker.protocols.amqp.incoming import IncomingLink
from qmf.broker.protocols.amqp.link_nodes import LinkNodes
from qmf.broker.protocols.amqp.outgoing import OutgoingLink
from qmf.broker.protocols.amqp.resumable import (
    LinkKey,
    ResumableIncomingLink,
    ResumableOutgoingLink,
    Unsettled,
    is_lasting,
)
from qmf.broker.protocols.amqp.subscriptions import ClientSubscriptions, is_subscription
from qmf.bus.engine.link import Link
from qmf.bus.engine.resumption import Resumption
from qmf.bus.engine.values import ExpiryPolicy, Filter, Terminus
from qmf.bus.transport import AmqpTransport

#: Seconds for which a suspended link is kept, at most, and for a client that does not say how long.
MAX_TIMEOUT = 3_600
DEFAULT_TIMEOUT = 300


@attrs.frozen
class OpenedLink:
    """A link that can be granted.

    Attributes:
        end: the broker's end of it.
        granted: terminus of the broker's side.
        unsettled: what the broker knows of a link that is resumed; None for a new link.
    """

    end: IncomingLink | OutgoingLink
    granted: Terminus
    unsettled: Unsettled | None = None


@attrs.frozen(eq=False)
class RequestedLinks:
    """Opens the links that one client asks for."""

    _client: ClientSession
    _transport: AmqpTransport
    _operations: Operations
    _nodes: LinkNodes
    _subscriptions: ClientSubscriptions

    @property
    def _principal(self) -> Principal:
        return Principal.of(self._client)

    def open(self, link: Link, terminus: Terminus) -> OpenedLink:
        """Find or create what a new link needs, and make the broker's end of it.

        Args:
            terminus: at the broker, as the client wants it.

        Raises:
            LinkRefused: the broker cannot have such a link.
            OperationRefused: the policy refuses it.
        """
        return self._open_outgoing(link, terminus) if link.is_sender else self._open_incoming(link, terminus)

    def key(self, link: Link, resumption: Resumption) -> LinkKey:
        """What identifies a link that can be resumed."""
        return LinkKey(self._client.info.user, link.is_sender, resumption.id)

    def publisher(self, node: Node | None) -> Publisher:
        """The right to send to a node; None for the anonymous relay.

        Raises:
            OperationRefused: the policy refuses it.
        """
        publisher = self._operations.publisher(self._principal, relay=node is None)
        if node is None:
            self._operations.ask_relay(self._principal)
        else:
            publisher.grant(node)
        return publisher

    def _open_outgoing(self, link: Link, source: Terminus) -> OpenedLink:
        """The client wants to receive."""
        if source.dynamic:
            queue, granted = self._nodes.create_temporary_queue(link, source)
            return self._receive_from(link, source, queue, self._receive(queue, source), granted)
        node, granted = self._nodes.find(link, source)
        if isinstance(node, Queue):
            if LINK_DECLARATION in link.properties:
                raise LinkRefused("amqp:not-allowed", f"{LINK_DECLARATION}: {node.name!r} is a queue, no subscription")
            grant = self._receive(node, source)
            self._nodes.take_exclusive(link, source, node)
            return self._receive_from(link, source, node, grant, granted)
        if isinstance(node, Exchange) and is_subscription(source):
            return self._subscribe(link, source, node)
        grant, filters = self._bind_queue(link, source, node)
        return self._receive_from(link, source, node, grant, attrs.evolve(granted, filters=filters))

    def _receive_from(
        self, link: Link, source: Terminus, node: Node, grant: ConsumeGrant | BrowseGrant, granted: Terminus
    ) -> OpenedLink:
        """Receive from a queue that the source names, or that was created for the link.

        Args:
            source: what it asked for.
            node: what the source names, the queue itself or an exchange that it is bound to.
            grant: the right to the queue.
            granted: what the broker answers, without the filters and the distribution mode of the queue.
        """
        queue, browse = grant.queue, isinstance(grant, BrowseGrant)
        if not browse or queue.owner is None:
            self._nodes.check_owner(link, queue)
        if queue.settings.browse_only and not browse:
            raise LinkRefused("amqp:not-allowed", f"Queue {queue.name} is browse only.  Refusing acquiring consumer.")
        make_bindings(self._operations, self._principal, link, node, queue)
        selector, applied = selector_of(source, of_queue=node is queue)
        start, starts = start_of(source, node)
        if filters := (*applied, *starts):
            granted = attrs.evolve(granted, filters=(*granted.filters, *filters))
        if link.resumption is not None:
            if browse or source.dynamic or node is not queue:
                raise LinkRefused("amqp:not-implemented", "only a link that consumes from a named queue can be resumed")
            key, granted = self.key(link, link.resumption), resumable_terms(link, source, granted)
        if queue.settings.no_local:
            queue.exclude(self._client.info.container)
        outgoing: OutgoingLink
        unsettled: Unsettled | None = None
        if isinstance(grant, BrowseGrant):
            granted = attrs.evolve(granted, browse=True)
            outgoing = browsing = BrowsingLink(self._transport, link, queue, selector, start)
            browsing.browse(grant)
        else:
            if link.resumption is not None:
                outgoing, unsettled = self._resumable_outgoing(link, queue, selector, key, granted)
            else:
                outgoing = OutgoingLink(self._transport, link, queue, selector)
            if start is not None:
                queue.delivery.bar(start.passed_over(queue.contents), outgoing)
            outgoing.attach(grant)
        return OpenedLink(outgoing, granted, unsettled)

    def _receive(self, queue: Queue, source: Terminus) -> ConsumeGrant | BrowseGrant:
        """The right to what a source asks of a queue."""
        if source.browse:
            return self._operations.browse(self._principal, queue)
        return self._operations.consume(self._principal, queue)

    def _subscribe(self, link: Link, source: Terminus, exchange: Exchange) -> OpenedLink:
        """Receive from a subscription that may outlive the link, or be shared."""
        selector_of(source)  # refused before anything is created
        start_of(source, exchange)
        grant, granted = self._subscriptions.open(link, source, exchange)
        queue = grant.queue
        if queue.settings.exclusive and queue.delivery.consumers:
            raise LinkRefused("amqp:resource-locked", f"subscription {queue.name!r} has a receiver")
        make_bindings(self._operations, self._principal, link, exchange, queue)
        outgoing = OutgoingLink(self._transport, link, queue)
        unsettled: Unsettled | None = None
        if is_lasting(link) and link.resumption is not None and source.expiry is ExpiryPolicy.NEVER:
            key = self.key(link, link.resumption)
            granted = attrs.evolve(resumable_terms(link, source, granted), expiry=granted.expiry)
            outgoing, unsettled = self._resumable_outgoing(link, queue, None, key, granted)
        outgoing.ends_subscription = True
        outgoing.attach(grant)
        return OpenedLink(outgoing, granted, unsettled)

    def _resumable_outgoing(
        self, link: Link, queue: Queue, selector: Selector | None, key: LinkKey, granted: Terminus
    ) -> tuple[OutgoingLink, Unsettled | None]:
        """The broker's end of a new link that can be resumed; what it knows of the client's deliveries, if anything."""
        outgoing = ResumableOutgoingLink(self._transport, link, queue, selector, key=key, granted=granted)
        if link.resumption is None or not link.resumption.lasting:
            return outgoing, None
        # It may be new to this broker since its restart only: others must not get what this client has.
        return outgoing, outgoing.reconcile(link.resumption.unsettled)

    def _bind_queue(self, link: Link, source: Terminus, node: Node) -> tuple[ConsumeGrant, tuple[Filter, ...]]:
        """The right to a queue for this link, bound to an exchange by the filters of the source; and those applied."""
        if isinstance(node, DefaultExchange | Queue):
            raise LinkRefused("amqp:not-allowed", "the default exchange cannot be subscribed to")
        try:
            spec, applied = binding_from_filters(source.filters, node.kind)
        except ValueError as error:
            raise LinkRefused("amqp:invalid-field", str(error)) from error
        no_local = no_local_filter(source.filters)
        excluded = self._client.info.container if no_local else ""
        settings = subscription_settings(self._operations.registry, link, source, excluded=excluded)
        return self._nodes.subscribe(link, settings, node, spec), (*applied, *no_local)

    def _open_incoming(self, link: Link, target: Terminus) -> OpenedLink:
        """The client wants to send."""
        node: Node | None = None
        granted = target
        if target.dynamic:
            node, granted = self._nodes.create_temporary(link, target)
        elif target.address is not None:
            node, granted = self._nodes.find(link, target)
        publisher, origin = self.publisher(node), self._client.info
        if node is not None and not target.dynamic:
            self._nodes.take_exclusive(link, target, node)
        make_bindings(self._operations, self._principal, link, node, node)
        unsettled: Unsettled | None = None
        incoming: IncomingLink
        if link.resumption is not None:
            if target.dynamic:
                raise LinkRefused("amqp:not-implemented", "a link to a temporary node cannot be resumed")
            key, granted = self.key(link, link.resumption), resumable_terms(link, target, granted)
            incoming = kept = ResumableIncomingLink(
                self._transport,
                link,
                publisher,
                node,
                origin=origin,
                key=key,
                granted=granted,
                memories=self._operations.registry.memories,
            )
            if kept.lasting:
                unsettled = kept.reconcile(link.resumption.unsettled)
        elif isinstance(node, Exchange) and node.kind == "xml":
            incoming = querying_link(self._transport, link, publisher, node, origin)
        else:
            incoming = IncomingLink(self._transport, link, publisher, node, origin=origin)
        return OpenedLink(incoming, granted, unsettled)


def resumable_terms(link: Link, wanted: Terminus, granted: Terminus) -> Terminus:
    """The terminus of a new link that can be resumed, with the time-out that it gets.

    Raises:
        LinkRefused: its messages are settled at once.
    """
    if link.presettled:
        raise LinkRefused("amqp:not-allowed", "a link whose messages are settled at once cannot be resumed")
    timeout = min(wanted.timeout or DEFAULT_TIMEOUT, MAX_TIMEOUT)
    return attrs.evolve(granted, expiry=ExpiryPolicy.LINK, timeout=timeout)


def querying_link(
    transport: AmqpTransport, link: Link, publisher: Publisher, exchange: Exchange, origin: ClientInfo
) -> IncomingLink:
    """The broker's end of a link to an `xml` exchange."""
    # Imported here, because few brokers have such exchanges.
    from qmf.broker.nodes.xml_exchange import XmlExchange
    from qmf.broker.protocols.amqp.querying import QueryingIncomingLink

    assert isinstance(exchange, XmlExchange)
    return QueryingIncomingLink(transport, link, publisher, exchange, origin=origin)


def node_of(end: IncomingLink | OutgoingLink) -> Node | None:
    """Where a link ends; None for the relay."""
    return end.queue if isinstance(end, OutgoingLink) else end.node
