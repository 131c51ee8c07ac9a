"""The link of a transfer agent: takes messages from a transmission queue, and sends each to the node in its address."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from qmf.broker.federation.definitions import Domain
from qmf.broker.federation.local_nodes import NodeUnusable
from qmf.broker.federation.peer_connector import LinkFailed, LinkServices
from qmf.broker.federation.peer_links import KEPT_FOR, BrokerLink
from qmf.broker.federation.peer_session import PeerSession
from qmf.broker.federation.tracing import LinkTrace
from qmf.broker.nodes.addressed import with_sender
from qmf.broker.nodes.entries import GONE, Entry
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.observed_clients import ClientLink
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.relay_addresses import AT, RELAY_TO, RELAY_USER, relay_annotations
from qmf.broker.nodes.traces import add_to_trace
from qmf.broker.operations.grants import ConsumeGrant
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.protocols.amqp.conditions import CONDITIONS
from qmf.broker.protocols.amqp.tagged import TaggedOutgoingLink
from qmf.broker.refusal import Reason
from qmf.broker.relay.definitions import RelayDefinition
from qmf.bus.client.network_connection import NetworkConnection
from qmf.bus.engine.events import AcceptedBatch, OutcomeReceived
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Outcome, Terminus
from qmf.bus.transport import AmqpTransport
from qmf.errors import DecodeError

#: Outcomes with which the other broker may take a message later.
_LATER = frozenset({Outcome.RELEASED, Outcome.MODIFIED})


class TransferEnd(TaggedOutgoingLink):
    """This broker's end of the link: each message leaves with its address and its user in its properties.

    Attributes:
        suspended_at: when the connection was lost, by the loop's clock; None while there is one.
    """

    def __init__(
        self,
        transport: AmqpTransport,
        link: Link,
        queue: Queue,
        *,
        lasting: bool,
        trace: LinkTrace,
        full_address: bool,
        on_unsent: Callable[[Sequence[tuple[Entry, str]]], None],
        on_forwarded: Callable[[int], None],
    ) -> None:
        """Make an end for a link that is granted, whose messages the other broker settles.

        Args:
            transport, link, queue: see `OutgoingLink`. The link can be resumed if the other broker says so.
            lasting: it can be after a restart as well.
            trace: decides which messages are sent.
            full_address: send to ``name@domain``, and not to ``name``.
            on_unsent: called with entries that cannot be sent, and the reasons; they stay acquired.
            on_forwarded: called with the number of messages that the other broker has accepted.
        """
        super().__init__(transport, link, queue, None, lasting=lasting, resumable=link.resumption is not None)
        self._trace = trace
        self._full_address = full_address
        self._on_unsent = on_unsent
        self._on_forwarded = on_forwarded
        self._loop = asyncio.get_running_loop()
        self._unsent: list[tuple[Entry, str]] = []
        self.suspended_at: float | None = None

    def suspend(self) -> None:
        """The connection is lost: what was sent is kept for the next one."""
        self.suspended_at = self._loop.time()

    def is_doubtful(self, entry: Entry) -> bool:
        """True for what was sent so long ago that the other broker need not know any more whether it has it."""
        since = self.suspended_at
        return since is not None and entry.acquirer is self and self._loop.time() - since >= KEPT_FOR

    def forget(self, entry: Entry) -> None:
        """Somebody else decides on a message, which stays acquired."""
        self._unsettled = {tag: sent for tag, sent in self._unsettled.items() if sent is not entry}

    def resume_on(self, transport: AmqpTransport, link: Link, trace: LinkTrace) -> None:
        """Send on the link of another connection, after what the other broker has accepted on the last one."""
        assert link.resumption is not None
        self._trace = trace
        self.suspended_at = None
        self.transfers = 0  # those of earlier connections are counted
        self.reattach(transport, link)
        self.resume((), link.resumption.unsettled)

    @property
    def unsettled(self) -> Mapping[int, Entry]:
        """What was sent and has no outcome, by delivery tag."""
        return self._unsettled

    def deliver(self, entry: Entry) -> None:
        """See `Consumer`."""
        try:
            data = self._prepare(entry.message)
        except DecodeError as error:
            if not self._unsent:  # the queue takes them for delivered until it may be changed again
                self._loop.call_soon(self._report_unsent)
            self._unsent.append((entry, str(error)))
            return
        self._send(entry, data)

    def deliver_all(self, entries: Sequence[Entry]) -> int:
        """See `Consumer`."""
        return self._deliver_singly(entries)

    def on_accepted(self, delivery_tags: Iterable[int]) -> None:
        """See `OutgoingLink`."""
        tags = list(delivery_tags)
        super().on_accepted(tags)
        self._on_forwarded(len(tags))

    def on_outcome(self, event: OutcomeReceived) -> None:
        """See `OutgoingLink`."""
        known = event.delivery_tag in self._unsettled
        super().on_outcome(event)
        if known and event.outcome is Outcome.ACCEPTED:
            self._on_forwarded(1)

    def take(self, event: OutcomeReceived) -> Entry | None:
        """A message that the other broker has not accepted, which stays acquired."""
        if not event.final:
            self._transport.engine.decisions.settle_sent(self.link, event.delivery_tag, event.outcome)
            self._transport.flush_soon()
        return self._unsettled.pop(event.delivery_tag, None)

    def on_detached(self) -> None:
        """See `OutgoingLink`."""
        self._report_unsent()
        super().on_detached()

    def _prepare(self, message: Message) -> bytes:
        """What is sent of a message.

        Raises:
            DecodeError: it is not sent; says why.
        """
        found = relay_annotations(message)
        address = str(found.get(RELAY_TO, ""))
        if not address:
            raise DecodeError("the message does not say to which address it is to be relayed")
        if reason := self._trace.refusal(message.data):
            raise DecodeError(reason)
        to = address if self._full_address else address.rpartition(AT)[0]
        return add_to_trace(with_sender(message.data, str(found.get(RELAY_USER, "")), to), self._trace.added)

    def _report_unsent(self) -> None:
        unsent, self._unsent = self._unsent, []
        if unsent:
            self._on_unsent(unsent)


class TransferLink(BrokerLink):
    """The link of a transfer agent to the broker of a domain; it is made again when it is lost.

    Attributes:
        retried: messages that the other broker has refused for now.
    """

    def __init__(
        self,
        definition: RelayDefinition,
        domain: Domain,
        services: LinkServices,
        *,
        on_unsent: Callable[[Sequence[tuple[Entry, str]]], None],
        on_forwarded: Callable[[int], None],
    ) -> None:
        """Make a link, which connects after `start`.

        Args:
            definition: of the relay.
            domain: the other broker.
            services: of the broker.
            on_unsent, on_forwarded: see `TransferEnd`.
        """
        super().__init__(definition.link, domain, services, f"relay to domain {definition.name}")
        self.retried = 0
        self._relay = definition
        self._on_unsent = on_unsent
        self._on_forwarded = on_forwarded
        self._sending: TransferEnd | None = None
        self._suspended: TransferEnd | None = None
        #: How often the other broker has refused a message for now.
        self._refusals: dict[Entry, int] = {}

    def use(self, domain: Domain) -> None:
        """The broker of the domain is elsewhere from the next attempt on."""
        self.domain = domain
        self._connection.urls = domain.urls

    def check(self) -> None:
        """See `BrokerLink`."""
        self._open_source()

    @property
    def suspended(self) -> TransferEnd | None:
        """What was sent on the last connection, and may have been accepted: it is kept for the next one."""
        return self._suspended

    def suspend(self) -> TransferEnd | None:
        """The link is about to be closed: take what was sent, and may have been accepted, for the next one."""
        self._let_go()
        suspended, self._suspended = self._suspended, None
        return suspended

    def continue_with(self, suspended: TransferEnd | None) -> None:
        """Begin with what an earlier link has sent (`suspend`)."""
        self._suspended = suspended

    def on_ended(self) -> None:
        """See `PeerConnector`."""
        suspended, self._suspended = self._suspended, None
        if suspended is not None:
            suspended.on_detached()

    def on_credit(self) -> None:
        """See `LinkOwner`."""
        if self._sending is not None:
            self._sending.dispatch()

    def on_accepted(self, batch: AcceptedBatch) -> None:
        """See `LinkOwner`."""
        if self._sending is not None:
            self._sending.on_accepted(batch.delivery_tags)
            if self._refusals:
                self._refusals = {entry: count for entry, count in self._refusals.items() if entry.state is not GONE}

    def on_outcome(self, settled: OutcomeReceived) -> None:
        """See `LinkOwner`. What the other broker refuses for now is sent again when the link is up again."""
        sending = self._sending
        if sending is None:
            return
        if settled.outcome is Outcome.ACCEPTED:
            sending.on_outcome(settled)
            return
        entry = sending.take(settled)
        if entry is None:
            return
        reason = f"{settled.condition}: {settled.description}" if settled.condition else settled.outcome.value
        full = settled.condition == CONDITIONS[Reason.FULL]
        if not full and settled.outcome not in _LATER:
            self._on_unsent([(entry, f"the other broker rejected it: {reason}")])
            return
        count = self._refusals[entry] = self._refusals.get(entry, 0) + 1
        self.drop(f"the other broker takes no message now: {reason}")
        sending.queue.delivery.remove_consumer(sending)
        if count > self._relay.retries:
            del self._refusals[entry]
            self._on_unsent([(entry, f"refused {count} times, at last: {reason}")])
        else:
            self.retried += 1
            sending.queue.delivery.put_back([entry])

    def _open_source(self) -> ConsumeGrant:
        queue = self._operations.registry.queue(self._relay.transmission_queue)
        if queue is None:
            raise NodeUnusable(f"no queue {self._relay.transmission_queue!r}")
        self.nodes = (queue,)
        return self._operations.consume(self._relay.principal, queue)

    def _request(self, network: NetworkConnection) -> Link:
        suspended = self._suspended
        # A lasting link has no list: what was sent before a restart is not known.
        sent = dict.fromkeys(suspended.unsettled) if suspended is not None and not self.durable else {}
        resumption = self._resumption(network, sent)
        target = Terminus()
        return network.engine.links.attach(
            self.definition.name,
            is_sender=True,
            terminus=target if resumption is None else attrs.evolve(target, timeout=KEPT_FOR),
            own_terminus=Terminus(self.definition.source),
            unsettled=True,
            resumption=resumption,
        )

    def _begin(self, network: NetworkConnection, link: Link, session: PeerSession) -> ClientLink:  # noqa: ARG002
        try:
            grant = self._open_source()
        except (NodeUnusable, OperationRefused) as error:
            raise LinkFailed(str(error)) from error
        if self._suspended is not None and link.resumption is not None:
            sending, self._suspended = self._suspended, None
            sending.resume_on(network.transport, link, self._trace(network))
            if sending not in grant.queue.delivery.consumers.all:  # the other broker had no room
                grant.begin(sending)
        else:
            self.on_ended()  # the other broker has no such links, or not any more
            sending = TransferEnd(
                network.transport,
                link,
                grant.queue,
                lasting=self.durable,
                trace=self._trace(network),
                full_address=self._relay.full_address,
                on_unsent=self._on_unsent,
                on_forwarded=self._on_forwarded,
            )
            if link.resumption is not None:
                sending.resume((), link.resumption.unsettled)
            sending.attach(grant)
        self._sending = sending
        self._loop.call_soon(self.on_credit)
        return sending

    def _finish(self) -> None:
        sending, self._sending = self._sending, None
        if sending is None:
            return
        if sending.resumable and not self.status.ended:
            sending.suspend()
            self._suspended = sending
        else:
            sending.on_detached()
