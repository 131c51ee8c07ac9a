"""Failures of connections, and AMQP error conditions, as the errors of the API (AMQP 1.0, parts 2.8.15 to 2.8.18)."""

from __future__ import annotations

from qmf.bus.client.failures import FailureKind, NetworkFailure
from qmf.messaging.addresses import Address
from qmf.messaging.bindings import has_bindings
from qmf.messaging.exceptions import (
    AuthenticationFailure,
    ConnectError,
    ConnectionClosed,
    ConnectionError,
    HeartbeatTimeout,
    LinkClosed,
    LinkError,
    MessagingError,
    NotFound,
    ResolutionError,
    SendError,
    TargetCapacityExceeded,
    UnauthorizedAccess,
    VersionError,
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


def attach_error(address: Address, condition: str, description: str) -> MessagingError:
    """The error for a link that a broker refused.

    That a node does not exist is said in the words of the published API, in which programs look for it, unless the
    address asks for bindings, whose nodes may be meant.
    """
    kind = _AT_ATTACH.get(condition, ResolutionError)
    wanted = address.options.node.type
    if kind is NotFound and not has_bindings(address):
        text = f"no such {'queue' if wanted is None else wanted.value}: {address.name}; link refused by the broker"
    else:
        text = f"link to {address.name!r} refused by the broker"
    return kind(condition or None, text + (f": {description}" if description else ""))


def detach_error(node: str, condition: str, description: str) -> MessagingError:
    """The error for a link that a broker ended."""
    text = f"link to {node!r} closed by the broker" + (f": {description}" if description else "")
    kind = UnauthorizedAccess if condition == "amqp:unauthorized-access" else LinkClosed
    return kind(condition or None, text)


def send_error(node: str, outcome: str, condition: str, description: str) -> MessagingError:
    """The error for a message that a broker did not accept."""
    text = f"message to {node!r} {outcome} by the broker" + (f": {description}" if description else "")
    return _OF_MESSAGES.get(condition, SendError)(condition or None, text)


def connect_error(failure: NetworkFailure) -> ConnectError:
    """The error for a connection that could not be made."""
    kinds = {FailureKind.AUTHENTICATION: AuthenticationFailure, FailureKind.PROTOCOL: VersionError}
    kind = kinds.get(failure.kind, ConnectError)
    return kind(failure.condition or None, f"cannot connect to {failure.url}: {_text(failure)}")


def lost_error(failure: NetworkFailure) -> ConnectionError:
    """The error for a connection that was lost."""
    if failure.kind is FailureKind.SILENCE:
        return HeartbeatTimeout(text=f"connection to {failure.url} lost: no sign of life from the broker")
    return ConnectionClosed(failure.condition or None, f"connection to {failure.url} lost: {_text(failure)}")


def is_final(error: Exception) -> bool:
    """True if no further attempt to connect shall follow: user or protocol are wrong, or it is a defect."""
    if isinstance(error, NetworkFailure):
        return error.kind in (FailureKind.AUTHENTICATION, FailureKind.PROTOCOL)
    return not isinstance(error, MessagingError)


def _text(failure: NetworkFailure) -> str:
    return f"{failure.what}: {failure.description}" if failure.description else failure.what
