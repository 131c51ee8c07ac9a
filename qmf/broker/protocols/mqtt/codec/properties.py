"""The properties of MQTT 5 (section 2.2.2): what types they have, in which packets they may stand, and their bytes."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from qmf.broker.protocols.mqtt.codec.fields import PacketFields, encode_binary, encode_text, encode_variable
from qmf.broker.protocols.mqtt.codec.topics import topic_error
from qmf.broker.protocols.mqtt.codec.values import MqttError, PacketType, ReasonCode, malformed_packet, protocol_error


class PacketProperty(enum.IntEnum):
    """The properties, by their identifiers."""

    PAYLOAD_FORMAT = 1
    MESSAGE_EXPIRY = 2
    CONTENT_TYPE = 3
    RESPONSE_TOPIC = 8
    CORRELATION_DATA = 9
    SUBSCRIPTION_ID = 11
    SESSION_EXPIRY = 17
    ASSIGNED_CLIENT_ID = 18
    SERVER_KEEP_ALIVE = 19
    AUTHENTICATION_METHOD = 21
    AUTHENTICATION_DATA = 22
    REQUEST_PROBLEM_INFORMATION = 23
    WILL_DELAY = 24
    REQUEST_RESPONSE_INFORMATION = 25
    RESPONSE_INFORMATION = 26
    SERVER_REFERENCE = 28
    REASON_STRING = 31
    RECEIVE_MAXIMUM = 33
    TOPIC_ALIAS_MAXIMUM = 34
    TOPIC_ALIAS = 35
    MAXIMUM_QOS = 36
    RETAIN_AVAILABLE = 37
    USER_PROPERTY = 38
    MAXIMUM_PACKET_SIZE = 39
    WILDCARDS_AVAILABLE = 40
    SUBSCRIPTION_IDS_AVAILABLE = 41
    SHARED_SUBSCRIPTIONS_AVAILABLE = 42


#: Values by property: numbers, texts, binary; of `USER_PROPERTY` a tuple of pairs of texts; in PUBLISH, that of
#: `SUBSCRIPTION_ID` is a tuple of numbers.
Properties = Mapping[PacketProperty, Any]

NO_PROPERTIES: Properties = {}

#: Stands for the properties of a will, which are in CONNECT.
WILL = 0

_P, _T = PacketProperty, PacketType
_PUBLISH_AND_WILL = (_T.PUBLISH, WILL)


def _pair(reader: PacketFields) -> tuple[str, str]:
    return reader.text(), reader.text()


def _encode_pair(value: tuple[str, str]) -> bytes:
    return encode_text(value[0]) + encode_text(value[1])


@attrs.frozen
class _Type:
    """How the values of a property are encoded.

    Attributes:
        read, encode: functions for one value.
        least, most: of a number.
    """

    read: Callable[[PacketFields], Any]
    encode: Callable[[Any], bytes]
    least: int = 0
    most: int | None = None


def _number(size: int, least: int = 0, most: int | None = None) -> _Type:
    read = {1: PacketFields.byte, 2: PacketFields.short, 4: PacketFields.long}[size]
    return _Type(read, lambda value: int(value).to_bytes(size), least, most)


_FLAG, _SHORT, _POSITIVE_SHORT = _number(1, 0, 1), _number(2), _number(2, 1)
_LONG, _POSITIVE_LONG = _number(4), _number(4, 1)
_TEXT, _BINARY = _Type(PacketFields.text, encode_text), _Type(PacketFields.binary, encode_binary)
_VARIABLE, _PAIR = _Type(PacketFields.variable, encode_variable, 1), _Type(_pair, _encode_pair)

_TYPES: Mapping[PacketProperty, _Type] = {
    _P.PAYLOAD_FORMAT: _FLAG,
    _P.MESSAGE_EXPIRY: _LONG,
    _P.CONTENT_TYPE: _TEXT,
    _P.RESPONSE_TOPIC: _TEXT,
    _P.CORRELATION_DATA: _BINARY,
    _P.SUBSCRIPTION_ID: _VARIABLE,
    _P.SESSION_EXPIRY: _LONG,
    _P.ASSIGNED_CLIENT_ID: _TEXT,
    _P.SERVER_KEEP_ALIVE: _SHORT,
    _P.AUTHENTICATION_METHOD: _TEXT,
    _P.AUTHENTICATION_DATA: _BINARY,
    _P.REQUEST_PROBLEM_INFORMATION: _FLAG,
    _P.WILL_DELAY: _LONG,
    _P.REQUEST_RESPONSE_INFORMATION: _FLAG,
    _P.RESPONSE_INFORMATION: _TEXT,
    _P.SERVER_REFERENCE: _TEXT,
    _P.REASON_STRING: _TEXT,
    _P.RECEIVE_MAXIMUM: _POSITIVE_SHORT,
    _P.TOPIC_ALIAS_MAXIMUM: _SHORT,
    _P.TOPIC_ALIAS: _SHORT,
    _P.MAXIMUM_QOS: _FLAG,
    _P.RETAIN_AVAILABLE: _FLAG,
    _P.USER_PROPERTY: _PAIR,
    _P.MAXIMUM_PACKET_SIZE: _POSITIVE_LONG,
    _P.WILDCARDS_AVAILABLE: _FLAG,
    _P.SUBSCRIPTION_IDS_AVAILABLE: _FLAG,
    _P.SHARED_SUBSCRIPTIONS_AVAILABLE: _FLAG,
}

_ACKNOWLEDGEMENT = frozenset({_P.REASON_STRING, _P.USER_PROPERTY})
_MESSAGE = frozenset(
    {
        _P.PAYLOAD_FORMAT,
        _P.MESSAGE_EXPIRY,
        _P.CONTENT_TYPE,
        _P.RESPONSE_TOPIC,
        _P.CORRELATION_DATA,
        _P.USER_PROPERTY,
    }
)

#: The properties of each type of packet, by `PacketType` or `WILL`.
ALLOWED: Mapping[int, frozenset[PacketProperty]] = {
    WILL: _MESSAGE | {_P.WILL_DELAY},
    _T.CONNECT: frozenset(
        {
            _P.SESSION_EXPIRY,
            _P.RECEIVE_MAXIMUM,
            _P.MAXIMUM_PACKET_SIZE,
            _P.TOPIC_ALIAS_MAXIMUM,
            _P.REQUEST_RESPONSE_INFORMATION,
            _P.REQUEST_PROBLEM_INFORMATION,
            _P.USER_PROPERTY,
            _P.AUTHENTICATION_METHOD,
            _P.AUTHENTICATION_DATA,
        }
    ),
    _T.CONNACK: _ACKNOWLEDGEMENT
    | {
        _P.SESSION_EXPIRY,
        _P.RECEIVE_MAXIMUM,
        _P.MAXIMUM_QOS,
        _P.RETAIN_AVAILABLE,
        _P.MAXIMUM_PACKET_SIZE,
        _P.ASSIGNED_CLIENT_ID,
        _P.TOPIC_ALIAS_MAXIMUM,
        _P.WILDCARDS_AVAILABLE,
        _P.SUBSCRIPTION_IDS_AVAILABLE,
        _P.SHARED_SUBSCRIPTIONS_AVAILABLE,
        _P.SERVER_KEEP_ALIVE,
        _P.RESPONSE_INFORMATION,
        _P.SERVER_REFERENCE,
        _P.AUTHENTICATION_METHOD,
        _P.AUTHENTICATION_DATA,
    },
    _T.PUBLISH: _MESSAGE | {_P.TOPIC_ALIAS, _P.SUBSCRIPTION_ID},
    _T.PUBACK: _ACKNOWLEDGEMENT,
    _T.PUBREC: _ACKNOWLEDGEMENT,
    _T.PUBREL: _ACKNOWLEDGEMENT,
    _T.PUBCOMP: _ACKNOWLEDGEMENT,
    _T.SUBSCRIBE: frozenset({_P.SUBSCRIPTION_ID, _P.USER_PROPERTY}),
    _T.SUBACK: _ACKNOWLEDGEMENT,
    _T.UNSUBSCRIBE: frozenset({_P.USER_PROPERTY}),
    _T.UNSUBACK: _ACKNOWLEDGEMENT,
    _T.DISCONNECT: _ACKNOWLEDGEMENT | {_P.SESSION_EXPIRY, _P.SERVER_REFERENCE},
    _T.AUTH: _ACKNOWLEDGEMENT | {_P.AUTHENTICATION_METHOD, _P.AUTHENTICATION_DATA},
}


def read_properties(reader: PacketFields, packet: int) -> Properties:
    """The properties of a packet.

    Args:
        reader: at their length.
        packet: type of the packet, or `WILL`.

    Raises:
        MqttError: one is unknown, does not belong into this packet, is repeated, or has a value that is not allowed.
    """
    length = reader.variable()
    if not length:
        return NO_PROPERTIES
    end = reader.position + length
    if length > reader.left:
        raise malformed_packet("properties are longer than their packet")
    allowed = ALLOWED[packet]
    found: dict[PacketProperty, Any] = {}
    while reader.position < end:
        number = reader.variable()
        kind = _BY_NUMBER.get(number)
        if kind is None or kind not in allowed:
            raise malformed_packet(f"property {number} does not belong into this packet")
        type_ = _TYPES[kind]
        value = type_.read(reader)
        if isinstance(value, int):
            _check_number(kind, type_, value)
        if kind is PacketProperty.USER_PROPERTY or (
            kind is PacketProperty.SUBSCRIPTION_ID and packet == PacketType.PUBLISH
        ):
            found[kind] = (*found.get(kind, ()), value)
        elif kind in found:
            raise protocol_error(f"property {kind.name} is repeated")
        elif kind is PacketProperty.RESPONSE_TOPIC and (error := topic_error(value)):
            raise protocol_error(f"the response topic: {error}")
        else:
            found[kind] = value
    if reader.position != end:
        raise malformed_packet("the last property is longer than all properties")
    return found


_BY_NUMBER: Mapping[int, PacketProperty] = {int(kind): kind for kind in PacketProperty}


def _check_number(kind: PacketProperty, type_: _Type, value: int) -> None:
    if value < type_.least or (type_.most is not None and value > type_.most):
        raise protocol_error(f"property {kind.name} must not be {value}")
    if kind is PacketProperty.TOPIC_ALIAS and not value:
        raise MqttError(ReasonCode.TOPIC_ALIAS_INVALID, "a topic alias must not be 0")


def encode_properties(properties: Properties) -> bytes:
    """The properties with their length; errors as of `encode_binary`."""
    if not properties:
        return b"\0"
    parts: list[bytes] = []
    for kind, value in properties.items():
        type_ = _TYPES[kind]
        values = value if isinstance(value, tuple) else (value,)
        parts += [bytes((kind,)) + type_.encode(each) for each in values]
    content = b"".join(parts)
    return encode_variable(len(content)) + content
