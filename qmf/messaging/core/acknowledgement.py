"""Acknowledgement: fetched messages until their outcome is reported and, where the broker can, confirmed."""

from __future__ import annotations

from collections.abc import Sequence

from qmf.bus.engine.values import Outcome
from qmf.messaging.constants import REJECTED, UNLIMITED, Constant
from qmf.messaging.core.deliveries import ReceivedDelivery
from qmf.messaging.exceptions import InsufficientCapacity, SessionError
from qmf.messaging.message import Disposition, Message
from qmf.messaging.resolution import releases_in_transaction


class Acknowledgements:
    """The messages of a session that were fetched and are not acknowledged; `on_fetched` and `take` on any thread.

    Attributes:
        capacity: as of `Session.ack_capacity`.
    """

    def __init__(self, session_name: str) -> None:
        self.capacity: int | Constant = UNLIMITED
        self._session_name = session_name
        #: In the order in which they were fetched.
        self._unacknowledged: dict[ReceivedDelivery, None] = {}
        #: Those whose content cannot be decoded: each is decided about for itself.
        self._undecoded: dict[ReceivedDelivery, None] = {}

    def on_fetched(self, delivery: ReceivedDelivery, *, decoded: bool = True) -> None:
        """The program has a message, and will acknowledge it.

        Args:
            delivery: of the message.
            decoded: False for one whose content cannot be decoded.
        """
        if delivery.delivery_tag is not None:
            (self._unacknowledged if decoded else self._undecoded)[delivery] = None

    def waits(self, message: Message) -> bool:
        """True if a message is not acknowledged yet."""
        return message.delivery in self._unacknowledged or message.delivery in self._undecoded

    def take(self, message: Message | None) -> list[ReceivedDelivery]:
        """The deliveries to acknowledge, which count as acknowledged from now on; those of links that are gone, too.

        Args:
            message: which one; None for all whose content could be decoded.

        Raises:
            SessionError: the message does not wait for acknowledgement.
            InsufficientCapacity: nothing may be acknowledged.
        """
        if not isinstance(self.capacity, Constant) and self.capacity <= 0 and (message or self._unacknowledged):
            raise InsufficientCapacity(text=f"ack_capacity of session {self._session_name} is {self.capacity}")
        if message is None:
            found = list(self._unacknowledged)
        elif (delivery := message.delivery) in self._unacknowledged or delivery in self._undecoded:
            found = [delivery]
        elif isinstance(delivery, ReceivedDelivery) and delivery.delivery_tag is None:
            return []  # it came settled: there is nothing to report
        else:
            raise SessionError(text=f"the message is not waiting for acknowledgement in session {self._session_name}")
        for delivery in found:
            self._unacknowledged.pop(delivery, None)
        if self._undecoded:
            for delivery in found:
                self._undecoded.pop(delivery, None)
        return found

    def release(self) -> None:
        """Return the messages to their nodes, as ones that were delivered."""
        for delivery in (*self._unacknowledged, *self._undecoded):
            delivery.modify(failed=True)
        self.clear()

    def clear(self) -> None:
        """Forget the messages."""
        self._unacknowledged.clear()
        self._undecoded.clear()


def outcome_of(disposition: Disposition | None) -> Outcome:
    """The outcome that a disposition stands for."""
    if disposition is None:
        return Outcome.ACCEPTED
    return Outcome.REJECTED if disposition.type is REJECTED else Outcome.RELEASED


def check_in_transaction(disposition: Disposition | None, product: str) -> None:
    """Check that messages can have a disposition in a transaction, where AMQP's outcome modified has no place.

    Args:
        disposition: which.
        product: of the broker.

    Raises:
        SessionError: it releases messages with changes, or the broker would drop them.
    """
    if disposition is None or disposition.type is REJECTED:
        return
    if not releases_in_transaction(product):
        raise SessionError(text=f"RELEASED: {product} drops what a transaction releases; roll back")
    options = disposition.options
    if wanted := [name for name, value in options.items() if value]:
        raise SessionError(text=f"{' and '.join(wanted)}: not possible in a transaction; release without, or roll back")


def settle(deliveries: Sequence[ReceivedDelivery], disposition: Disposition | None, *, confirm: bool) -> None:
    """Report what became of messages.

    Args:
        deliveries: which ones.
        disposition: None if they were processed.
        confirm: if the broker can, it shall confirm that they are gone; `confirmed` becomes True then. One whose link
            is gone before becomes `lost`. Those that are released are back in their queue either way.
    """
    if disposition is None and not confirm:
        ReceivedDelivery.accept_all(deliveries)
        return
    confirm = confirm and outcome_of(disposition) is not Outcome.RELEASED
    for delivery in deliveries:
        if confirm and delivery.stale:
            delivery.lost = True
        elif confirm and delivery.receiver.confirms:
            delivery.receiver.await_confirmation(delivery)
            delivery.update(outcome_of(disposition), None, *reason_of(disposition))
        else:
            delivery.confirmed = True
            _settle(delivery, disposition)


def _settle(delivery: ReceivedDelivery, disposition: Disposition | None) -> None:
    options = {} if disposition is None else disposition.options
    failed, undeliverable = bool(options.get("set_redelivered")), bool(options.get("undeliverable_here"))
    if failed or undeliverable:
        delivery.modify(failed=failed, undeliverable=undeliverable)
    else:
        delivery.settle(outcome_of(disposition), *reason_of(disposition))


def reason_of(disposition: Disposition | None) -> tuple[str, str]:
    """Condition and description of a rejection."""
    if disposition is None:
        return "", ""
    code, text = disposition.options.get("code"), disposition.options.get("text")
    return str(code) if code is not None else "amqp:internal-error" if text else "", str(text or "")
