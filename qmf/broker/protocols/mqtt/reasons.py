"""The reason codes of MQTT for what the broker refuses."""

from __future__ import annotations

from qmf.broker.protocols.login import LoginRefusal
from qmf.broker.protocols.mqtt.codec.values import ReasonCode
from qmf.broker.refusal import Reason

REASONS = {
    Reason.MALFORMED: ReasonCode.IMPLEMENTATION_ERROR,
    Reason.INVALID: ReasonCode.IMPLEMENTATION_ERROR,
    Reason.NOT_FOUND: ReasonCode.TOPIC_NAME_INVALID,
    Reason.UNAUTHORIZED: ReasonCode.NOT_AUTHORIZED,
    Reason.FULL: ReasonCode.QUOTA_EXCEEDED,
    Reason.CIRCULAR: ReasonCode.IMPLEMENTATION_ERROR,
    Reason.UNKNOWN_TRANSACTION: ReasonCode.IMPLEMENTATION_ERROR,
    Reason.ROLLED_BACK: ReasonCode.IMPLEMENTATION_ERROR,
}

LOGIN_CODES = {
    LoginRefusal.NOT_AUTHORIZED: ReasonCode.NOT_AUTHORIZED,
    LoginRefusal.METHOD: ReasonCode.BAD_AUTHENTICATION_METHOD,
    LoginRefusal.CREDENTIALS: ReasonCode.BAD_USER_OR_PASSWORD,
}

#: Return codes of CONNACK in 3.1.1; for other reasons the connection is closed without one.
RETURN_CODES = {
    ReasonCode.UNSUPPORTED_VERSION: 1,
    ReasonCode.CLIENT_ID_NOT_VALID: 2,
    ReasonCode.SERVER_UNAVAILABLE: 3,
    ReasonCode.SERVER_BUSY: 3,
    ReasonCode.QUOTA_EXCEEDED: 3,
    ReasonCode.BAD_USER_OR_PASSWORD: 4,
    ReasonCode.NOT_AUTHORIZED: 5,
}

#: Reasons that CONNACK does not know.
OF_DISCONNECT = frozenset(
    {ReasonCode.SERVER_SHUTTING_DOWN, ReasonCode.ADMINISTRATIVE_ACTION, ReasonCode.SESSION_TAKEN_OVER}
)
#: The errors of CONNACK, in place of which others are sent as an unspecified error.
OF_CONNACK = frozenset(
    {code for code in ReasonCode if ReasonCode.UNSPECIFIED_ERROR <= code <= ReasonCode.BANNED}
    | {
        ReasonCode.BAD_AUTHENTICATION_METHOD,
        ReasonCode.TOPIC_NAME_INVALID,
        ReasonCode.PACKET_TOO_LARGE,
        ReasonCode.QUOTA_EXCEEDED,
        ReasonCode.PAYLOAD_FORMAT_INVALID,
        ReasonCode.RETAIN_NOT_SUPPORTED,
        ReasonCode.QOS_NOT_SUPPORTED,
        ReasonCode.USE_ANOTHER_SERVER,
        ReasonCode.SERVER_MOVED,
        ReasonCode.CONNECTION_RATE_EXCEEDED,
    }
)
