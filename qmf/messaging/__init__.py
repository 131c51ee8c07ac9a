"""The high-level messaging API: connections, sessions, senders, receivers and messages.

These are the names of the published Python API (`qpid.messaging`), over AMQP 1.0. `qmf.messaging.aio` has the same for
asyncio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmf._lazy import lazy_exports

if TYPE_CHECKING:
    from qmf.messaging.addresses import Address
    from qmf.messaging.aio.consuming.policy import Failure, Fate, RejectMessage, Retry, RetryLater, TooManyDeliveries
    from qmf.messaging.constants import AMQP_PORT, AMQPS_PORT, REJECTED, RELEASED, UNLIMITED, Constant
    from qmf.messaging.consumer import Consumer
    from qmf.messaging.content_types import JSON, ContentType, ContentTypes
    from qmf.messaging.datatypes import Serial, timestamp, uuid4
    from qmf.messaging.endpoint import Endpoint
    from qmf.messaging.exceptions import (
        AcknowledgementUnknown,
        AddressError,
        AssertionFailed,
        AuthenticationFailure,
        ConnectError,
        ConnectionClosed,
        ConnectionError,
        ContentError,
        DecodeError,
        Detached,
        Empty,
        EncodeError,
        FetchError,
        HeartbeatTimeout,
        InsufficientCapacity,
        InternalError,
        InvalidOption,
        LinkClosed,
        LinkError,
        MalformedAddress,
        MessagingError,
        NontransactionalSession,
        NotFound,
        ReceiverError,
        ResolutionError,
        SenderError,
        SendError,
        ServerError,
        SessionClosed,
        SessionError,
        TargetCapacityExceeded,
        Timeout,
        TransactionAborted,
        TransactionError,
        TransactionUnknown,
        UnauthorizedAccess,
        VersionError,
    )
    from qmf.messaging.message import Disposition, Message
    from qmf.messaging.received import ReceivedMessage
    from qmf.messaging.synchronous import Connection, Receiver, Sender, Session
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "qmf.messaging.addresses": "Address",
            "qmf.messaging.endpoint": "Endpoint",
            "qmf.messaging.constants": "AMQP_PORT AMQPS_PORT REJECTED RELEASED UNLIMITED Constant",
            "qmf.messaging.synchronous": "Connection Receiver Sender Session",
            "qmf.messaging.consumer": "Consumer",
            "qmf.messaging.aio.consuming.policy": "Failure Fate RejectMessage Retry RetryLater TooManyDeliveries",
            "qmf.messaging.content_types": "ContentType ContentTypes JSON",
            "qmf.messaging.datatypes": "Serial timestamp uuid4",
            "qmf.messaging.exceptions": (
                "AcknowledgementUnknown AddressError AssertionFailed AuthenticationFailure ConnectError "
                "ConnectionClosed ConnectionError "
                "ContentError DecodeError Detached Empty EncodeError FetchError HeartbeatTimeout InsufficientCapacity "
                "InternalError InvalidOption LinkClosed LinkError MalformedAddress MessagingError "
                "NontransactionalSession NotFound ReceiverError ResolutionError SendError SenderError ServerError "
                "SessionClosed SessionError TargetCapacityExceeded Timeout TransactionAborted TransactionError "
                "TransactionUnknown UnauthorizedAccess VersionError"
            ),
            "qmf.messaging.message": "Disposition Message",
            "qmf.messaging.received": "ReceivedMessage",
        },
    )

__all__ = [
    "AMQPS_PORT",
    "AMQP_PORT",
    "JSON",
    "REJECTED",
    "RELEASED",
    "UNLIMITED",
    "AcknowledgementUnknown",
    "Address",
    "AddressError",
    "AssertionFailed",
    "AuthenticationFailure",
    "ConnectError",
    "Connection",
    "ConnectionClosed",
    "ConnectionError",
    "Constant",
    "Consumer",
    "ContentError",
    "ContentType",
    "ContentTypes",
    "DecodeError",
    "Detached",
    "Disposition",
    "Empty",
    "EncodeError",
    "Endpoint",
    "Failure",
    "Fate",
    "FetchError",
    "HeartbeatTimeout",
    "InsufficientCapacity",
    "InternalError",
    "InvalidOption",
    "LinkClosed",
    "LinkError",
    "MalformedAddress",
    "Message",
    "MessagingError",
    "NontransactionalSession",
    "NotFound",
    "ReceivedMessage",
    "Receiver",
    "ReceiverError",
    "RejectMessage",
    "ResolutionError",
    "Retry",
    "RetryLater",
    "SendError",
    "Sender",
    "SenderError",
    "Serial",
    "ServerError",
    "Session",
    "SessionClosed",
    "SessionError",
    "TargetCapacityExceeded",
    "Timeout",
    "TooManyDeliveries",
    "TransactionAborted",
    "TransactionError",
    "TransactionUnknown",
    "UnauthorizedAccess",
    "VersionError",
    "timestamp",
    "uuid4",
]
