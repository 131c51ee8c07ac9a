"""Incoming links: from a client that sends to the broker's nodes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from qmf.broker.client_info import ClientInfo
from qmf.broker.nodes.exchanges import DefaultExchange, Exchange
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.recorder import NotStored, Recorder
from qmf.broker.nodes.router import Node
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.operations.publisher import Publisher
from qmf.broker.operations.publishing import no_node, publish_message, read_and_resolve, reject
from qmf.broker.protocols.amqp.conditions import outcome_of
from qmf.broker.protocols.amqp.credit import SharedCredit
from qmf.broker.refusal import Reason, Refusal
from qmf.broker.transactions.coordinator import Coordinator, TransactionFailed
from qmf.bus.engine.events import Delivery
from qmf.bus.engine.link import BATCHABLE, Link
from qmf.bus.engine.values import Outcome
from qmf.bus.transport import AmqpTransport
from qmf.errors import DecodeError

#: Messages that a client may have in flight per link. They are routed as they arrive, so that the window only has to
#: cover the round trip of a fast sender.
CREDIT_WINDOW = 500


class IncomingLink:
    """A link on which a client sends; a `ClientLink` for observers.

    Attributes:
        link: the engine's.
        node: where the messages go; None for the anonymous relay: each goes to the node in its `to`.
        transfers: messages received.
    """

    queue = transactions = None  #: see `ClientLink`
    browsing = False  #: see `ClientLink`

    def __init__(
        self,
        transport: AmqpTransport,
        link: Link,
        publisher: Publisher,
        node: Node | None,
        *,
        origin: ClientInfo,
        window: int = CREDIT_WINDOW,
        change: Callable[[Message], Message] | None = None,
    ) -> None:
        """Make the link, which the client has asked to attach.

        Args:
            publisher: of the client, for this link.
            window: messages that the client may have in flight.
            change: gives what is published in place of each message.
        """
        self.link = link
        self.transfers = 0
        self._transport = transport
        self._publisher = publisher
        self._registry = publisher.registry
        self.node = node
        self._origin = origin
        #: The client does not wait for the outcomes of requests and answers.
        self._batchable = link.properties.get(BATCHABLE) is True and not link.settles_second
        #: Messages that need no credit any more, and the same number when credit was given the last time.
        self._finished = self._credited = 0
        self._window = window
        self._change = change
        #: Each message is settled on its own, since the client settles it as well.
        self._singly = link.settles_second
        #: Gives credit instead, where a queue has flow control.
        self._shared: SharedCredit | None = None

    @property
    def name(self) -> str:
        return self.link.name

    @property
    def session(self) -> Hashable:
        return self.link.session_id

    @property
    def source(self) -> str:
        return "" if self.link.source is None else self.link.source.address or ""

    @property
    def target(self) -> str:
        """See `ClientLink`; qpidd's name for the anonymous relay."""
        return "ANONYMOUS-RELAY" if self.node is None else self.node.name

    @property
    def exchange(self) -> Exchange | DefaultExchange | None:
        return self.node if isinstance(self.node, Exchange | DefaultExchange) else None

    @property
    def presettled(self) -> bool:
        return self.link.presettled

    def count_unsettled(self) -> tuple[int, int]:
        """See `ClientLink`: none, the client only sends."""
        return 0, 0

    def begin(self) -> None:
        """The link is granted: give credit."""
        self._credited = self._finished
        self._shared = SharedCredit.of(self.node, self._transport, self.link, self._window)
        if self._shared is None:
            self._transport.engine.links.add_credit(self.link, self._window)

    def end(self) -> None:
        """The link is gone, or suspended."""
        if self._shared is not None:
            self._shared.end()
            self._shared = None

    def on_delivery(self, event: Delivery) -> None:
        """Route a message, settle it, and give credit for the next ones."""
        self.on_deliveries([(event.delivery_tag, event.data)], event.message_format)

    def on_deliveries(self, deliveries: Iterable[tuple[int | None, bytes]], message_format: int = 0) -> None:
        """Route messages, settle them, and give credit for the next ones.

        Args:
            deliveries: delivery tag and data of each.
            message_format: of all.
        """
        registry, change = self._registry, self._change
        # Messages that are published together, since they are routed and stored alike, and their delivery tags.
        messages: list[Message] = []
        tags: list[int | None] = []
        target, subject, durable = self.node, "", False
        by_subject, stores = not isinstance(target, Queue), registry.recorder is not None
        for delivery_tag, data in self.choose(deliveries, message_format):
            try:
                message, node = read_and_resolve(
                    registry,
                    data,
                    self.node,
                    message_format=message_format,
                    user=self._origin.proven_user,
                )
                if change is not None:
                    message = change(message)
            except DecodeError as error:
                self._settle(Delivery(self.link, delivery_tag, data), reject(registry, error))
                continue
            message.origin = self._origin
            is_stored = stores and message.durable
            if messages and (
                node is not target or is_stored is not durable or (by_subject and message.subject != subject)
            ):
                self._publish_all(messages, tags, target)
                messages, tags = [], []
            if node is None:
                self._publish_all(messages, tags, target)
                messages, tags = [], []
                self._settle(Delivery(self.link, delivery_tag, data), publish_message(self._publisher, message, node))
                continue
            if node is not target:
                target, by_subject = node, not isinstance(node, Queue)
            subject, durable = message.subject, is_stored
            messages.append(message)
            tags.append(delivery_tag)
        self._publish_all(messages, tags, target)

    def choose(
        self,
        deliveries: Iterable[tuple[int | None, bytes]],
        message_format: int = 0,  # noqa: ARG002
    ) -> Iterable[tuple[int | None, bytes]]:
        """The deliveries that are published; an override that leaves some out gives those an outcome."""
        return deliveries

    def _publish_all(self, messages: Sequence[Message], tags: Sequence[int | None], node: Node | None) -> None:
        """Publish messages that are routed alike, settle them, and give credit for the next ones."""
        if not messages:
            return
        link = self.link
        recorder = self._registry.recorder
        if recorder is not None and messages[0].durable:
            self._publish_durable(messages, tags, node, recorder)
            return
        try:
            refused = self._publisher.publish_all(node, messages)
        except OperationRefused as error:
            refusal = reject(self._registry, error, len(messages))
            for message, tag in zip(messages, tags, strict=True):
                self._settle(Delivery(link, tag, message.data), refusal)
            return
        if self._registry.flows:
            self._meet()
        if refused or self._singly:
            for place, (message, tag) in enumerate(zip(messages, tags, strict=True)):
                full = Refusal(Reason.FULL, refused[place]) if place in refused else None
                self._settle(Delivery(link, tag, message.data), full)
            return
        accepted: list[int] = []
        for message, tag in zip(messages, tags, strict=True):
            if tag is None:
                continue
            if self._batchable and message.correlated:
                self._transport.accept_later(link, tag)
            else:
                accepted.append(tag)
        self._accept_all(accepted, len(messages))

    def _accept_all(self, tags: list[int], count: int) -> None:
        """Accept messages with these delivery tags, of `count` that came, and give credit for the next ones."""
        if tags:
            self._transport.engine.decisions.accept_all(self.link, tags)
            self._transport.flush_soon()
        self.transfers += count
        self._finish(count)

    def _publish_durable(
        self, messages: Sequence[Message], tags: Sequence[int | None], node: Node | None, recorder: Recorder
    ) -> None:
        """Route messages in one unit, and settle them when it is on the disk, if a durable queue has any of them."""
        events = [Delivery(self.link, tag, message.data) for message, tag in zip(messages, tags, strict=True)]
        recorder.flush()
        try:
            refused = self._publisher.publish_all(node, messages)
        except OperationRefused as error:
            refusal = reject(self._registry, error, len(messages))
            for event in events:
                self._settle(event, refusal)
            return
        if self._registry.flows:
            self._meet()
        self.on_published([event for place, event in enumerate(events) if place not in refused] if refused else events)
        if len(refused) == len(events):
            recorder.flush()  # other queues may have them
            self._on_all_stored(events, refused, None)
        elif not recorder.close_unit(lambda error: self._on_all_stored(events, refused, error)):
            self._on_all_stored(events, refused, None)

    def _on_all_stored(self, events: Sequence[Delivery], refused: Mapping[int, str], error: NotStored | None) -> None:
        """Settle the messages of a unit, in their order; those that were refused may be in other queues.

        Args:
            events: of all messages.
            refused: why some were refused, by their places.
            error: why the unit is not on the disk.
        """
        if error is None and not refused and self._accept_stored(events):
            return
        for place, event in enumerate(events):
            if place in refused:
                self._settle(event, Refusal(Reason.FULL, refused[place]))
            else:
                self._on_stored(event, error)

    def on_published(self, events: Sequence[Delivery]) -> None:
        """Durable messages were published; the changes that they made are in the current unit."""

    def _accept_stored(self, events: Sequence[Delivery]) -> bool:
        """Accept messages that are on the disk together; False if each has to be looked at."""
        if not self._singly:
            self._accept_all([event.delivery_tag for event in events if event.delivery_tag is not None], len(events))
        return not self._singly

    def _on_stored(self, event: Delivery, error: NotStored | None) -> None:
        self._settle(event, None if error is None else Refusal(Reason.FULL, f"cannot store: {error.reason}"))

    def on_transactional(self, event: Delivery, coordinator: Coordinator) -> None:
        """Keep a message for the end of its transaction, settle it, and give credit for the next ones."""
        assert event.transaction is not None
        try:
            transaction = coordinator.find(event.transaction)
        except TransactionFailed as error:
            self._settle(event, error.refusal)
            return
        try:
            message, node = read_and_resolve(
                self._registry,
                event.data,
                self.node,
                message_format=event.message_format,
                user=self._origin.proven_user,
            )
            message.origin = self._origin
            publication = self._publisher.admit(node, message)
            if node is None:
                refusal = no_node(self._registry, message)
                transaction.refused = refusal.description
                raise TransactionFailed(refusal)
            coordinator.add(transaction, publication)
            if self._shared is not None:
                transaction.hold(self._shared.certain, len(event.data))
        except OperationRefused as error:
            transaction.refused = str(error)
            self._settle(event, Refusal(Reason.UNAUTHORIZED, transaction.refused))
        except TransactionFailed as error:
            self._settle(event, error.refusal)
        except DecodeError as error:
            self._settle(event, reject(self._registry, error))
        else:
            self._settle(event, None, event.transaction)

    def outcome(self, refusal: Refusal | None) -> tuple[Outcome, str, str]:
        """The outcome of a message, with condition and description of an error."""
        return outcome_of(refusal)

    def _settle(self, event: Delivery, refusal: Refusal | None = None, transaction: bytes | None = None) -> None:
        """Give a message its outcome: accepted, or why it was refused."""
        outcome, condition, description = self.outcome(refusal)
        engine = self._transport.engine
        if event.delivery_tag is not None:
            if self.link.settles_second and transaction is None:
                # The client settles the message then, and needs credit for the next one.
                engine.decisions.set_outcome(
                    self.link, event.delivery_tag, outcome, condition=condition, description=description
                )
                self._transport.flush_soon()
                self.transfers += 1
                return
            engine.decisions.settle(self.link, event.delivery_tag, outcome, condition, description, transaction)
            self._transport.flush_soon()
        self._count()

    def on_confirmed(self, delivery_tags: Sequence[int]) -> None:
        """The client has settled messages after the broker gave them an outcome."""
        self._finish(len(delivery_tags))

    def _count(self) -> None:
        """Count a message, and give credit for the next ones when half of the window is used."""
        self.transfers += 1
        self._finish()

    def _finish(self, count: int = 1) -> None:
        """Messages need no credit any more: give credit for the next ones."""
        self._finished += count
        if self._shared is not None:
            self._shared.finish(count)
            return
        used = self._finished - self._credited
        if used >= self._window // 2:
            self._transport.engine.links.add_credit(self.link, used)
            self._credited = self._finished
            self._transport.flush_soon()

    def _meet(self) -> None:
        """The queues that got the last message have flow control."""
        if self._shared is None:
            granted = self._window - (self._finished - self._credited)
            self._shared = SharedCredit(self._transport, self.link, self._window, granted=granted)
        self._shared.meet(self._registry.flows)
