"""Outgoing links of federation: messages leave their queue when another broker has accepted them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import attrs

from qmf.broker.federation.definitions import Domain, LinkDefinition
from qmf.broker.federation.local_nodes import LocalSource, NodeUnusable
from qmf.broker.federation.peer_connector import LinkFailed, LinkServices
from qmf.broker.federation.peer_links import KEPT_FOR, BrokerLink
from qmf.broker.federation.peer_nodes import remote_target
from qmf.broker.federation.peer_session import PeerSession
from qmf.broker.federation.tracing import LinkTrace, UnforwardedMessages
from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.observed_clients import ClientLink
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.sections import place_for_annotations
from qmf.broker.nodes.traces import add_to_trace, trace_section
from qmf.broker.operations.grants import ConsumeGrant
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.protocols.amqp.conditions import CONDITIONS
from qmf.broker.protocols.amqp.tagged import TaggedOutgoingLink
from qmf.broker.refusal import Reason
from qmf.bus.client.network_connection import NetworkConnection
from qmf.bus.engine.events import AcceptedBatch, OutcomeReceived
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Outcome, Terminus
from qmf.bus.transport import AmqpTransport


class PushingLink(TaggedOutgoingLink):
    """This broker's end of an outgoing link: its messages leave with one more id in their trace.

    What goes in a circle is not sent, but rejected as the other broker might do: it goes to the alternate exchange of
    its queue, or is dropped.
    """

    def __init__(
        self,
        transport: AmqpTransport,
        link: Link,
        queue: Queue,
        selector: Callable[[Message], bool] | None,
        *,
        lasting: bool,
        trace: LinkTrace,
        unforwarded: UnforwardedMessages,
    ) -> None:
        """Make an end for a link that is granted, whose messages the other broker settles.

        Args:
            transport, link, queue, selector: see `OutgoingLink`. The link can be resumed if the other broker says so.
            lasting: it can be after a restart as well.
            trace: decides which messages are sent.
            unforwarded: counts the others.
        """
        resumable = link.resumption is not None
        super().__init__(transport, link, queue, selector, lasting=lasting, resumable=resumable)
        self._trace = trace
        self._unforwarded = unforwarded
        self._loop = asyncio.get_running_loop()
        #: Messages that are not sent: the queue takes them for delivered until it may be changed again.
        self._refused: list[Entry] = []

    def deliver(self, entry: Entry) -> None:
        """See `Consumer`."""
        message = entry.message
        data, reason = self._prepare(message)
        if reason:
            self._refuse(entry, reason)
            return
        self._send(entry, data)

    def resume_on(self, transport: AmqpTransport, link: Link, trace: LinkTrace) -> None:
        """Send on the link of another connection, after what the other broker has not accepted on the last one."""
        assert link.resumption is not None
        self._trace = trace
        self.transfers = 0  # those of earlier connections are counted
        self.reattach(transport, link)
        self.resume((), link.resumption.unsettled)

    def unsettled_tags(self) -> Mapping[int, Outcome | None]:
        """What was sent and has no outcome, by delivery tag."""
        return dict.fromkeys(self._unsettled)

    def deliver_all(self, entries: Sequence[Entry]) -> int:
        """See `Consumer`."""
        if self.resumable:
            return self._deliver_singly(entries)
        kept: list[Entry] = []
        messages: list[bytes] = []
        refused: list[tuple[int, Entry, str]] = []
        section = trace_section(self._trace.added)
        for place, entry in enumerate(entries):
            message = entry.message
            if message.message_format:
                return self._deliver_singly(entries)
            data = message.data
            if (start := place_for_annotations(data)) >= 0:  # most messages come from no other broker
                data, reason = data[:start] + section + data[start:], ""
            else:
                data, reason = self._prepare(message)
            if reason:
                refused.append((place, entry, reason))
            else:
                kept.append(entry)
                messages.append(data)
        tags = self._transport.send_all(self.link, messages) if messages else []
        self.transfers += len(tags)
        self._unsettled.update(zip(tags, kept, strict=False))
        done = len(entries) if len(tags) == len(kept) else entries.index(kept[len(tags)])
        for place, entry, reason in refused:
            if place < done:
                self._refuse(entry, reason)
        return done

    def on_detached(self) -> None:
        """See `OutgoingLink`."""
        self._reject_refused()
        super().on_detached()

    def _prepare(self, message: Message) -> tuple[bytes, str]:
        """What is sent of a message; why it is not, empty if it is."""
        data = message.data
        if message.message_format and message.opaque:
            return data, ""
        reason = self._trace.refusal(data)
        return (data, reason) if reason else (add_to_trace(data, self._trace.added), "")

    def _refuse(self, entry: Entry, reason: str) -> None:
        self._unforwarded.add(reason)
        if not self._refused:
            self._loop.call_soon(self._reject_refused)
        self._refused.append(entry)

    def _reject_refused(self) -> None:
        refused, self._refused = self._refused, []
        for entry in refused:
            self._delivery.reject(entry)
        if refused:
            self.dispatch()


class OutgoingBrokerLink(BrokerLink):
    """A link from a node of this broker to another broker."""

    def __init__(self, definition: LinkDefinition, domain: Domain, services: LinkServices, who: str = "") -> None:
        """Make a link; the arguments are those of `BrokerLink`."""
        super().__init__(definition, domain, services, who)
        self._source = LocalSource(definition, services.operations)
        self._pushing: PushingLink | None = None
        #: What was sent on the last connection, and may have been accepted: it is kept for the next one.
        self._suspended: PushingLink | None = None

    def check(self) -> None:
        """See `BrokerLink`."""
        self._open_source()

    def on_ended(self) -> None:
        """See `PeerConnector`."""
        pushing, self._suspended = self._suspended, None
        if pushing is not None:
            self._give_back(pushing)

    def _open_source(self) -> tuple[ConsumeGrant, Callable[[Message], bool] | None]:
        grant, node, selector = self._source.open(self._suspended)
        self.nodes = (node, grant.queue)
        return grant, selector

    def remove(self) -> None:
        """See `BrokerLink`."""
        super().remove()
        self._source.remove()

    def on_credit(self) -> None:
        """See `LinkOwner`."""
        if self._pushing is not None:
            self._pushing.dispatch()

    def on_accepted(self, batch: AcceptedBatch) -> None:
        """See `LinkOwner`."""
        if self._pushing is not None:
            self._pushing.on_accepted(batch.delivery_tags)

    def on_outcome(self, settled: OutcomeReceived) -> None:
        """See `LinkOwner`. What the other broker has no room for stays, and is sent when the link is up again."""
        if self._pushing is None:
            return
        full = settled.outcome is Outcome.REJECTED and settled.condition == CONDITIONS[Reason.FULL]
        if full:
            self.drop(f"no room in {self.definition.target!r} of the other broker: {settled.description}")
            self._pushing.queue.delivery.remove_consumer(self._pushing)
            settled = attrs.evolve(settled, outcome=Outcome.RELEASED)
        self._pushing.on_outcome(settled)

    def _request(self, network: NetworkConnection) -> Link:
        definition = self.definition
        try:
            self._open_source()
            target = remote_target(definition, network.peer.product)
        except (NodeUnusable, OperationRefused) as error:
            raise LinkFailed(str(error)) from error
        # A lasting link has no list: what was sent before a restart is not known.
        sent = self._suspended.unsettled_tags() if self._suspended is not None and not self.durable else {}
        resumption = self._resumption(network, sent)
        return network.engine.links.attach(
            definition.name,
            is_sender=True,
            terminus=target if resumption is None else attrs.evolve(target, timeout=KEPT_FOR),
            own_terminus=Terminus(definition.source),
            unsettled=True,
            resumption=resumption,
        )

    def _begin(self, network: NetworkConnection, link: Link, session: PeerSession) -> ClientLink:  # noqa: ARG002
        try:
            grant, selector = self._open_source()
        except (NodeUnusable, OperationRefused) as error:
            raise LinkFailed(str(error)) from error
        if self._suspended is not None and link.resumption is not None:
            pushing, self._suspended = self._suspended, None
            pushing.resume_on(network.transport, link, self._trace(network))
            if pushing not in grant.queue.delivery.consumers.all:  # the other broker had no room
                grant.begin(pushing)
        else:
            self.on_ended()  # the other broker has no such links, or not any more
            pushing = PushingLink(
                network.transport,
                link,
                grant.queue,
                selector,
                lasting=self.durable,
                trace=self._trace(network),
                unforwarded=self.unforwarded,
            )
            if link.resumption is not None:
                pushing.resume((), link.resumption.unsettled)
            pushing.attach(grant)
        self._pushing = pushing
        self._loop.call_soon(self.on_credit)
        return pushing

    def _finish(self) -> None:
        pushing, self._pushing = self._pushing, None
        if pushing is None:
            return
        if pushing.resumable and not self.status.ended:
            self._suspended = pushing
        else:
            self._give_back(pushing)

    def _give_back(self, pushing: PushingLink) -> None:
        """Put what was sent back into its queue."""
        queue = pushing.queue
        pushing.on_detached()
        self._operations.registry.on_unused(queue)
