"""What both forms of received messages have in common: the way to their session, and what it is to do with them."""

from __future__ import annotations

from qmf.messaging.constants import REJECTED, RELEASED
from qmf.messaging.core.deliveries import ReceivedDelivery
from qmf.messaging.exceptions import SessionError
from qmf.messaging.message import Disposition, Message


def session_of(message: Message) -> object:
    """The session, of the API, in which a message was received.

    Raises:
        SessionError: it was not received.
    """
    delivery = message.delivery
    if not isinstance(delivery, ReceivedDelivery):
        raise SessionError(text="the message was not received: there is nothing to accept, reject, release or modify")
    return delivery.receiver.session


def rejection(code: str | None, text: str | None) -> Disposition:
    """That a message cannot be processed."""
    given = {name: value for name, value in (("code", code), ("text", text)) if value is not None}
    return Disposition(REJECTED, **given)


def modification(*, transactional: bool, failed: bool, undeliverable_here: bool) -> Disposition:
    """That a message returns to its node with changes.

    Raises:
        SessionError: the session is transactional.
    """
    if transactional:
        raise SessionError(text="modify() is not possible in a transaction; accept, reject, release or roll back")
    return Disposition(RELEASED, set_redelivered=failed, undeliverable_here=undeliverable_here)


RELEASE = Disposition(RELEASED)
