"""The numbers of MQTT: versions, types of packets, reason codes; and the errors of this room."""

from __future__ import annotations

import enum


class Version(enum.IntEnum):
    """A version of MQTT, by its number in CONNECT."""

    V3 = 4  #: 3.1.1
    V5 = 5

    @property
    def text(self) -> str:
        """As it is written."""
        return "MQTT 3.1.1" if self is Version.V3 else "MQTT 5.0"


class PacketType(enum.IntEnum):
    """The types of packets (5.0, section 2.1.2)."""

    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    AUTH = 15


class ReasonCode(enum.IntEnum):
    """The reason codes of MQTT 5 (section 2.4). From 0x80 on they are errors."""

    SUCCESS = 0x00  #: in SUBACK: QoS 0
    GRANTED_QOS_1 = 0x01
    GRANTED_QOS_2 = 0x02
    DISCONNECT_WITH_WILL = 0x04
    NO_MATCHING_SUBSCRIBERS = 0x10
    NO_SUBSCRIPTION_EXISTED = 0x11
    CONTINUE_AUTHENTICATION = 0x18
    RE_AUTHENTICATE = 0x19
    UNSPECIFIED_ERROR = 0x80
    MALFORMED_PACKET = 0x81
    PROTOCOL_ERROR = 0x82
    IMPLEMENTATION_ERROR = 0x83
    UNSUPPORTED_VERSION = 0x84
    CLIENT_ID_NOT_VALID = 0x85
    BAD_USER_OR_PASSWORD = 0x86
    NOT_AUTHORIZED = 0x87
    SERVER_UNAVAILABLE = 0x88
    SERVER_BUSY = 0x89
    BANNED = 0x8A
    SERVER_SHUTTING_DOWN = 0x8B
    BAD_AUTHENTICATION_METHOD = 0x8C
    KEEP_ALIVE_TIMEOUT = 0x8D
    SESSION_TAKEN_OVER = 0x8E
    TOPIC_FILTER_INVALID = 0x8F
    TOPIC_NAME_INVALID = 0x90
    PACKET_ID_IN_USE = 0x91
    PACKET_ID_NOT_FOUND = 0x92
    RECEIVE_MAXIMUM_EXCEEDED = 0x93
    TOPIC_ALIAS_INVALID = 0x94
    PACKET_TOO_LARGE = 0x95
    MESSAGE_RATE_TOO_HIGH = 0x96
    QUOTA_EXCEEDED = 0x97
    ADMINISTRATIVE_ACTION = 0x98
    PAYLOAD_FORMAT_INVALID = 0x99
    RETAIN_NOT_SUPPORTED = 0x9A
    QOS_NOT_SUPPORTED = 0x9B
    USE_ANOTHER_SERVER = 0x9C
    SERVER_MOVED = 0x9D
    SHARED_SUBSCRIPTIONS_NOT_SUPPORTED = 0x9E
    CONNECTION_RATE_EXCEEDED = 0x9F
    MAXIMUM_CONNECT_TIME = 0xA0
    SUBSCRIPTION_IDS_NOT_SUPPORTED = 0xA1
    WILDCARDS_NOT_SUPPORTED = 0xA2

    @property
    def is_error(self) -> bool:
        """What it is about has failed."""
        return self >= ReasonCode.UNSPECIFIED_ERROR


#: The largest packet that its length can describe, without the first byte and the length.
MAX_LENGTH = 268_435_455


class MqttError(Exception):
    """A peer violates the protocol: its connection is to be closed.

    Attributes:
        code: for the peer.
        reason: for people.
    """

    def __init__(self, code: ReasonCode, reason: str) -> None:
        self.code = code
        self.reason = reason
        super().__init__(code, reason)

    def __str__(self) -> str:
        return f"{self.reason} (0x{self.code:02X})"


def malformed_packet(reason: str) -> MqttError:
    """The error for bytes that are no packet."""
    return MqttError(ReasonCode.MALFORMED_PACKET, reason)


def protocol_error(reason: str) -> MqttError:
    """The error for a packet that is not allowed, or has a value that is not."""
    return MqttError(ReasonCode.PROTOCOL_ERROR, reason)
