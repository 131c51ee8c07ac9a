"""Outgoing links of federation: messages leave their queue when another broker has accepted them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from qmf.broker.federation.definitions import Domain, LinkDefinition
from qmf.broker.federation.local_nodes import LocalSource
from qmf.broker.federation.peer_connector import LinkServices
from qmf.broker.federation.peer_nodes import remote_target
from qmf.broker.federation.sending_ends import SendingEnd, SendingTerms
from qmf.broker.federation.sending_links import SendingLink
from qmf.broker.federation.tracing import UnforwardedMessages
from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.sections import place_for_annotations
from qmf.broker.nodes.traces import add_to_trace, trace_section
from qmf.broker.operations.grants import ConsumeGrant
from qmf.broker.protocols.amqp.conditions import CONDITIONS
from qmf.broker.refusal import Reason
from qmf.bus.client.network_connection import NetworkConnection
from qmf.bus.engine.events import OutcomeReceived
from qmf.bus.engine.values import Outcome, Terminus
from qmf.errors import DecodeError


class PushingLink(SendingEnd):
    """This broker's end of an outgoing link.

    What goes in a circle is not sent, but rejected as the other broker might do: it goes to the alternate exchange of
    its queue, or is dropped.
    """

    def __init__(
        self,
        terms: SendingTerms,
        queue: Queue,
        selector: Callable[[Message], bool] | None,
        unforwarded: UnforwardedMessages,
    ) -> None:
        """Make an end.

        Args:
            unforwarded: counts what is not sent.
        """
        super().__init__(terms, queue, selector)
        self._unforwarded = unforwarded

    def deliver_all(self, entries: Sequence[Entry]) -> int:
        if self._ids is not None or self.queue.reserved:
            return self._deliver_singly(entries)
        kept: list[Entry] = []
        messages: list[bytes] = []
        unsent: list[tuple[int, Entry, str]] = []
        section = trace_section(self._trace.added)
        for place, entry in enumerate(entries):
            message = entry.message
            if message.message_format:
                return self._deliver_singly(entries)
            try:
                data = message.data if message.expires_at is None else self._contents.data_to_send(message)
                if (start := place_for_annotations(data)) >= 0:  # most messages come from no other broker
                    data = data[:start] + section + data[start:]
                else:
                    data = self._with_trace(data)
            except DecodeError as error:
                unsent.append((place, entry, str(error)))
                continue
            kept.append(entry)
            messages.append(data)
        sent = self._send_all(kept, messages) if messages else 0
        done = len(entries) if sent == len(kept) else entries.index(kept[sent])
        for place, entry, reason in unsent:
            if place < done:
                self._keep_unsent(entry, reason)
        return done

    def _prepare(self, message: Message) -> bytes:
        data = self._data_to_send(message)
        return data if message.message_format and message.opaque else self._with_trace(data)

    def _with_trace(self, data: bytes) -> bytes:
        """See `_prepare`."""
        if reason := self._trace.refusal(data):
            raise DecodeError(reason)
        return add_to_trace(data, self._trace.added)

    def _keep_unsent(self, entry: Entry, reason: str) -> None:
        self._unforwarded.add(reason)
        super()._keep_unsent(entry, reason)

    def _on_unsent(self, unsent: Sequence[tuple[Entry, str]]) -> None:
        for entry, _ in unsent:
            self._delivery.reject(entry)
        self.dispatch()


class OutgoingBrokerLink(SendingLink[PushingLink]):
    """A link from a node of this broker to another broker."""

    def __init__(self, definition: LinkDefinition, domain: Domain, services: LinkServices, who: str = "") -> None:
        super().__init__(definition, domain, services, who)
        self._source = LocalSource(definition, services.operations)

    def on_outcome(self, settled: OutcomeReceived) -> None:
        """See `LinkOwner`. What the other broker has no room for stays, and is sent when the link is up again."""
        if self._sending is None:
            return
        if settled.outcome is Outcome.REJECTED and settled.condition == CONDITIONS[Reason.FULL]:
            self._hold(f"no room in {self.definition.target!r} of the other broker: {settled.description}")
            settled = attrs.evolve(settled, outcome=Outcome.RELEASED)
        self._sending.on_outcome(settled)
        self._see_whether_settled()

    def _open_source(self) -> tuple[ConsumeGrant, Callable[[Message], bool] | None]:
        grant, node, selector = self._source.open(self._suspended)
        self.nodes = (node, grant.queue)
        return grant, selector

    def _target(self, network: NetworkConnection) -> Terminus:
        return remote_target(self.definition, network.peer.product)

    def _make_end(
        self, terms: SendingTerms, grant: ConsumeGrant, selector: Callable[[Message], bool] | None
    ) -> PushingLink:
        return PushingLink(terms, grant.queue, selector, self.unforwarded)

    def _owns(self, queue: Queue) -> bool:
        return self._source.owns(queue)

    def _remove_now(self) -> None:
        super()._remove_now()
        self._source.remove()

    def _give_back(self, end: PushingLink) -> None:
        end.on_detached()
        self._operations.registry.on_unused(end.queue)

    def _end_in_doubt(self, end: PushingLink, reason: str) -> None:
        if self._operations.registry.has(end.queue):
            self._report_doubt(end, f"{reason}; they are in queue {end.queue.name!r} again")
        self._give_back(end)
