"""AMQP error conditions as the errors of the API (AMQP 1.0, parts 2.8.15 to 2.8.18)."""

from __future__ import annotations

from qmf.messaging.exceptions import (
    LinkClosed,
    LinkError,
    MessagingError,
    NotFound,
    ResolutionError,
    SendError,
    TargetCapacityExceeded,
    UnauthorizedAccess,
)

_AT_ATTACH: dict[str, type[MessagingError]] = {
    "amqp:not-found": NotFound,
    "amqp:unauthorized-access": UnauthorizedAccess,
    "amqp:resource-locked": LinkError,
    "amqp:resource-limit-exceeded": LinkError,
}
_OF_MESSAGES: dict[str, type[MessagingError]] = {
    "amqp:resource-limit-exceeded": TargetCapacityExceeded,
    "amqp:unauthorized-access": UnauthorizedAccess,
}


def attach_error(node: str, condition: str, description: str) -> MessagingError:
    """The error for a link that a broker refused."""
    text = f"link to {node!r} refused by the broker" + (f": {description}" if description else "")
    return _AT_ATTACH.get(condition, ResolutionError)(condition or None, text)


def detach_error(node: str, condition: str, description: str) -> MessagingError:
    """The error for a link that a broker ended."""
    text = f"link to {node!r} closed by the broker" + (f": {description}" if description else "")
    kind = UnauthorizedAccess if condition == "amqp:unauthorized-access" else LinkClosed
    return kind(condition or None, text)


def send_error(node: str, outcome: str, condition: str, description: str) -> MessagingError:
    """The error for a message that a broker did not accept."""
    text = f"message to {node!r} {outcome} by the broker" + (f": {description}" if description else "")
    return _OF_MESSAGES.get(condition, SendError)(condition or None, text)
