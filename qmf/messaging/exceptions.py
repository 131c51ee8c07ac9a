"""Errors of the messaging API, under the published names.

The tree::

    Timeout                          a blocking call did not end within its timeout
    MessagingError                   base of all others
    ├── InternalError                a defect of this library
    ├── ConnectionError
    │   ├── ConnectError             no connection could be made
    │   │   ├── VersionError         the peer does not support AMQP 1.0
    │   │   └── AuthenticationFailure
    │   ├── ConnectionClosed         the connection was closed, by this program or by the broker
    │   └── HeartbeatTimeout         the broker was silent for too long
    ├── SessionError
    │   ├── AcknowledgementUnknown   the link was gone before the broker confirmed acknowledgements
    │   ├── Detached                 the operation needs a connection, and there is none
    │   ├── NontransactionalSession  commit or rollback on a session without transactions
    │   ├── TransactionError
    │   │   ├── TransactionAborted   the transaction was rolled back
    │   │   └── TransactionUnknown   the connection was lost during commit: committed or not is unknown
    │   ├── UnauthorizedAccess       the broker's access rules refused the operation
    │   ├── ServerError              the broker reported an error that has no class of its own
    │   └── SessionClosed
    ├── LinkError
    │   ├── InsufficientCapacity     no credit left for another message
    │   ├── AddressError
    │   │   ├── MalformedAddress     the text is not an address
    │   │   ├── InvalidOption        an option is unknown, has a wrong type, or is not supported by the broker
    │   │   └── ResolutionError
    │   │       ├── AssertionFailed  the node is not what `assert` demands
    │   │       └── NotFound         there is no such node
    │   ├── LinkClosed               the sender or receiver was closed
    │   ├── SenderError
    │   │   └── SendError            a message was not accepted
    │   │       └── TargetCapacityExceeded
    │   └── ReceiverError
    │       └── FetchError
    │           └── Empty            no message arrived in time
    └── ContentError
        ├── EncodeError              content or a property that AMQP cannot encode
        └── DecodeError              content that does not match its content type

Source: High Level Client API, and the published Python API (`qpid.messaging.exceptions`).
"""

from __future__ import annotations

from typing import Any

from qmf.errors import QmfError


class Timeout(QmfError):
    """A blocking call did not end within its timeout. What it was to do may still happen."""


class MessagingError(QmfError):
    """Base of the errors of this API.

    Attributes:
        code: the AMQP error condition, such as ``amqp:not-found``; None where there is none.
        text: what went wrong, in one line.
        info: further facts by name.
    """

    def __init__(self, code: str | None = None, text: str | None = None, **info: object) -> None:
        self.code = code
        self.text = text
        self.info = info
        super().__init__(code, text)

    def __str__(self) -> str:
        text = self.text or type(self).__name__
        message = text if self.code is None else f"{text} ({self.code})"
        if self.info:
            message += " " + ", ".join(f"{name}={value!r}" for name, value in self.info.items())
        return message

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self.code, self.text, self.info)


def _restore(cls: type[MessagingError], code: str | None, text: str | None, info: dict[str, object]) -> MessagingError:
    return cls(code, text, **info)


class InternalError(MessagingError):
    """A defect of this library."""


class ConnectionError(MessagingError):
    """Base of the errors of a connection."""


class ConnectError(ConnectionError):
    """No connection could be made; the text names the URL and the reason."""


class VersionError(ConnectError):
    """The peer does not support the protocol that was asked for."""


class AuthenticationFailure(ConnectError):
    """The broker refused the user, the password or every SASL mechanism."""


class ConnectionClosed(ConnectionError):
    """The connection was closed, by this program or by the broker."""


class HeartbeatTimeout(ConnectionError):
    """The broker was silent for longer than the heartbeat interval allows."""


class SessionError(MessagingError):
    """Base of the errors of a session."""


class AcknowledgementUnknown(SessionError):
    """The link of fetched messages was gone before the broker confirmed their acknowledgement: they may come again."""


class Detached(SessionError):
    """The operation needs a connection, and the connection is detached."""


class NontransactionalSession(SessionError):
    """Commit or rollback was called on a session without transactions."""


class TransactionError(SessionError):
    """Base of the errors of a transaction."""


class TransactionAborted(TransactionError):
    """The transaction was rolled back, because the broker could not commit it or because the connection was lost."""


class TransactionUnknown(TransactionError):
    """The connection was lost between commit and its confirmation: whether it took effect is unknown."""


class UnauthorizedAccess(SessionError):
    """The access rules of the broker refused the operation."""


class ServerError(SessionError):
    """The broker reported an error for which there is no other class."""


class SessionClosed(SessionError):
    """The session was closed."""


class LinkError(MessagingError):
    """Base of the errors of a sender or receiver."""


class InsufficientCapacity(LinkError):
    """The capacity does not allow another message."""


class AddressError(LinkError):
    """Base of the errors of an address."""


class MalformedAddress(AddressError):
    """The text is not an address; the message names line and column."""


class InvalidOption(AddressError):
    """An option of an address is unknown, has a wrong type, or cannot be provided by the broker."""


class ResolutionError(AddressError):
    """The address could not be resolved to a node."""


class AssertionFailed(ResolutionError):
    """The node is not of the kind that the option ``assert`` demands."""


class NotFound(ResolutionError):
    """There is no node of that name."""


class LinkClosed(LinkError):
    """The sender or receiver was closed, by this program or by the broker."""


class SenderError(LinkError):
    """Base of the errors of a sender."""


class SendError(SenderError):
    """A message was not accepted by the broker."""


class TargetCapacityExceeded(SendError):
    """A message was not accepted because its queue is full."""


class ReceiverError(LinkError):
    """Base of the errors of a receiver."""


class FetchError(ReceiverError):
    """A message could not be fetched."""


class Empty(FetchError):
    """No message arrived within the timeout of `Receiver.fetch`."""


class ContentError(MessagingError):
    """Content that cannot be encoded or decoded. It concerns one message, and the session stays usable."""


class EncodeError(ContentError):
    """The content, or a property, cannot be encoded."""


class DecodeError(ContentError):
    """The content does not match its content type.

    Attributes:
        message: where only the content cannot be decoded, the received message, with the content as it came. It waits
            for a decision of its own: `Session.acknowledge` without a message leaves it out. None for bytes that are no
            message of AMQP, which were rejected.
    """

    message: Any = None
