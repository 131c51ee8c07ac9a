"""What a receiver with exactly-once knows of its messages, from their arrival until the broker confirms their outcome.

When the connection is lost, the deliveries stay: they are listed when the link is resumed. The broker then establishes
those again that have no outcome, and has confirmed the others.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from qmf.bus.client.network_connection import NetworkConnection
from qmf.bus.engine.events import Delivery
from qmf.bus.engine.values import Outcome
from qmf.messaging.core.deliveries import DeliveryReceiver, ReceivedDelivery, data_of


class ResumableDelivery(ReceivedDelivery):
    """A message on a link that can be resumed. Its outcome is decided once, and reported until it is confirmed.

    Attributes:
        outcome: None before it is decided.
    """

    __slots__ = ("_condition", "_description", "_failed", "_undeliverable", "outcome")

    keeps_outcome = True

    def __init__(self, receiver: DeliveryReceiver, network: NetworkConnection, delivery: Delivery) -> None:
        super().__init__(receiver, network, delivery.link, delivery.delivery_tag, data_of(delivery))
        self.outcome: Outcome | None = None
        self._condition = self._description = ""
        self._failed = self._undeliverable = False

    @property
    def stale(self) -> bool:
        """See `ReceivedDelivery`: the broker does not deliver it again."""
        return False

    def settle(self, outcome: Outcome, condition: str = "", description: str = "") -> None:
        """See `ReceivedDelivery`."""
        if self.outcome is None:
            self.outcome, self._condition, self._description = outcome, condition, description
            self._report()

    def modify(self, *, failed: bool, undeliverable: bool = False) -> None:
        """See `ReceivedDelivery`."""
        if self.outcome is None:
            self._failed, self._undeliverable = failed, undeliverable
            self.settle(Outcome.MODIFIED if failed or undeliverable else Outcome.RELEASED)

    def update(self, outcome: Outcome, transaction: bytes | None, condition: str = "", description: str = "") -> None:
        """See `ReceivedDelivery`; there are no transactions on such a link."""
        del transaction
        self.settle(outcome, condition, description)

    def resume(self, network: NetworkConnection, delivery: Delivery) -> None:
        """The broker has established the delivery on another link."""
        self._network, self._link = network, delivery.link
        if self.outcome is not None:
            self._report()

    def _report(self) -> None:
        assert self.delivery_tag is not None
        assert self.outcome is not None
        # Without a connection this does nothing: the outcome is listed when the link is resumed.
        self._network.engine.decisions.set_outcome(
            self._link,
            self.delivery_tag,
            self.outcome,
            None,
            self._condition,
            self._description,
            failed=self._failed,
            undeliverable=self._undeliverable,
        )
        self._network.transport.flush_soon()


class UnconfirmedDeliveries:
    """The deliveries of one receiver. Methods are called on the loop's thread."""

    def __init__(self) -> None:
        self._deliveries: dict[int, ResumableDelivery] = {}

    def __len__(self) -> int:
        return len(self._deliveries)

    def outcomes(self) -> Mapping[int, Outcome | None]:
        """The outcomes by delivery tag, as the receiver lists them when its link is resumed."""
        return {tag: delivery.outcome for tag, delivery in self._deliveries.items()}

    def count_decided(self) -> int:
        """Number of deliveries with an outcome that is not confirmed."""
        return sum(delivery.outcome is not None for delivery in self._deliveries.values())

    def add(
        self, receiver: DeliveryReceiver, network: NetworkConnection, delivery: Delivery
    ) -> ResumableDelivery | None:
        """A message arrived; None for one that is only established again."""
        tag = delivery.delivery_tag
        assert tag is not None
        if (known := self._deliveries.get(tag)) is not None:
            known.resume(network, delivery)
            return None
        added = self._deliveries[tag] = ResumableDelivery(receiver, network, delivery)
        return added

    def keep(self, tags: Container[int]) -> None:
        """The link is resumed: the broker has confirmed all deliveries but these."""
        for tag in [tag for tag in self._deliveries if tag not in tags]:
            self.confirm(tag)

    def confirm(self, delivery_tag: int) -> None:
        """The broker has confirmed an outcome."""
        if (delivery := self._deliveries.pop(delivery_tag, None)) is not None:
            delivery.confirmed = True

    def discard(self, deliveries: Iterable[ReceivedDelivery]) -> None:
        """Forget deliveries: the broker delivers these messages again."""
        for delivery in deliveries:
            if delivery.delivery_tag is not None:
                self._deliveries.pop(delivery.delivery_tag, None)
