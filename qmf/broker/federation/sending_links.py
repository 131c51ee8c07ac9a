"""Links that send to other brokers: what was sent is kept until it has an outcome, over connections if need be.

What a link can do about messages without an outcome is decided here. On the same broker's next connection it learns
what became of them. Where nobody can say that any more, since the link is deleted or another broker has taken over,
they are in doubt: they may arrive twice, which is logged, counted and an event.
"""

from __future__ import annotations

import abc
import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import attrs

from qmf.broker.federation.definitions import Domain, LinkDefinition
from qmf.broker.federation.duplicate_ids import DuplicateIds
from qmf.broker.federation.link_status import PeerLinkState
from qmf.broker.federation.local_nodes import NodeUnusable
from qmf.broker.federation.peer_connector import LinkFailed, LinkServices
from qmf.broker.federation.peer_links import CLOSE_TIMEOUT, KEPT_FOR, BrokerLink
from qmf.broker.federation.peer_nodes import ARTEMIS
from qmf.broker.federation.peer_session import PeerSession
from qmf.broker.federation.sending_ends import SendingEnd, SendingTerms
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.observed_clients import ClientLink
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.operations.grants import ConsumeGrant
from qmf.broker.operations.policy import OperationRefused
from qmf.bus.client.network_connection import NetworkConnection
from qmf.bus.engine.events import AcceptedBatch, HeldBatch
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Outcome, Terminus

log = logging.getLogger("qmf.broker.federation")

#: Seconds within which the other broker gives outcomes to what it has, when nothing more is sent.
OUTCOME_TIMEOUT = 10.0

E = TypeVar("E", bound=SendingEnd)


