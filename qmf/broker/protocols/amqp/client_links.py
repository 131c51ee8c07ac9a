"""The links of one client: which it may have, what happens on them, and their end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.observed_clients import ClientSession
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.recorder import NotStored, Recorder
from qmf.broker.operations.held_rights import HeldRights
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.operations.principal import Principal
from qmf.broker.protocols.amqp.conditions import UNAUTHORIZED, LinkRefused
from qmf.broker.protocols.amqp.coordinator_link import CoordinatorLink
from qmf.broker.protocols.amqp.incoming import IncomingLink
from qmf.broker.protocols.amqp.link_nodes import LinkNode, LinkNodes
from qmf.broker.protocols.amqp.outgoing import OutgoingLink
from qmf.broker.protocols.amqp.requested_links import OpenedLink, RequestedLinks, node_of
from qmf.broker.protocols.amqp.resumable import (
    ResumableIncomingLink,
    ResumableLink,
    ResumableOutgoingLink,
)
from qmf.broker.protocols.amqp.resumable_links import ResumableLinks, end_link
from qmf.broker.protocols.amqp.subscriptions import ClientSubscriptions
from qmf.broker.sessions import ClientSessions
from qmf.broker.transactions.coordinator import Coordinator, TransactionFailed
from qmf.bus.engine.events import AcceptedBatch, ConfirmedBatch, Delivery, DeliveryBatch, HeldBatch, OutcomeReceived
from qmf.bus.engine.link import Link
from qmf.bus.engine.resumption import Resumption
from qmf.bus.transport import AmqpTransport

log = logging.getLogger("qmf.broker")

#: Credit that a client may give. What it gives above that counts as negative in proton.
MAX_CREDIT = (1 << 31) - 1


class ClientLinks:
    """The links of one connection; their `LinkHolder`."""

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
        """Make the links of a connection, which has none yet; `max_links`: that the client may have."""
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
        self._requested = RequestedLinks(client, transport, operations, self._nodes, self._subscriptions)
        self._rights: HeldRights[Link] = HeldRights(operations)

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
                else:
                    self._attach(link)
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
        lost = self._rights.missing(self._principal)
        for link, error in lost:
            log.info("detached link %r of %s: %s", link.name, self._client, error)
            self._registry.observer.on_link_revoked(self._client, link.name, str(error))
            self._transport.engine.links.detach(link, UNAUTHORIZED, str(error))
            self.on_detached(link, closed=True, revoked=True)
        if lost:
            self._transport.flush_soon()

    def surrender(self, link: ResumableLink) -> Sequence[LinkNode]:
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

    def _attach(self, link: Link) -> None:
        """A new link."""
        terminus = link.source if link.is_sender else link.target
        if terminus is None:
            if not link.is_sender:
                raise LinkRefused("amqp:invalid-field", "a sending link needs a target")
            self._transport.engine.links.accept(link, source=self._subscriptions.find(link), target=link.target)
        elif terminus.coordinator and not link.is_sender:
            self._transport.engine.links.accept(link, source=link.source, target=terminus)
            self._coordinator_links[link] = coordinator = CoordinatorLink(self._transport, link, self._coordinator)
            self._registry.observer.on_attached(self._client, coordinator)
            coordinator.begin()
        else:
            self._grant(self._requested.open(link, terminus))

    def _grant(self, opened: OpenedLink) -> None:
        """Grant a link, and use it."""
        end, granted, unsettled = opened.end, opened.granted, opened.unsettled
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

    def _resume(self, link: Link, resumption: Resumption) -> bool:
        """Resume a link that was attached before; False if there is none."""
        key = self._requested.key(link, resumption)
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
                publisher = self._requested.publisher(node)
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
        self._grant(OpenedLink(resumable, resumable.granted, unsettled))
        return True


@contextmanager
def answer_when_stored(
    recorder: Recorder | None, transport: AmqpTransport, on_failed: Callable[[NotStored], None]
) -> Iterator[None]:
    """What is created or deleted within is on the disk before anything more is written to the client.

    Args:
        recorder: of the broker; None for one without a store, where nothing waits.
        on_failed: called if the disk has refused it, while the client still is connected, before it learns anything.
    """
    if recorder is None:
        yield
        return
    recorder.flush()  # what others have done meanwhile
    try:
        yield
    finally:
        release = transport.hold_output()

        def on_stored(error: NotStored | None) -> None:
            try:
                if error is not None and transport.connected:
                    on_failed(error)
            finally:
                release()

        if not recorder.close_unit(on_stored):
            release()
