"""The link of a transfer agent: takes messages from a transmission queue, and sends each to the node in its address."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from qmf.broker.federation.definitions import Domain
from qmf.broker.federation.local_nodes import NodeUnusable
from qmf.broker.federation.peer_connector import LinkServices
from qmf.broker.federation.peer_links import KEPT_FOR
from qmf.broker.federation.peer_nodes import remote_relay
from qmf.broker.federation.sending_ends import SendingEnd, SendingTerms
from qmf.broker.federation.sending_links import SendingLink, report_doubt
from qmf.broker.nodes.entries import GONE, Entry
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.relay_addresses import AT, RELAY_TO, RELAY_USER, data_to_forward, relay_annotations
from qmf.broker.nodes.sections import with_sender
from qmf.broker.nodes.traces import add_to_trace
from qmf.broker.operations.grants import ConsumeGrant
from qmf.broker.protocols.amqp.conditions import CONDITIONS
from qmf.broker.refusal import Reason
from qmf.broker.relay.definitions import RelayDefinition
from qmf.bus.client.network_connection import NetworkConnection
from qmf.bus.engine.events import AcceptedBatch, HeldBatch, OutcomeReceived
from qmf.bus.engine.values import Outcome, Terminus
from qmf.errors import DecodeError

#: Outcomes with which the other broker may take a message later.
_LATER = frozenset({Outcome.RELEASED, Outcome.MODIFIED})


class TransferEnd(SendingEnd):
    """This broker's end of the link: each message leaves with its address and its user in its properties.

    Attributes:
        suspended_at: when the connection was lost, by the loop's clock; None while there is one.
    """

    def __init__(
        self,
        terms: SendingTerms,
        queue: Queue,
        *,
        full_address: bool,
        on_unsent: Callable[[Sequence[tuple[Entry, str]]], None],
        on_forwarded: Callable[[int], None],
    ) -> None:
        """Make an end.

        Args:
            full_address: send to ``name@domain``, and not to ``name``.
            on_unsent: called with entries that cannot be sent, and the reasons; they stay acquired.
            on_forwarded: called with the number of messages that the other broker has accepted.
        """
        super().__init__(terms, queue, None)
        self._full_address = full_address
        self._report = on_unsent
        self._on_forwarded = on_forwarded
        self.suspended_at: float | None = None

    def suspend(self) -> None:
        """The connection is lost: what was sent is kept for the next one."""
        self.suspended_at = self._loop.time()

    def is_doubtful(self, entry: Entry) -> bool:
        """True for what was sent so long ago that the other broker need not know any more whether it has it."""
        since = self.suspended_at
        return since is not None and entry.acquirer is self and self._loop.time() - since >= KEPT_FOR

    def give_up(self, registry: NodeRegistry, who: str, reason: str) -> None:
        """Nobody will know what became of what was sent: it is not sent again.

        Args:
            who: what has sent it, for the log.
            reason: why.
        """
        report_doubt(registry, who, self.queue.name, self, f"{reason}; they are dead letters")
        letters = [(entry, f"it is not known whether the other broker has it: {reason}") for entry in self.take_all()]
        self._report(letters)

    def resume_on(self, terms: SendingTerms) -> None:
        self.suspended_at = None
        super().resume_on(terms)

    def on_accepted(self, delivery_tags: Iterable[int]) -> None:
        tags = list(delivery_tags)
        super().on_accepted(tags)
        self._on_forwarded(len(tags))

    def on_held(self, delivery_tags: list[int]) -> None:
        known = sum(tag in self._unsettled for tag in delivery_tags)
        super().on_held(delivery_tags)
        self._on_forwarded(known)

    def on_outcome(self, event: OutcomeReceived) -> None:
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

    def _prepare(self, message: Message) -> bytes:
        found = relay_annotations(message)
        address = str(found.get(RELAY_TO, ""))
        if not address:
            raise DecodeError("the message does not say to which address it is to be relayed")
        if reason := self._trace.refusal(message.data):
            raise DecodeError(reason)
        data = data_to_forward(message)
        to = address if self._full_address else address.rpartition(AT)[0]
        return add_to_trace(with_sender(data, str(found.get(RELAY_USER, "")), to), self._trace.added)

    def _on_unsent(self, unsent: Sequence[tuple[Entry, str]]) -> None:
        self._report(unsent)


class TransferLink(SendingLink[TransferEnd]):
    """The link of a transfer agent to the broker of a domain; it is made again when it is lost.

    Attributes:
        retried: messages that the other broker has refused for now.
    """

    DELETED = "the relay was deleted"

    def __init__(
        self,
        definition: RelayDefinition,
        domain: Domain,
        services: LinkServices,
        *,
        on_unsent: Callable[[Sequence[tuple[Entry, str]]], None],
        on_forwarded: Callable[[int], None],
    ) -> None:
        super().__init__(definition.link, domain, services, definition.who)
        self.retried = 0
        self._relay = definition
        self._on_unsent = on_unsent
        self._on_forwarded = on_forwarded
        #: How often the other broker has refused a message for now.
        self._refusals: dict[Entry, int] = {}

    def use(self, domain: Domain) -> None:
        """The broker of the domain is elsewhere from the next attempt on."""
        self.domain = domain
        self._connection.urls = domain.urls

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

    def on_accepted(self, batch: AcceptedBatch) -> None:
        super().on_accepted(batch)
        self._forget_refusals()

    def on_held(self, batch: HeldBatch) -> None:
        super().on_held(batch)
        self._forget_refusals()

    def _forget_refusals(self) -> None:
        if self._refusals:
            self._refusals = {entry: count for entry, count in self._refusals.items() if entry.state is not GONE}

    def on_outcome(self, settled: OutcomeReceived) -> None:
        """See `LinkOwner`. What the other broker refuses for now is sent again when the link is up again."""
        sending = self._sending
        if sending is None:
            return
        if settled.outcome is Outcome.ACCEPTED:
            sending.on_outcome(settled)
        elif (entry := sending.take(settled)) is not None:
            self._on_refused(sending, entry, settled)
        self._see_whether_settled()

    def _on_refused(self, sending: TransferEnd, entry: Entry, settled: OutcomeReceived) -> None:
        reason = f"{settled.condition}: {settled.description}" if settled.condition else settled.outcome.value
        full = settled.condition == CONDITIONS[Reason.FULL]
        if not full and settled.outcome not in _LATER:
            self._on_unsent([(entry, f"the other broker rejected it: {reason}")])
            return
        count = self._refusals[entry] = self._refusals.get(entry, 0) + 1
        self._hold(f"the other broker takes no message now: {reason}")
        if count > self._relay.retries:
            del self._refusals[entry]
            self._on_unsent([(entry, f"refused {count} times, at last: {reason}")])
        else:
            self.retried += 1
            sending.queue.delivery.put_back([entry])

    def _open_source(self) -> tuple[ConsumeGrant, None]:
        queue = self._operations.registry.queue(self._relay.transmission_queue)
        if queue is None:
            raise NodeUnusable(f"no queue {self._relay.transmission_queue!r}")
        self.nodes = (queue,)
        return self._operations.consume(self._relay.principal, queue), None

    def _target(self, network: NetworkConnection) -> Terminus:
        return remote_relay(network.peer.product)

    def _make_end(
        self,
        terms: SendingTerms,
        grant: ConsumeGrant,
        selector: Callable[[Message], bool] | None,  # noqa: ARG002  # all messages
    ) -> TransferEnd:
        return TransferEnd(
            terms,
            grant.queue,
            full_address=self._relay.full_address,
            on_unsent=self._on_unsent,
            on_forwarded=self._on_forwarded,
        )

    def _finish(self) -> None:
        super()._finish()
        if self._suspended is not None:
            self._suspended.suspend()

    def _give_back(self, end: TransferEnd) -> None:
        end.on_detached()

    def _end_in_doubt(self, end: TransferEnd, reason: str) -> None:
        if self._operations.registry.has(end.queue):
            end.give_up(self._operations.registry, self._who, reason)
        self._give_back(end)
