"""The links of one client: which it may have, their nodes, and the queues that live as long as a link."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager
from functools import partial

import attrs

from qmf.broker.nodes.exchanges import DefaultExchange, Exchange
from qmf.broker.nodes.observed_clients import ClientSession
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.recorder import NotStored
from qmf.broker.nodes.router import Node
from qmf.broker.nodes.selectors import Selector
from qmf.broker.operations.grants import BrowseGrant, ConsumeGrant
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.operations.principal import Principal
from qmf.broker.operations.publisher import Publisher
from qmf.broker.protocols.amqp.bindings import LINK_DECLARATION, make_bindings
from qmf.broker.protocols.amqp.browsing import BrowsingLink
from qmf.broker.protocols.amqp.conditions import UNAUTHORIZED, LinkRefused
from qmf.broker.protocols.amqp.coordinator_link import CoordinatorLink
from qmf.broker.protocols.amqp.filters import binding_from_filters, no_local_filter
from qmf.broker.protocols.amqp.incoming import IncomingLink
from qmf.broker.protocols.amqp.link_ends import node_of, querying_link, resumable_terms
from qmf.broker.protocols.amqp.link_nodes import LinkNode, LinkNodes
from qmf.broker.protocols.amqp.link_rights import LinkRights
from qmf.broker.protocols.amqp.outgoing import OutgoingLink
from qmf.broker.protocols.amqp.resumable import (
    LinkKey,
    ResumableIncomingLink,
    ResumableLink,
    ResumableOutgoingLink,
    Unsettled,
    is_lasting,
)
from qmf.broker.protocols.amqp.resumable_links import ResumableLinks, end_link
from qmf.broker.protocols.amqp.source_terms import selector_of, start_of, subscription_settings
from qmf.broker.protocols.amqp.stored_answers import answer_when_stored
from qmf.broker.protocols.amqp.subscriptions import ClientSubscriptions, is_subscription
from qmf.broker.sessions import ClientSessions
from qmf.broker.transactions.coordinator import Coordinator, TransactionFailed
from qmf.bus.engine.events import AcceptedBatch, ConfirmedBatch, Delivery, DeliveryBatch, HeldBatch, OutcomeReceived
from qmf.bus.engine.link import Link
from qmf.bus.engine.resumption import Resumption
from qmf.bus.engine.values import ExpiryPolicy, Filter, Terminus
from qmf.bus.transport import AmqpTransport

log = logging.getLogger("qmf.broker")

#: Credit that a client may give. What it gives above that counts as negative in proton.
MAX_CREDIT = (1 << 31) - 1


class ClientLinks:
    """The links of one connection."""

    def __init__(
        self,
        client: ClientSession,
        transport: AmqpTransport,
        operations: Operations,
        sessions: ClientSessions,
        resumable: ResumableLinks,
        *,
        max_links: int,
    ) -> None:
        """Make the links of a connection, which has none yet.

        Args:
            client: the connection.
            transport: of the connection.
            operations, sessions, resumable: of the broker.
            max_links: that the client may have.
        """
        self._max_links = max_links
        self._client = client
        self._transport = transport
        self._operations = operations
        self._registry = operations.registry
        self._sessions = sessions
        self._resumable = resumable
        self._outgoing: dict[Link, OutgoingLink] = {}
        self._incoming: dict[Link, IncomingLink] = {}
        self._coordinator = Coordinator(operations.registry)
        self._coordinator_links: dict[Link, CoordinatorLink] = {}
        self._nodes = LinkNodes(client, operations)
        self._subscriptions = ClientSubscriptions(client, operations)
        self._rights = LinkRights(operations)

    @property
    def _principal(self) -> Principal:
        return Principal.of(self._client)

    def dispatch(self) -> None:
        """There is room again in the transport: deliver what waits."""
        for outgoing in self._outgoing.values():
            outgoing.dispatch()

    def on_deliveries(self, batch: DeliveryBatch) -> None:
        """The client sent messages."""
        if (incoming := self._incoming.get(batch.link)) is not None:
            incoming.on_deliveries(batch.deliveries)
        else:
            for event in batch.events():
                self.on_delivery(event)

    def on_accepted(self, batch: AcceptedBatch) -> None:
        """The client accepted messages."""
        if (outgoing := self._outgoing.get(batch.link)) is not None:
            outgoing.on_accepted(batch.delivery_tags)

    def on_held(self, batch: HeldBatch) -> None:
        """The client accepted messages, and waits until the broker has settled them."""
        if (outgoing := self._outgoing.get(batch.link)) is not None:
            outgoing.on_held(batch.delivery_tags)

    def on_delivery(self, event: Delivery) -> None:
        """The client sent a message."""
        if (incoming := self._incoming.get(event.link)) is not None:
            if event.transaction is None:
                incoming.on_delivery(event)
            else:
                incoming.on_transactional(event, self._coordinator)
        elif (coordinator := self._coordinator_links.get(event.link)) is not None:
            coordinator.on_delivery(event)

    def on_outcome(self, event: OutcomeReceived) -> None:
        """The client settled a message."""
        outgoing = self._outgoing.get(event.link)
        if outgoing is None:
            return
        if event.transaction is None:
            outgoing.on_outcome(event)
            return
        try:
            transaction = self._coordinator.find(event.transaction)
        except TransactionFailed as error:
            log.info("outcome of %s on link %r ignored: %s", self._client, event.link.name, error.refusal.description)
            return
        if (acquisition := outgoing.acquire(event)) is not None:
            transaction.acquisitions.append(acquisition)

    def on_confirmed(self, batch: ConfirmedBatch) -> None:
        """The client settled messages that it sent, after the broker gave them an outcome."""
        if (incoming := self._incoming.get(batch.link)) is not None:
            incoming.on_confirmed(batch.delivery_tags)

    def on_credit(self, link: Link) -> None:
        """The client gave credit, or asks to use it up."""
        if (outgoing := self._outgoing.get(link)) is None:
            return
        engine = self._transport.engine
        if engine.links.credit(link) < -outgoing.transfers:
            # A client may take back credit that was used meanwhile, so that less than none is left, but not more.
            engine.links.detach(link, "amqp:invalid-field", f"link-credit: must be a number from 0 to {MAX_CREDIT}")
            self.on_detached(link, closed=True)
            self._transport.flush_soon()
            return
        outgoing.dispatch()
        engine.links.answer_drain(link)

    def on_requested(self, link: Link) -> None:
        """The client asks for a link: grant or refuse it."""
        too_many = f"a connection may have {self._max_links} links"
        if len(self._transport.engine.links.by_impl) > 2 * self._max_links:
            # It does not answer the refusals, and each link takes memory until then.
            self._transport.engine.fail("amqp:resource-limit-exceeded", too_many)
            return
        try:
            if not link.named:
                raise LinkRefused("amqp:invalid-field", "name: a link must have one")
            if len(self._outgoing) + len(self._incoming) + len(self._coordinator_links) >= self._max_links:
                raise LinkRefused("amqp:resource-limit-exceeded", too_many)
            with self._rights.record_grants(link), self._wait_for_disk(link):
                if link.resumption is not None and self._resume(link, link.resumption):
                    pass
                elif link.is_sender:
                    self._attach_outgoing(link)
                else:
                    self._attach_incoming(link)
        except LinkRefused as refusal:
            self._refuse(link, refusal.condition, refusal.description)
        except OperationRefused as refused:
            self._refuse(link, UNAUTHORIZED, str(refused))
        self._transport.flush_soon()

    def _wait_for_disk(self, link: Link) -> AbstractContextManager[None]:
        """Within, a link is granted; what is created for it is on the disk before the client learns that."""
        return answer_when_stored(self._registry.recorder, self._transport, partial(self._on_not_stored, link))

    def _on_not_stored(self, link: Link, error: NotStored) -> None:
        """What was created for a link is not on the disk, and will not be: the link ends."""
        self._transport.engine.links.detach(link, "amqp:internal-error", f"cannot store: {error.reason}")
        self.on_detached(link, closed=True)

    def _refuse(self, link: Link, condition: str, description: str) -> None:
        log.info("refused link %r of %s: %s", link.name, self._client, description)
        self._transport.engine.links.refuse(link, condition, description)

    def on_ended(self, link: Link, *, closed: bool) -> None:
        """The client ends a link, or suspends it: it is answered when the disk has the end of what ends with it.

        Args:
            link: which.
            closed: it has ended it.
        """
        with answer_when_stored(self._registry.recorder, self._transport, self._on_end_not_stored):
            self.on_detached(link, closed=closed)

    def _on_end_not_stored(self, error: NotStored) -> None:
        """What has ended with a link is on the disk still: it will be there again after a restart."""
        self._client.close(f"cannot store: {error.reason}")

    def on_detached(self, link: Link, *, closed: bool, revoked: bool = False) -> None:
        """A link is gone: delete what was created for it or, when it may be resumed, keep it (not `closed`).

        With `revoked`, a subscription that may outlive its links is kept: the client has not ended it.
        """
        ended, nodes = self._forget(link)
        queue = ended.queue if isinstance(ended, OutgoingLink) else None
        if isinstance(ended, ResumableIncomingLink | ResumableOutgoingLink):
            if not closed:
                self._resumable.suspend(ended, nodes)
                return
            self._resumable.remove(ended)
            if isinstance(ended, ResumableIncomingLink):
                ended.forget()
        end_link(self._operations, ended, nodes, self._principal)
        if queue is not None and queue.settings.no_local and not queue.delivery.consumers:
            queue.exclude("")
        # Who receives from the queue of a subscription by its name does not end that.
        subscription = queue if isinstance(ended, OutgoingLink) and ended.ends_subscription else None
        self._subscriptions.on_detached(link, subscription, closed=closed and not revoked)
        if (coordinator := self._coordinator_links.pop(link, None)) is not None:
            self._registry.observer.on_detached(self._client, coordinator)
            coordinator.end()

    def end_session(self, session: Hashable, condition: str, description: str) -> None:
        """End a session with its links; `session` as of `ClientLink`."""
        own = [*self._coordinator_links, *self._outgoing, *self._incoming]
        links = [link for link in own if link.session_id == session]
        self._transport.engine.sessions.end_with_links(links, condition, description)
        for link in links:
            self.on_detached(link, closed=False)
        self._transport.flush_soon()

    def on_session_ended(self, session: Hashable) -> None:
        """A session of the client is gone, after its links; `session` as of `ClientLink`."""
        self._nodes.end_session(session)

    def on_node_deleted(self, node: Queue | Exchange) -> None:
        """A node was deleted: detach the links that send to it or receive from it."""
        links = [link for link, incoming in self._incoming.items() if incoming.node is node]
        links += [link for link, outgoing in self._outgoing.items() if outgoing.queue is node]
        for link in links:
            self._transport.engine.links.detach(link, "amqp:resource-deleted", f"{node.name!r} was deleted")
            self.on_detached(link, closed=True)
        if links:
            self._transport.flush_soon()

    def on_policy_changed(self) -> None:
        """Other rules apply: detach the links that lack a right which they had."""
        lost = self._rights.links_without_right(self._principal)
        for link, error in lost:
            log.info("detached link %r of %s: %s", link.name, self._client, error)
            self._registry.observer.on_link_revoked(self._client, link.name, str(error))
            self._transport.engine.links.detach(link, UNAUTHORIZED, str(error))
            self.on_detached(link, closed=True, revoked=True)
        if lost:
            self._transport.flush_soon()

    def surrender(self, link: ResumableLink) -> Sequence[LinkNode]:
        """See `LinkHolder`."""
        _, nodes = self._forget(link.link)
        self._transport.engine.links.detach(link.link, "amqp:link:stolen", "the link was resumed on another connection")
        self._transport.flush_soon()
        return nodes

    def _forget(self, link: Link) -> tuple[IncomingLink | OutgoingLink | None, Sequence[LinkNode]]:
        """Remove a link; gives the broker's end of it, and the nodes that are deleted with it."""
        ended = self._incoming.pop(link, None) or self._outgoing.pop(link, None)
        self._rights.forget(link)
        if ended is not None:
            if isinstance(ended, IncomingLink):
                ended.end()
            if (node := node_of(ended)) is not None:
                self._sessions.link_detached(self._client, node)
            self._registry.observer.on_detached(self._client, ended)
        return ended, self._nodes.pop(link)

    def on_disconnected(self) -> None:
        """The connection is gone, and all links with it."""
        for link in [*self._coordinator_links, *self._outgoing, *self._incoming]:
            self.on_detached(link, closed=False)
        for link in self._nodes.links():  # refused, and not detached by the client
            self.on_detached(link, closed=False)
        self._nodes.end_sessions()

    def _attach_outgoing(self, link: Link) -> None:
        """The client wants to receive."""
        source = link.source
        if source is None:
            self._transport.engine.links.accept(link, source=self._subscriptions.find(link), target=link.target)
            return
        if source.dynamic:
            queue, granted = self._nodes.create_temporary_queue(link, source)
            self._receive_from(link, source, queue, self._receive(queue, source), granted)
            return
        node, granted = self._nodes.find(link, source)
        if isinstance(node, Queue):
            if LINK_DECLARATION in link.properties:
                raise LinkRefused("amqp:not-allowed", f"{LINK_DECLARATION}: {node.name!r} is a queue, no subscription")
            grant = self._receive(node, source)
            self._nodes.take_exclusive(link, source, node)
            self._receive_from(link, source, node, grant, granted)
        elif isinstance(node, Exchange) and is_subscription(source):
            self._subscribe(link, source, node)
        else:
            grant, filters = self._bind_queue(link, source, node)
            self._receive_from(link, source, node, grant, attrs.evolve(granted, filters=filters))

    def _receive_from(
        self, link: Link, source: Terminus, node: Node, grant: ConsumeGrant | BrowseGrant, granted: Terminus
    ) -> None:
        """Receive from a queue that the source names, or that was created for the link.

        Args:
            link: of the client.
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
            key, granted = self._key(link, link.resumption), resumable_terms(link, source, granted)
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
        self._grant(outgoing, granted, unsettled)

    def _receive(self, queue: Queue, source: Terminus) -> ConsumeGrant | BrowseGrant:
        """The right to what a source asks of a queue."""
        if source.browse:
            return self._operations.browse(self._principal, queue)
        return self._operations.consume(self._principal, queue)

    def _subscribe(self, link: Link, source: Terminus, exchange: Exchange) -> None:
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
            key = self._key(link, link.resumption)
            granted = attrs.evolve(resumable_terms(link, source, granted), expiry=granted.expiry)
            outgoing, unsettled = self._resumable_outgoing(link, queue, None, key, granted)
        outgoing.ends_subscription = True
        outgoing.attach(grant)
        self._grant(outgoing, granted, unsettled)

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
        settings = subscription_settings(self._registry, link, source, excluded=excluded)
        return self._nodes.subscribe(link, settings, node, spec), (*applied, *no_local)

    def _attach_incoming(self, link: Link) -> None:
        """The client wants to send."""
        target = link.target
        if target is None:
            raise LinkRefused("amqp:invalid-field", "a sending link needs a target")
        if target.coordinator:
            self._transport.engine.links.accept(link, source=link.source, target=target)
            self._coordinator_links[link] = coordinator = CoordinatorLink(self._transport, link, self._coordinator)
            self._registry.observer.on_attached(self._client, coordinator)
            coordinator.begin()
            return
        node: Node | None = None
        granted = target
        if target.dynamic:
            node, granted = self._nodes.create_temporary(link, target)
        elif target.address is not None:
            node, granted = self._nodes.find(link, target)
        relay, origin = granted.address is None, self._client.info
        publisher = self._publisher(node, relay=relay)
        if node is not None and not target.dynamic:
            self._nodes.take_exclusive(link, target, node)
        make_bindings(self._operations, self._principal, link, node, node)
        unsettled: Unsettled | None = None
        incoming: IncomingLink
        if link.resumption is not None:
            if target.dynamic:
                raise LinkRefused("amqp:not-implemented", "a link to a temporary node cannot be resumed")
            key, granted = self._key(link, link.resumption), resumable_terms(link, target, granted)
            incoming = kept = ResumableIncomingLink(
                self._transport,
                link,
                publisher,
                node,
                relay=relay,
                origin=origin,
                key=key,
                granted=granted,
                memories=self._registry.memories,
            )
            if kept.lasting:
                unsettled = kept.reconcile(link.resumption.unsettled)
        elif isinstance(node, Exchange) and node.kind == "xml":
            incoming = querying_link(self._transport, link, publisher, node, origin)
        else:
            incoming = IncomingLink(self._transport, link, publisher, node, relay=relay, origin=origin)
        self._grant(incoming, granted, unsettled)

    def _publisher(self, node: Node | None, *, relay: bool) -> Publisher:
        """The right to send to a node, or to the anonymous relay."""
        if relay:
            self._operations.ask_relay(self._principal)
        publisher = self._operations.publisher(self._principal, relay=relay)
        if node is not None:
            publisher.grant(node)
        return publisher

    def _grant(self, end: IncomingLink | OutgoingLink, granted: Terminus, unsettled: Unsettled | None = None) -> None:
        """Grant a link, and use it.

        Args:
            end: the broker's end of the link.
            granted: terminus of the broker's side.
            unsettled: of a link that is resumed; None for a new link.
        """
        link = end.link
        source, target = (granted, link.target) if link.is_sender else (link.source, granted)
        resumption = None
        if isinstance(end, ResumableIncomingLink | ResumableOutgoingLink):
            resumption = Resumption(end.key.id, unsettled or {}, resumed=unsettled is not None)
            self._resumable.add(end, self)
        self._transport.engine.links.accept(link, source=source, target=target, resumption=resumption)
        if isinstance(end, OutgoingLink):
            self._outgoing[link] = end
        else:
            self._incoming[link] = end
        if (node := node_of(end)) is not None:
            self._sessions.link_attached(self._client, node)
        self._registry.observer.on_attached(self._client, end)
        end.begin()

    # Links that can be resumed

    def _key(self, link: Link, resumption: Resumption) -> LinkKey:
        return LinkKey(self._client.info.user, link.is_sender, resumption.id)

    def _resume(self, link: Link, resumption: Resumption) -> bool:
        """Resume a link that was attached before; False if there is none."""
        key = self._key(link, resumption)
        if self._resumable.is_late(key, resumption.attempt):
            raise LinkRefused("amqp:link:stolen", "the link was attached later on another connection")
        found = self._resumable.take(key)
        if found is None:
            return False
        resumable, nodes = found
        wanted = link.source if link.is_sender else link.target
        node = resumable.node
        if node is not None and not self._registry.has(node):
            end_link(self._operations, resumable, nodes, self._principal)
            raise LinkRefused("amqp:resource-deleted", f"{node.name!r} was deleted while the link was suspended")
        if wanted is None or wanted.address != resumable.granted.address:
            end_link(self._operations, resumable, nodes, self._principal)
            raise LinkRefused("amqp:invalid-field", f"the link to be resumed has node {resumable.granted.address!r}")
        try:  # the client may come from elsewhere now, and the policy may be another one
            if isinstance(resumable, ResumableIncomingLink):
                publisher = self._publisher(node, relay=resumable.granted.address is None)
            else:
                self._operations.consume(self._principal, resumable.queue)
        except OperationRefused:
            end_link(self._operations, resumable, nodes, self._principal)
            raise
        unsettled = resumable.reconcile(resumption.unsettled)
        self._nodes.keep(link, nodes)
        if isinstance(resumable, ResumableIncomingLink):
            resumable.reattach(self._transport, link, publisher, self._client.info)
        else:
            resumable.reattach(self._transport, link)
        self._grant(resumable, resumable.granted, unsettled)
        return True
