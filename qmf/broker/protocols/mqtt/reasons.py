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