class SendingLink(BrokerLink, Generic[E]):
    """A link from a queue of this broker to another broker."""

    #: Why it ends when it is deleted, for people.
    DELETED = "the link was deleted"

    def __init__(self, definition: LinkDefinition, domain: Domain, services: LinkServices, who: str = "") -> None:
        super().__init__(definition, domain, services, who)
        self._ids = DuplicateIds(definition.container, services.run)
        self._sending: E | None = None
        #: What was sent on the last connection, and may have been accepted: it is kept for the next one.
        self._suspended: E | None = None
        #: Called when all that was sent has an outcome, while nothing more is sent; and at the latest then.
        self._on_settled: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        #: It is deleted: done when it has ended.
        self._removal: asyncio.Future[None] | None = None

    def check(self) -> None:
        self._open_source()

    # Beginning and end

    def remove(self) -> None:
        """See `BrokerLink`. What was sent gets its outcome before, if the other broker gives it soon."""
        self._removal = self._loop.create_future()
        if self._sending is None or self._owns(self._sending.queue):
            self._remove_now()
        else:
            self._stop_sending(CLOSE_TIMEOUT, self._remove_now)

    def _remove_now(self) -> None:
        super().remove()
        if self._removal is not None and not self._removal.done():
            self._removal.set_result(None)

    async def close(self) -> None:
        if self._removal is not None:
            await self._removal
        await super().close()

    def on_ended(self) -> None:
        suspended, self._suspended = self._suspended, None
        if suspended is not None:
            self._end_for_good(suspended)

    # LinkOwner

    def on_credit(self) -> None:
        if self._sending is not None:
            self._sending.dispatch()

    def on_accepted(self, batch: AcceptedBatch) -> None:
        if self._sending is not None:
            self._sending.on_accepted(batch.delivery_tags)
            self._see_whether_settled()

    def on_held(self, batch: HeldBatch) -> None:
        if self._sending is not None:
            self._sending.on_held(batch.delivery_tags)
            self._see_whether_settled()

    # What subclasses do

    @abc.abstractmethod
    def _open_source(self) -> tuple[ConsumeGrant, Callable[[Message], bool] | None]:
        """The right to take messages, and which; None for all.

        Raises:
            NodeUnusable: there is no such node.
            OperationRefused: the policy refuses it.
        """

    @abc.abstractmethod
    def _target(self, network: NetworkConnection) -> Terminus:
        """The node at the other broker."""

    @abc.abstractmethod
    def _make_end(self, terms: SendingTerms, grant: ConsumeGrant, selector: Callable[[Message], bool] | None) -> E:
        """This broker's end of the link, which does not send yet."""

    @abc.abstractmethod
    def _give_back(self, end: E) -> None:
        """An end is not used any more: what it has sent, and has no outcome, returns to its queue."""

    @abc.abstractmethod
    def _end_in_doubt(self, end: E, reason: str) -> None:
        """The link ends, and it is not known whether the other broker has what an end has sent.

        Args:
            end: which, with messages that have no outcome.
            reason: why.
        """

    def _owns(self, queue: Queue) -> bool:  # noqa: ARG002
        """A queue is deleted with the link, with what is in it."""
        return False

    # For subclasses

    def _hold(self, reason: str) -> None:
        """Send nothing more, and end the connection when all that was sent has an outcome: it is made again."""
        if self._on_settled is None:
            self._stop_sending(OUTCOME_TIMEOUT, lambda: self.drop(reason))

    def _see_whether_settled(self) -> None:
        """Messages have got their outcomes."""
        if self._on_settled is not None and (self._sending is None or not self._sending.unsettled):
            self._finish_waiting()

    # BrokerLink

    def _request(self, network: NetworkConnection) -> Link:
        try:
            self._open_source()
            target = self._target(network)
        except (NodeUnusable, OperationRefused) as error:
            raise LinkFailed(str(error)) from error
        # A lasting link has no list: what was sent before a restart is not known.
        sent: Mapping[int, Outcome | None] = {}
        if self._suspended is not None and not self.durable:
            sent = self._suspended.unsettled_tags()
        resumption = self._resumption(network, sent)
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
            grant, selector = self._open_source()
        except (NodeUnusable, OperationRefused) as error:
            raise LinkFailed(str(error)) from error
        terms = self._terms(network, link)
        suspended, self._suspended = self._suspended, None
        if suspended is not None and suspended.unsettled and (why := self._doubt(suspended, terms)):
            self._report_doubt(suspended, f"{why}; they are sent again, and may arrive twice")
        if suspended is not None and link.resumption is not None:
            sending = suspended
            sending.resume_on(terms)
            if sending not in grant.queue.delivery.consumers.all:  # the other broker had no room
                grant.begin(sending)
        else:
            if suspended is not None:  # the other broker has no such links, or not any more
                self._give_back(suspended)
            sending = self._make_end(terms, grant, selector)
            if link.resumption is not None:
                sending.resume((), link.resumption.unsettled)
            sending.attach(grant)
        self._sending = sending
        self._loop.call_soon(self.on_credit)
        return sending

    def _finish(self) -> None:
        sending, self._sending = self._sending, None
        if sending is not None:
            if not sending.resumable:
                self._give_back(sending)
            elif self.status.ended:
                self._end_for_good(sending)
            else:
                self._suspended = sending
        if self._on_settled is not None:
            self._loop.call_soon(self._finish_waiting)

    # Details

    def _terms(self, network: NetworkConnection, link: Link) -> SendingTerms:
        peer = network.peer
        ids = self._ids if self.definition.exactly_once and peer.product == ARTEMIS else None
        # Brokers that resume links have ids; others may all have the same one.
        place = peer.container if link.resumption is not None else f"{peer.container} at {network.url}"
        return SendingTerms(network.transport, link, place, self.durable, self._trace(network), ids)

    def _doubt(self, suspended: E, terms: SendingTerms) -> str:
        """Why nobody knows what became of messages of the last connection; empty if the other broker knows."""
        if suspended.peer != terms.peer:
            return f"another broker answers, {terms.peer}"
        if not terms.comes_once:
            return "the other broker does not resume links any more"
        resumption = terms.link.resumption
        if resumption is not None and not (resumption.resumed or self.durable):
            return "the other broker has forgotten the link"
        return ""

    def _end_for_good(self, end: E) -> None:
        """The link ends for good."""
        failed = self.status.state is PeerLinkState.FAILED
        if end.unsettled and (failed or self._removal is not None) and not self._owns(end.queue):
            self._end_in_doubt(end, f"the link has failed: {self.status.reason}" if failed else self.DELETED)
        else:  # or the broker ends: a durable link goes on after its restart
            self._give_back(end)

    def _report_doubt(self, end: E, reason: str) -> None:
        self.count_in_doubt += len(end.unsettled)
        report_doubt(self._operations.registry, self._who, self.name, end, reason)

    def _stop_sending(self, within: float, then: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._on_settled = then
        self._timer = self._loop.call_later(within, self._finish_waiting)
        if self._sending is not None:
            self._sending.stop()
        self._see_whether_settled()

    def _finish_waiting(self) -> None:
        then, self._on_settled = self._on_settled, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if then is not None:
            then()


def report_doubt(registry: NodeRegistry, who: str, name: str, end: SendingEnd, reason: str) -> None:
    """It is not known whether the other broker has the messages of an end that have no outcome.

    Args:
        who: what has sent them, for the log.
        name: of that.
        reason: why, and what becomes of them.
    """
    count = len(end.unsettled)
    log.warning("%s: messages of which it is not known whether %s has them: %d; %s", who, end.peer, count, reason)
    registry.observer.on_messages_in_doubt(name, end.peer, count, reason)
