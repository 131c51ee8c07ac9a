"""A link on which a client receives for a subscription: its credit, and how its messages are settled.

The broker is asked to settle messages when it sends them: the queue of a subscription is deleted with the link, so that
nothing could be sent again, and a disposition per message would only cost both sides. Messages of a broker that sends
them unsettled nevertheless are accepted by `ReceivedMessage.settle`. Credit is given back only for messages that were
settled by their receiver, which bounds the memory of a slow receiver; and for a quarter of the window at once, so that
a busy link never waits for credit and not every message costs a flow frame.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable

from qmf._marks import receiving_link_name
from qmf.bus.base import LinkLost, ReceivedMessage
from qmf.bus.client.dialect import Dialect
from qmf.bus.client.link_state import BusLinkState, BusLinkTrigger
from qmf.bus.client.persistent_link import PersistentLink
from qmf.bus.client.subscription import AmqpSubscription
from qmf.bus.engine.destination import read_destination
from qmf.bus.engine.events import Delivery, DeliveryBatch
from qmf.bus.engine.link import Link
from qmf.bus.receiving import call_receiver
from qmf.bus.transport import AmqpTransport
from qmf.errors import DecodeError, LinkError, NetworkError

#: Seconds between attempts to attach a link that the broker has detached too often, or refused.
PAUSE = 5.0
#: Seconds for which a link must be attached to be useful, even without messages: see `ReattachLimit`.
STABLE = 60.0


class ReceiverLink(PersistentLink):
    """A link on which a client receives. It is attached for one subscription."""

    def __init__(
        self,
        transport: AmqpTransport,
        links: dict[Link, PersistentLink],
        report: Callable[[LinkLost], None],
        *,
        subscription: AmqpSubscription,
        dialect: Dialect,
    ) -> None:
        """Args:

        transport, links, report: as of `PersistentLink`.
        subscription: whose messages are received.
        dialect: of the broker.
        """
        binding = subscription.binding
        super().__init__(
            transport, links, report, address=binding.exchange, limit=subscription.reattach_limit, pause=PAUSE
        )
        #: Result of the first attempt to attach the link.
        self.granted: asyncio.Future[None] = self._loop.create_future()
        self._binding = binding
        self._source = dialect.source(binding)
        self._subject_filter = dialect.subject_filter(binding)
        self._on_message = subscription.on_message
        self._window = subscription.prefetch
        self._batch = max(1, subscription.prefetch // 4)
        #: Messages that the broker may still send, and settled messages for which it has no new credit yet.
        self._credit = 0
        self._settled = 0
        #: When the link was attached, by the loop's clock.
        self._attached_at = 0.0

    def attach(self) -> None:
        """Ask the broker for the link. `granted` is done when it has answered."""
        self._request(BusLinkTrigger.ATTACH)

    def attach_later(self, error: LinkError) -> None:
        """The broker has refused the link with this error: report that, and try again after a pause."""
        self._lost = error
        self._pause()

    def close(self) -> None:
        """See `PersistentLink`."""
        self.granted.cancel()
        super().close()

    # Events of the connection

    def on_delivery(self, event: Delivery) -> None:
        """A message has arrived."""
        self._deliver(event.link, event.delivery_tag, event.data)

    def on_deliveries(self, batch: DeliveryBatch) -> None:
        """Messages have arrived."""
        for delivery_tag, data in batch.deliveries:
            self._deliver(batch.link, delivery_tag, data)

    # Details

    def _deliver(self, link: Link, delivery_tag: int | None, data: bytes) -> None:
        if self._state is not BusLinkState.ATTACHED:
            return
        self._limit.used = 0
        self._credit -= 1
        received = ReceivedMessage(data, functools.partial(self._on_settled, link, delivery_tag))
        if self._subject_filter is not None and not _passes(self._subject_filter, data):
            received.settle()
            return
        call_receiver(self._on_message, received, self._binding)

    def _new_link(self) -> Link:
        self._credit, self._settled = self._window, 0
        # A new name each time: the broker may not have noticed yet that an earlier connection has ended.
        return self._transport.engine.attach(
            receiving_link_name(), is_sender=False, terminus=self._source, credit=self._window, presettled=True
        )

    def _on_granted(self) -> None:
        self._attached_at = self._loop.time()
        if not self.granted.done():
            self.granted.set_result(None)

    def _on_refused(self, error: LinkError) -> None:
        if not self.granted.done():
            self.granted.set_exception(error)
        elif self._lost is not None:
            self.attach_later(self._lost)

    def _on_lost(self, error: LinkError) -> None:  # noqa: ARG002
        if self._loop.time() - self._attached_at > STABLE:
            self._limit.used = 0

    def _on_disconnected(self, error: NetworkError) -> None:
        if not self.granted.done():
            self.granted.set_exception(error)

    def _pause(self) -> None:
        if (lost := self._lost) is not None:
            self._report(LinkLost(lost.address, lost.condition, lost.description, reopened=False))
        super()._pause()

    def _on_settled(self, link: Link, delivery_tag: int | None) -> None:
        if link is not self.link:
            return  # it was detached since
        transport = self._transport
        if delivery_tag is not None:
            transport.engine.settle(link, delivery_tag)
            transport.flush_soon()
        self._settled += 1
        # Without credit, a receiver that holds many messages while it waits for one more would wait for ever.
        if self._settled >= self._batch or self._credit == 0:
            transport.engine.add_credit(link, self._settled)
            self._credit += self._settled
            self._settled = 0
            transport.flush_soon()


def _passes(subject_filter: Callable[[str], bool], data: bytes) -> bool:
    try:
        subject = read_destination(data)[1]
    except DecodeError:
        return True  # the receiver decodes it, too, and reports the error
    return subject_filter(subject or "")
