"""A link on which a bus receives for a subscription: its credit, and how its messages are settled.

The broker is asked to settle messages when it sends them: the queue of a subscription is deleted with the link, so that
nothing could be sent again, and a disposition per message would only cost both sides. Messages of a broker that sends
them unsettled nevertheless are accepted by `ReceivedMessage.settle`. Credit is given back only for messages that were
settled by their receiver, which bounds the memory of a slow receiver; and for a quarter of the window at once, so that
a busy link never waits for credit and not every message costs a flow frame.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence

from qmf._marks import receiving_link_name
from qmf.bus.base import Binding, DataCallback, LinkLost, MessageCallback, ReceivedMessage
from qmf.bus.client.bus_link import BusLink
from qmf.bus.client.dialect import dialect_of
from qmf.bus.client.network_connection import NetworkConnection
from qmf.bus.engine.destination import read_destination
from qmf.bus.engine.events import Delivery, DeliveryBatch
from qmf.bus.engine.link import Link
from qmf.bus.engine.session import EngineSession
from qmf.bus.receiving import call_data_receiver, call_receiver
from qmf.errors import DecodeError, LinkError, NetworkError

#: Seconds between attempts to attach a link that the broker has detached too often, or refused.
PAUSE = 5.0
#: Seconds for which a link must be attached to be useful, even without messages: it is attached again at once then.
STABLE = 60.0


class ReceiverLink(BusLink):
    """The link of one subscription.

    Attributes:
        answer: done when the broker has answered the last `attach`, or is gone: with None when it has granted the link,
            else with the error.
    """

    def __init__(
        self,
        report: Callable[[LinkLost], None],
        binding: Binding,
        on_message: MessageCallback | None,
        prefetch: int,
        on_data: DataCallback | None = None,
        *,
        further: Sequence[Binding] = (),
        carrier: bool = True,
    ) -> None:
        """Make the link of a subscription; it is not attached yet.

        Args:
            report: as of `BusLink`.
            binding, on_message, prefetch: as of `Bus.subscribe`.
            on_data: as of `Bus.subscribe_data`; in place of `on_message`.
            further: other bindings of the subscription, for which it receives, too, where the broker can do that.
            carrier: False for the link of one of these: it is not attached there.
        """
        super().__init__(binding.exchange, report, PAUSE)
        self.answer: asyncio.Future[NetworkError | None] = asyncio.get_running_loop().create_future()
        self._binding = binding
        self._further = further
        self._carrier = carrier
        self._subject_filter: Callable[[str], bool] | None = None
        self._on_message = on_message
        self._on_data = on_data
        self._window = prefetch
        self._batch = max(1, prefetch // 4)
        #: Messages that the broker may still send, and settled messages for which it has no new credit yet.
        self._credit = 0
        self._settled = 0
        #: When the link was attached, by the loop's clock; None if it never was.
        self._attached_at: float | None = None

    def attach(self, network: NetworkConnection, session: EngineSession | None = None) -> None:
        """See `PersistentLink`."""
        if self.answer.done():
            self.answer = asyncio.get_running_loop().create_future()
        if self._carrier or dialect_of(network.peer.product).joining_properties([self._binding]) is None:
            super().attach(network, session)
        else:
            self._attached_at = self._attached_at or asyncio.get_running_loop().time()
            self._answer(None)

    def close(self) -> asyncio.Future[None] | None:
        """See `PersistentLink`."""
        self._answer(None)
        return super().close()

    def disconnect(self, error: NetworkError) -> None:
        """See `BusLink`."""
        self.lose()
        self._answer(error)

    # LinkOwner

    def on_delivery(self, delivery: Delivery) -> None:
        """See `LinkOwner`."""
        self._deliver(delivery.link, delivery.delivery_tag, delivery.data)

    def on_deliveries(self, batch: DeliveryBatch) -> None:
        """See `LinkOwner`."""
        if self._on_data is not None and self._subject_filter is None:
            self._pass_on(batch, self._on_data)
            return
        for delivery_tag, data in batch.deliveries:
            if self._link is None:  # the receiver of the message before has closed the subscription
                return
            self._deliver(batch.link, delivery_tag, data)

    # Details

    def _deliver(self, link: Link, delivery_tag: int | None, data: bytes) -> None:
        self._reattached = 0
        self._credit -= 1
        received = ReceivedMessage(data, functools.partial(self._on_settled, link, delivery_tag))
        if self._subject_filter is not None and not _passes(self._subject_filter, data):
            received.settle()
            return
        if self._on_message is not None:
            call_receiver(self._on_message, received, self._binding)
        elif self._on_data is not None:
            call_data_receiver(self._on_data, [data], self._binding)
            received.settle()

    def _pass_on(self, batch: DeliveryBatch, on_data: DataCallback) -> None:
        """Messages for a receiver that keeps none: they are settled together."""
        self._reattached = 0
        link, deliveries = batch.link, batch.deliveries
        call_data_receiver(on_data, [data for _, data in deliveries], self._binding)
        network = self._network
        if self._link is not link or network is None:
            return
        unsettled = [tag for tag, _ in deliveries if tag is not None]
        if unsettled:
            network.engine.decisions.accept_all(link, unsettled)
        # Tasks that have got an answer run next, and send: the acceptances leave with that, and that leaves before more
        # is read.
        network.transport.flush_last()
        self._credit -= len(deliveries)
        self._give_credit(network, link, len(deliveries))

    def _request(self, network: NetworkConnection, session: EngineSession | None) -> Link:
        dialect = dialect_of(network.peer.product)
        self._subject_filter = dialect.subject_filter(self._binding)
        self._credit, self._settled = self._window, 0
        return network.engine.links.attach(
            # A new name each time: the broker may not have noticed yet that an earlier connection has ended.
            receiving_link_name(),
            is_sender=False,
            terminus=dialect.source(self._binding),
            credit=self._window,
            presettled=True,
            session=session,
            properties=dialect.joining_properties(self._further) if self._further else None,
        )

    def _on_granted(self, link: Link) -> None:  # noqa: ARG002
        self._attached_at = asyncio.get_running_loop().time()
        self._answer(None)

    def _on_refused(self, error: LinkError) -> float | None:
        self._answer(error)
        if self._attached_at is None:
            return None  # there is no subscription
        self._lost = self._lost or error
        self._report_lost(self._lost, reopened=False)
        return self._pause

    def _on_detached(self, error: LinkError) -> None:  # noqa: ARG002
        assert self._attached_at is not None
        if asyncio.get_running_loop().time() - self._attached_at > STABLE:
            self._reattached = 0

    def _answer(self, error: NetworkError | None) -> None:
        if not self.answer.done():
            self.answer.set_result(error)

    def _on_settled(self, link: Link, delivery_tag: int | None) -> None:
        network = self._network
        if link is not self._link or network is None:
            return  # it was detached since
        if delivery_tag is not None:
            network.engine.decisions.settle(link, delivery_tag)
            network.transport.flush_soon()
        self._give_credit(network, link, 1)

    def _give_credit(self, network: NetworkConnection, link: Link, settled: int) -> None:
        """Messages were settled: the broker may send others, once that is worth a frame."""
        self._settled += settled
        # Without credit, a receiver that holds many messages while it waits for one more would wait for ever.
        if self._settled >= self._batch or self._credit == 0:
            network.engine.links.add_credit(link, self._settled)
            self._credit += self._settled
            self._settled = 0
            network.transport.flush_soon()


def _passes(subject_filter: Callable[[str], bool], data: bytes) -> bool:
    try:
        subject = read_destination(data)[1]
    except DecodeError:
        return True  # the receiver decodes it, too, and reports the error
    return subject_filter(subject or "")
