"""Acknowledgement: fetched messages until their outcome is reported and, where the broker can, confirmed."""

from __future__ import annotations

from collections.abc import Iterable

from qmf.bus.engine.values import Outcome
from qmf.messaging.aio.deliveries import ReceivedDelivery
from qmf.messaging.constants import REJECTED
from qmf.messaging.exceptions import SessionError
from qmf.messaging.message import Disposition, Message


class Acknowledgements:
    """The messages of a session that were fetched and are not acknowledged; `fetched` and `take` on any thread."""

    def __init__(self, session_name: str) -> None:
        self._session_name = session_name
        #: In the order in which they were fetched.
        self._unacknowledged: dict[ReceivedDelivery, None] = {}

    def fetched(self, delivery: ReceivedDelivery) -> None:
        """The program has a message, and will acknowledge it."""
        if delivery.delivery_tag is not None:
            self._unacknowledged[delivery] = None

    def count(self, receiver: object) -> int:
        """Number of messages of a receiver that were fetched and are not acknowledged."""
        return sum(delivery.receiver is receiver for delivery in list(self._unacknowledged))

    def take(self, message: Message | None) -> list[ReceivedDelivery]:
        """The deliveries to acknowledge, which count as acknowledged from now on.

        Args:
            message: which one; None for all.

        Raises:
            SessionError: the message does not wait for acknowledgement.
        """
        found = list(self._unacknowledged) if message is None else [message.delivery]
        if message is not None and message.delivery not in self._unacknowledged:
            raise SessionError(text=f"the message is not waiting for acknowledgement in session {self._session_name}")
        for delivery in found:
            self._unacknowledged.pop(delivery, None)
        return found

    def release(self) -> None:
        """Return the messages to their nodes, as ones that were delivered."""
        for delivery in self._unacknowledged:
            delivery.modify(failed=True)
        self._unacknowledged.clear()

    def lose(self) -> None:
        """The connection is gone: forget the messages that the broker delivers again."""
        for delivery in list(self._unacknowledged):
            if delivery.stale:
                self._unacknowledged.pop(delivery, None)

    def clear(self) -> None:
        """Forget the messages."""
        self._unacknowledged.clear()


def outcome_of(disposition: Disposition | None) -> Outcome:
    """The outcome that a disposition stands for."""
    if disposition is None:
        return Outcome.ACCEPTED
    return Outcome.REJECTED if disposition.type is REJECTED else Outcome.RELEASED


def settle(deliveries: Iterable[ReceivedDelivery], disposition: Disposition | None, *, confirm: bool) -> None:
    """Report what became of messages.

    Args:
        deliveries: which ones.
        disposition: None if they were processed.
        confirm: if the broker can, it shall confirm that they were processed; `confirmed` becomes True then.
    """
    if disposition is None and not confirm:
        ReceivedDelivery.accept_all(deliveries)
        return
    for delivery in deliveries:
        if confirm and disposition is None and delivery.receiver.confirms:
            delivery.receiver.await_confirmation(delivery)
            delivery.update(Outcome.ACCEPTED, None)
        else:
            delivery.confirmed = True
            _settle(delivery, disposition)


def _settle(delivery: ReceivedDelivery, disposition: Disposition | None) -> None:
    if disposition is None:
        delivery.settle(Outcome.ACCEPTED)
    elif disposition.type is REJECTED:
        code, text = disposition.options.get("code"), disposition.options.get("text")
        condition = str(code) if code is not None else "amqp:internal-error" if text else ""
        delivery.settle(Outcome.REJECTED, condition, str(text or ""))
    elif disposition.options.get("set_redelivered"):
        delivery.modify(failed=True)
    else:
        delivery.settle(Outcome.RELEASED)
