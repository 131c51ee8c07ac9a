"""Outgoing links: from a queue to a client that receives."""

from __future__ import annotations

from collections.abc import Hashable

import attrs

from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.selectors import Selector
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
        selector: see `Consumer`.
        link: the engine's.
        transfers: messages sent, repeated ones included.
    """

    def __init__(self, transport: AmqpTransport, link: Link, queue: Queue, selector: Selector | None = None) -> None:
        self.queue = queue
        self.selector = selector
        self.link = link
        self.transfers = 0
        self._transport = transport
        self._unsettled: dict[int, Message] = {}
        #: Messages with an outcome within a transaction.
        self._acquired: dict[LinkAcquisition, None] = {}

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

    def attach(self) -> None:
        """Receive from the queue from now on."""
        self.queue.add_consumer(self)

    def begin(self) -> None:
        """The link is granted: deliver what waits."""
        self.dispatch()

    def dispatch(self) -> None:
        """There is credit or room: deliver what waits."""
        if len(self.queue):
            self.queue.dispatch()

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
        messages = [*self._unsettled.values(), *(acquisition.message for acquisition in self._acquired)]
        return len(messages), sum(len(message.data) for message in messages)

    def on_outcome(self, event: OutcomeReceived) -> None:
        """The client settled a message. A released or modified one goes back to the queue, the others are done."""
        message = self._unsettled.pop(event.delivery_tag, None)
        if message is not None:
            self.settle(message, event)
        else:
            self.queue.dispatch()

    def settle(self, message: Message, event: OutcomeReceived) -> None:
        """Let the outcome of a message take effect."""
        if event.outcome is Outcome.RELEASED:
            self.queue.requeue([message])
        elif event.outcome is Outcome.MODIFIED:
            self.queue.requeue([message.after_failure() if event.failed else message])
        else:
            if event.outcome is Outcome.REJECTED:
                self.queue.counters.rejected += 1
            self.queue.dispatch()

    def acquire(self, event: OutcomeReceived) -> LinkAcquisition | None:
        """The client gave a message an outcome within a transaction; None for a message that is not unsettled."""
        message = self._unsettled.pop(event.delivery_tag, None)
        if message is None:
            return None
        acquisition = LinkAcquisition(self, message, event)
        self._acquired[acquisition] = None
        return acquisition

    def commit(self, acquisition: LinkAcquisition) -> None:
        """The outcome of a message takes effect."""
        del self._acquired[acquisition]
        event = acquisition.event
        if not event.final:
            self._transport.engine.settle_sent(self.link, event.delivery_tag, event.outcome)
            self._transport.flush_soon()
        self.settle(acquisition.message, event)

    def roll_back(self, acquisition: LinkAcquisition) -> None:
        """A message is unsettled again or, if the client has settled it, goes back to the queue."""
        del self._acquired[acquisition]
        event = acquisition.event
        if event.final or self.link.detached:
            self.queue.requeue([acquisition.message.after_failure()])
        else:
            self._transport.engine.reopen_sent(self.link, event.delivery_tag)
            self._unsettled[event.delivery_tag] = acquisition.message

    def on_detached(self) -> None:
        """The link is gone: what was unsettled goes back to the queue, as delivered once more."""
        self.queue.remove_consumer(self)
        messages = self._unsettled.values()
        # A queue of this link alone is about to be deleted.
        self.queue.requeue(messages if self.queue.exclusive else [message.after_failure() for message in messages])
        self._unsettled.clear()


@attrs.frozen(eq=False)
class LinkAcquisition:
    """The `Acquisition` of a message on a link.

    Attributes:
        link: which.
        message: that was delivered on it.
        event: the outcome.
    """

    link: OutgoingLink
    message: Message
    event: OutcomeReceived

    def commit(self) -> None:
        """See `Acquisition`."""
        self.link.commit(self)

    def roll_back(self) -> None:
        """See `Acquisition`."""
        self.link.roll_back(self)
