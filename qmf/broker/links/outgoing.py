"""Outgoing links: from a queue to a client that receives."""

from __future__ import annotations

from collections.abc import Hashable

from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import Queue
from qmf.bus.engine.events import OutcomeReceived
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Outcome
from qmf.bus.transport import AmqpTransport

#: Messages that a client may hold unsettled per link, whatever credit it gives: they stay in the broker's memory.
MAX_UNSETTLED = 5_000


class OutgoingLink:
    """A link on which a client receives; the `Consumer` of a queue, and a `ClientLink` for observers.

    Attributes:
        queue: where the messages come from.
        link: the engine's.
        transfers: messages sent, repeated ones included.
    """

    def __init__(self, transport: AmqpTransport, link: Link, queue: Queue) -> None:
        self.queue = queue
        self.link = link
        self.transfers = 0
        self._transport = transport
        self._unsettled: dict[int, Message] = {}

    @property
    def name(self) -> str:
        """See `ClientLink`."""
        return self.link.name

    @property
    def session(self) -> Hashable:
        """See `ClientLink`."""
        return self.link.session_id

    @property
    def presettled(self) -> bool:
        """See `ClientLink`."""
        return self.link.presettled

    def ready(self) -> bool:
        """See `Consumer`."""
        return len(self._unsettled) < MAX_UNSETTLED and self._transport.can_send(self.link)

    def deliver(self, message: Message) -> None:
        """See `Consumer`."""
        delivery_tag = self._transport.engine.send(self.link, message.data)
        self._transport.flush_soon()
        self.transfers += 1
        if not self.link.presettled:
            self._unsettled[delivery_tag] = message

    def unsettled(self) -> tuple[int, int]:
        """See `Consumer`."""
        return len(self._unsettled), sum(len(message.data) for message in self._unsettled.values())

    def on_outcome(self, event: OutcomeReceived) -> None:
        """The client settled a message. A released or modified one goes back to the queue, the others are done."""
        message = self._unsettled.pop(event.delivery_tag, None)
        if message is not None and event.outcome in (Outcome.RELEASED, Outcome.MODIFIED):
            self.queue.requeue([message])
        else:
            if message is not None and event.outcome is Outcome.REJECTED:
                self.queue.counters.rejected += 1
            self.queue.dispatch()

    def on_detached(self) -> None:
        """The link is gone: what was unsettled goes back to the queue."""
        self.queue.remove_consumer(self)
        self.queue.requeue(self._unsettled.values())
        self._unsettled.clear()
