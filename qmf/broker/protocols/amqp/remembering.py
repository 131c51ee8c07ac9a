"""Incoming links that remember what they have accepted, until the sender knows that: nothing of it is taken twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from qmf.broker.nodes.link_memory import LinkMemory
from qmf.broker.nodes.recorder import NotStored
from qmf.broker.protocols.amqp.incoming import IncomingLink
from qmf.broker.protocols.amqp.tagged import MAX_UNSETTLED, window_of
from qmf.broker.refusal import Refusal
from qmf.bus.engine.events import Delivery
from qmf.bus.engine.values import Outcome

#: The memory of a link of AMQP: a message that is being stored waits with the end on which it came last.
AmqpMemory: TypeAlias = "LinkMemory[tuple[RememberingIncomingLink, Delivery]]"


class RememberingIncomingLink(IncomingLink):
    """An `IncomingLink` whose sender settles second, and sends each message with the same delivery tag again.

    Attributes:
        memory: of the link, whatever its connection is; set before the first message comes.
    """

    memory: AmqpMemory
    #: Messages that were accepted on this connection: those that are not confirmed, and those for which no credit was
    #: given, since too many are not.
    _unconfirmed = _due = 0

    def begin(self) -> None:
        self.memory.users += 1
        self._unconfirmed = self._due = 0
        super().begin()

    def end(self) -> None:
        self.memory.users -= 1
        super().end()

    def choose(
        self, deliveries: Iterable[tuple[int | None, bytes]], message_format: int = 0
    ) -> Iterable[tuple[int | None, bytes]]:
        """See `IncomingLink`. Those that were published before are not published again.

        The sender settles one that was accepted; any other one may be sent again, unchanged.
        """
        if self.link.resumption is None:
            return deliveries
        memory, deliveries = self.memory, list(deliveries)
        if memory.is_new([tag for tag, _ in deliveries]) and all(data for _, data in deliveries):
            return deliveries
        chosen: list[tuple[int | None, bytes]] = []
        for delivery in deliveries:
            tag, data = delivery
            if tag is None:
                chosen.append(delivery)
            elif tag in memory:
                self._settle(Delivery(self.link, tag, data))
            elif tag in memory.storing:  # it came on a connection that is lost
                memory.storing[tag] = (self, Delivery(self.link, tag, data))
            elif not data and not message_format:
                # It could not be stored since it was listed, and is needed once more. Those with a format may be empty.
                self._transport.engine.decisions.settle(self.link, tag, Outcome.RELEASED)
                self._transport.flush_soon()
            else:
                chosen.append(delivery)
        return chosen

    def on_published(self, events: Sequence[Delivery]) -> None:
        if self.link.resumption is not None:
            waiting = {event.delivery_tag: (self, event) for event in events if event.delivery_tag is not None}
            self.memory.begin(waiting)

    def _accept_stored(self, events: Sequence[Delivery]) -> bool:
        """See `IncomingLink`. Those that came on another connection since are settled there."""
        if self.link.resumption is None:
            return super()._accept_stored(events)
        storing, tags = self.memory.storing, [event.delivery_tag for event in events if event.delivery_tag is not None]
        if len(tags) < len(events) or events[0].link is not self.link:
            return False
        if any(storing.get(tag, (None, None))[1] is not event for tag, event in zip(tags, events, strict=True)):
            return False
        self.memory.accept(tags)
        self.transfers += len(tags)
        self._transport.engine.decisions.accept_unsettled(self.link, tags)
        self._give_credit(len(tags))
        self._transport.flush_soon()
        return True

    def _on_stored(self, event: Delivery, error: NotStored | None) -> None:
        """See `IncomingLink`. The message may have come on another connection since."""
        end, latest = self, event
        if event.delivery_tag is not None:
            end, latest = self.memory.storing.get(event.delivery_tag, (self, event))
        IncomingLink._on_stored(end, latest, error)

    def _settle(self, event: Delivery, refusal: Refusal | None = None, transaction: bytes | None = None) -> None:
        """See `IncomingLink`. One that was accepted is remembered until the sender settles it."""
        tag = event.delivery_tag
        if tag is None or transaction is not None or self.link.resumption is None:
            super()._settle(event, refusal, transaction)
            return
        if refusal is not None:
            self.memory.refuse(tag)
            super()._settle(event, refusal)
            return
        if tag not in self.memory:
            self.memory.accept([tag])
        self.transfers += 1
        if event.link is self.link:  # otherwise the link was resumed since, and the sender asks again
            self._transport.engine.decisions.set_outcome(self.link, tag, Outcome.ACCEPTED)
            self._give_credit(1)
            self._transport.flush_soon()

    def on_confirmed(self, delivery_tags: Sequence[int]) -> None:
        """The sender has settled messages, and will not send them again."""
        if self.link.resumption is None:
            super().on_confirmed(delivery_tags)
            return
        accepted = self.memory.confirm(delivery_tags)
        self._unconfirmed -= accepted
        if refused := len(delivery_tags) - accepted:
            self._finish(refused)
        self._give_credit(0)

    def _give_credit(self, accepted: int) -> None:
        """Give credit for messages that were accepted, before the sender confirms them.

        So it sends the next ones while it removes these. Both sides have to list what is unsettled when the link is
        resumed, which limits it.
        """
        self._unconfirmed += accepted
        self._due += accepted
        under_way = self._window - self._due
        count = min(self._due, window_of(self._transport, MAX_UNSETTLED) - under_way - self._unconfirmed)
        if count > 0:
            self._due -= count
            self._finish(count)
