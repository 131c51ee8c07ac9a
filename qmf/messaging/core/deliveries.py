"""A message that arrived, as its session acknowledges it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from qmf.bus.client.network_connection import NetworkConnection
from qmf.bus.engine.events import Delivery
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Outcome
from qmf.messaging.arrivals import arrival_functions
from qmf.messaging.contents import FormattedData
from qmf.messaging.exceptions import MessagingError

_numbers = itertools.count()


class DeliveryReceiver(Protocol):
    """What acknowledgement needs of the receiver on which a message arrived."""

    error: MessagingError | None

    @property
    def session(self) -> object:
        """The session of the API that it belongs to."""

    @property
    def confirms(self) -> bool:
        """True if the broker can confirm acknowledgements."""

    def available(self) -> int:
        """Number of messages that can be fetched."""

    def await_confirmation(self, delivery: ReceivedDelivery) -> None:
        """Mark a message as confirmed when the broker has settled it."""


def data_of(delivery: Delivery) -> bytes:
    """The encoded message that the engine reports; with its format where it has one."""
    return FormattedData(delivery.data, delivery.message_format) if delivery.message_format else delivery.data


class ReceivedDelivery:
    """A message from its arrival to its settlement. Compared by identity.

    Attributes:
        receiver: on which it arrived.
        data: the encoded message.
        delivery_tag: None if the broker settled it.
        number: in the order of arrival, over all connections; the messages of a read on one link may have the same.
        confirmed: True when the broker has confirmed its acknowledgement.
        lost: True if its link was gone before that: it may come again.
        keeps_outcome: True if `settle` remembers the outcome, so that it must be called for each message.
    """

    keeps_outcome = False

    __slots__ = ("_link", "_network", "confirmed", "data", "delivery_tag", "lost", "number", "receiver")

    def __init__(
        self, receiver: DeliveryReceiver, network: NetworkConnection, link: Link, delivery_tag: int | None, data: bytes
    ) -> None:
        self.receiver = receiver
        self.data = data
        self.delivery_tag = delivery_tag
        self.number = next(_numbers)
        self.confirmed = self.lost = False
        self._network = network
        self._link = link

    @property
    def stale(self) -> bool:
        """True if its link is gone: the broker delivers the message again."""
        return self._link.detached

    def settle(self, outcome: Outcome, condition: str = "", description: str = "") -> None:
        """Report an outcome to the broker. Does nothing for one that is settled or stale."""
        if self.delivery_tag is not None:
            self._network.engine.decisions.settle(self._link, self.delivery_tag, outcome, condition, description)
            self._network.transport.flush_soon()

    @staticmethod
    def accept_all(deliveries: Sequence[ReceivedDelivery], transaction: bytes | None = None) -> None:
        """Report to the brokers that messages were processed; with a transaction, it takes effect with that."""
        if len(deliveries) == 1 and transaction is None:
            (delivery,) = deliveries
            if delivery.keeps_outcome:
                delivery.settle(Outcome.ACCEPTED)
            elif delivery.delivery_tag is not None:
                delivery._network.engine.decisions.accept_all(delivery._link, [delivery.delivery_tag])
                delivery._network.transport.flush_soon()
            return
        tags: dict[Link, list[int]] = {}
        networks: dict[Link, NetworkConnection] = {}
        for delivery in deliveries:
            if delivery.keeps_outcome and transaction is None:
                delivery.settle(Outcome.ACCEPTED)
            elif delivery.keeps_outcome:
                delivery.update(Outcome.ACCEPTED, transaction)
            elif delivery.delivery_tag is not None:
                link = delivery._link
                if link not in tags:
                    tags[link], networks[link] = [], delivery._network
                tags[link].append(delivery.delivery_tag)
        for link, network in networks.items():
            network.engine.decisions.accept_all(link, tags[link], transaction)
            network.transport.flush_soon()

    @staticmethod
    def accept_at_once(deliveries: list[ReceivedDelivery]) -> bool:
        """Report to the broker that messages were processed, and write that, on another thread than the loop's.

        While others wait to be fetched, it is left to the loop's thread, which reports many together.

        Returns:
            False if it was not reported: they are of several links, or something is in the way.
        """
        if not deliveries or deliveries[0].receiver.available():
            return not deliveries
        first = deliveries[0]
        link, lane = first._link, first._network.transport.lane
        if lane is None or not (epoch := lane.epoch()) or link.detached:
            return False
        tags = [
            delivery.delivery_tag
            for delivery in deliveries
            if delivery.delivery_tag is not None and delivery._link is link and not delivery.keeps_outcome
        ]
        return len(tags) == len(deliveries) and lane.accept(epoch, link, tags)

    def reject(self, condition: str, description: str) -> None:
        """Report that the message cannot be processed."""
        self.settle(Outcome.REJECTED, condition, description)

    def modify(self, *, failed: bool, undeliverable: bool = False) -> None:
        """Return the message to its node.

        Args:
            failed: as one that was delivered.
            undeliverable: it shall not come on this link again.
        """
        if self.delivery_tag is not None:
            decisions = self._network.engine.decisions
            decisions.modify(self._link, self.delivery_tag, failed=failed, undeliverable=undeliverable)
            self._network.transport.flush_soon()

    def update(self, outcome: Outcome, transaction: bytes | None, condition: str = "", description: str = "") -> None:
        """Report an outcome that takes effect with a transaction or, without one, that the broker has to confirm."""
        if self.delivery_tag is not None:
            self._network.engine.decisions.set_outcome(
                self._link, self.delivery_tag, outcome, transaction, condition, description
            )
            self._network.transport.flush_soon()


#: Makes deliveries of messages that came together: of their receiver, network connection and link, and for each its
#: delivery tag, or None if the broker settled it, and its bytes.
DeliveryMaker = Callable[
    [DeliveryReceiver, NetworkConnection, Link, list[tuple[int | None, bytes]]], list[ReceivedDelivery]
]


#: What the compiled functions make deliveries with, see `reading.c`: `make`, their class, `places`, their numbers.
MakerParts = tuple[Callable[..., list[ReceivedDelivery]], type[ReceivedDelivery], bytes, Iterator[int]]


def maker_parts() -> MakerParts | None:
    """How the compiled functions make deliveries; None where they are not installed."""
    compiled = arrival_functions()
    if compiled is None:
        return None
    slots = ("receiver", "_network", "_link", "number", "confirmed", "lost", "delivery_tag", "data")
    return compiled.make, ReceivedDelivery, compiled.places(ReceivedDelivery, slots), _numbers


def delivery_maker() -> DeliveryMaker:
    """How deliveries are made: by the compiled functions, where they are installed."""
    parts = maker_parts()
    if parts is None:
        return _make_each
    make, kind, places, numbers = parts

    def make_all(
        receiver: DeliveryReceiver, network: NetworkConnection, link: Link, messages: list[tuple[int | None, bytes]]
    ) -> list[ReceivedDelivery]:
        return make(kind, places, (receiver, network, link, next(numbers), False, False), messages)

    return make_all


def _make_each(
    receiver: DeliveryReceiver, network: NetworkConnection, link: Link, messages: list[tuple[int | None, bytes]]
) -> list[ReceivedDelivery]:
    return [ReceivedDelivery(receiver, network, link, tag, data) for tag, data in messages]
