"""Links that can be resumed on another connection: nothing sent on them is lost, and nothing is delivered twice.

What both sides know of the unsettled deliveries is compared when a link is resumed (AMQP 1.0, part 2.6.13). Of a link
on which the client sends, the broker remembers which messages it has accepted, until the client has settled them: those
are not sent again. Of a link on which the client receives, it keeps the messages that the client has not settled: those
that the client has received stay delivered to it, the others return to the queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import attrs

from qmf.broker.client_info import ClientInfo
from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.router import Node
from qmf.broker.nodes.selectors import Selector
from qmf.broker.operations.publisher import Publisher
from qmf.broker.protocols.amqp.incoming import CREDIT_WINDOW, IncomingLink
from qmf.broker.protocols.amqp.outgoing import OutgoingLink
from qmf.broker.refusal import Refusal
from qmf.bus.engine.events import Delivery, OutcomeReceived
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Outcome, Terminus
from qmf.bus.transport import AmqpTransport

#: Messages that a client may hold unsettled on a link that can be resumed.
MAX_UNSETTLED = 1_000
#: Bytes of an attach for each unsettled delivery, at most: all have to fit in one frame.
_BYTES_PER_DELIVERY = 64

#: What one side lists: delivery tags with outcomes, or None for a delivery that has none.
Unsettled = Mapping[int, Outcome | None]


@attrs.frozen
class LinkKey:
    """Identifies a link that can be resumed, among those of all clients.

    Attributes:
        user: who may resume it; empty for everybody.
        is_sender: True for a link on which the broker sends.
        id: chosen by the client.
    """

    user: str
    is_sender: bool
    id: str


class ResumableIncomingLink(IncomingLink):
    """An `IncomingLink` that can be resumed.

    Attributes:
        key: see there.
        granted: the target, as the client gets it; its time-out is that of the suspended link.
        attempt: number of the client's last attach.
    """

    def __init__(
        self,
        transport: AmqpTransport,
        link: Link,
        publisher: Publisher,
        node: Node | None,
        *,
        relay: bool,
        origin: ClientInfo,
        key: LinkKey,
        granted: Terminus,
    ) -> None:
        self.key = key
        self.granted = granted
        self.attempt = _attempt(link)
        #: Messages that were accepted and, as far as we know, are not settled by the client.
        self._accepted: set[int] = set()
        window = _window(transport, CREDIT_WINDOW)
        super().__init__(transport, link, publisher, node, relay=relay, origin=origin, window=window)
        self._singly = True

    def reconcile(self, listed: Unsettled) -> Unsettled:
        """Compare with what the client lists.

        Returns:
            those of its unsettled messages that were accepted.
        """
        self._accepted &= listed.keys()
        return dict.fromkeys(self._accepted, Outcome.ACCEPTED)

    def reattach(self, transport: AmqpTransport, link: Link, publisher: Publisher, origin: ClientInfo) -> None:
        """Receive on another link from now on, with the rights of its client."""
        self._transport = transport
        self._publisher = publisher
        self._origin = origin
        self.link = link
        self.attempt = _attempt(link)

    def on_delivery(self, event: Delivery) -> None:
        """Route a message. The client settles one that was accepted; any other one may be sent again, unchanged."""
        if event.delivery_tag in self._accepted:
            self._settle(event)
        else:
            super().on_delivery(event)

    def _settle(self, event: Delivery, refusal: Refusal | None = None, transaction: bytes | None = None) -> None:
        """See `IncomingLink`. One that was accepted is remembered until the client settles it."""
        if refusal is not None or transaction is not None or event.delivery_tag is None:
            super()._settle(event, refusal, transaction)
            return
        self._accepted.add(event.delivery_tag)
        self.transfers += 1
        if event.link is self.link:  # otherwise the link was resumed since, and the client sends the message again
            self._transport.engine.decisions.set_outcome(self.link, event.delivery_tag, Outcome.ACCEPTED)
            self._transport.flush_soon()

    def on_confirmed(self, delivery_tag: int) -> None:
        """The client has settled a message, and will not send it again."""
        self._accepted.discard(delivery_tag)
        self._finish()


class ResumableOutgoingLink(OutgoingLink):
    """An `OutgoingLink` that can be resumed. It stays a consumer of its queue while it is suspended, without credit.

    Attributes:
        key, granted, attempt: see `ResumableIncomingLink`.
    """

    def __init__(
        self,
        transport: AmqpTransport,
        link: Link,
        queue: Queue,
        selector: Selector | None,
        *,
        key: LinkKey,
        granted: Terminus,
    ) -> None:
        super().__init__(transport, link, queue, selector)
        self.key = key
        self.granted = granted
        self.attempt = _attempt(link)
        self._window = _window(transport, MAX_UNSETTLED)
        #: The last delivery tag that was used. Each is used once, on whatever connection.
        self._last_tag = 0
        #: Deliveries that the client knows of, which have to be established on another link before any other.
        self._resuming: deque[int] = deque()

    @property
    def node(self) -> Node | None:
        """The queue."""
        return self.queue

    def reconcile(self, listed: Unsettled) -> Unsettled:
        """Compare with what the client lists: its outcomes take effect, what it does not know returns to the queue.

        Returns:
            the deliveries that remain.
        """
        unsettled, self._unsettled = self._unsettled, {}
        returned: list[Entry] = []
        failed: list[Entry] = []
        for tag, entry in unsettled.items():
            outcome = listed.get(tag, Outcome.RELEASED)
            if outcome is None:
                self._unsettled[tag] = entry
            elif outcome is Outcome.RELEASED:
                returned.append(entry)
            elif outcome is Outcome.MODIFIED:
                failed.append(entry)
            else:
                self.settle(entry, OutcomeReceived(self.link, tag, outcome))
        self.queue.delivery.release(failed, failed=True)
        self.queue.delivery.release(returned)
        self._resuming = deque(self._unsettled)
        return dict.fromkeys(self._unsettled)

    def reattach(self, transport: AmqpTransport, link: Link) -> None:
        """Send on another link from now on."""
        self._transport = transport
        self.link = link
        self.attempt = _attempt(link)

    def ready(self) -> bool:
        """See `Consumer`."""
        return not self._resuming and len(self._unsettled) < self._window and self._transport.can_send(self.link)

    def dispatch(self) -> None:
        """See `OutgoingLink`."""
        engine = self._transport.engine
        while self._resuming and engine.links.credit(self.link) > 0:
            # Without data, which the client has.
            engine.deliveries.send(self.link, b"", delivery_tag=self._resuming.popleft())
            self._transport.flush_soon()
        super().dispatch()

    def room(self) -> int:
        """See `Consumer`."""
        return 1 if self.ready() else 0

    def deliver_all(self, entries: Sequence[Entry]) -> int:
        """See `Consumer`."""
        return self._deliver_singly(entries)

    def deliver(self, entry: Entry) -> None:
        """See `Consumer`."""
        self._last_tag += 1
        self._unsettled[self._last_tag] = entry
        message = entry.message
        self._transport.engine.deliveries.send(
            self.link, message.data, delivery_tag=self._last_tag, message_format=message.message_format
        )
        self._transport.flush_soon()
        self.transfers += 1


ResumableLink = ResumableIncomingLink | ResumableOutgoingLink


def _attempt(link: Link) -> int:
    assert link.resumption is not None
    return link.resumption.attempt


def _window(transport: AmqpTransport, most: int) -> int:
    return max(2, min(most, transport.engine.max_frame // _BYTES_PER_DELIVERY))
