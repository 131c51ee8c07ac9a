"""A connection of MQTT, as the broker sees it, without I/O: bytes in, packets that are allowed out, and the reverse.

::

    NEW --connect--> LOGGING_IN ------accept------> CONNECTED --authenticate again--> RENEWING
     '---connect with a method--> AUTHENTICATING --accept--^  ^--------accept------------'

While a client is LOGGING_IN, what it sends is not read. AUTHENTICATING and RENEWING: it answers challenges by AUTH.
Each state leads to CLOSED, by DISCONNECT of the client or by our own close. What is impossible in a state is a protocol
error of the client.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import attrs

from qmf._state_table import StateTable
from qmf.broker.protocols.mqtt.codec.fields import encode_variable
from qmf.broker.protocols.mqtt.codec.packets import (
    Auth,
    ConnAck,
    Connect,
    Disconnect,
    MessageAnswer,
    Packet,
    Publish,
    SubAck,
    Subscribe,
    UnsubAck,
    Unsubscribe,
    Will,
)
from qmf.broker.protocols.mqtt.codec.properties import NO_PROPERTIES, PacketProperty, Properties
from qmf.broker.protocols.mqtt.codec.reading import CODES, PacketReader
from qmf.broker.protocols.mqtt.codec.values import (
    MAX_LENGTH,
    MqttError,
    PacketType,
    ReasonCode,
    Version,
    protocol_error,
)
from qmf.broker.protocols.mqtt.codec.writing import encode_acknowledgement, encode_packet, encode_publish
from qmf.broker.protocols.mqtt.options import MqttOptions


class MqttState(enum.Enum):
    """State of a connection."""

    NEW = "new"
    LOGGING_IN = "logging in"
    AUTHENTICATING = "authenticating"
    CONNECTED = "connected"
    RENEWING = "authenticating again"
    CLOSED = "closed"


class MqttTrigger(enum.Enum):
    """What changes the state of a connection, or is allowed in it."""

    CONNECT = "CONNECT"
    CONNECT_WITH_METHOD = "CONNECT with an authentication method"
    AUTH = "AUTH"
    RENEW = "AUTH that begins"
    PACKET = "another packet"
    DISCONNECT = "DISCONNECT"
    ACCEPT = "accept"  #: the client is who it says
    CLOSE = "close"  #: by us


_S, _T = MqttState, MqttTrigger

MQTT_TABLE: StateTable[MqttState, MqttTrigger, MqttState] = StateTable(
    "a connection of MQTT",
    {
        _S.NEW: {_T.CONNECT: _S.LOGGING_IN, _T.CONNECT_WITH_METHOD: _S.AUTHENTICATING, _T.CLOSE: _S.CLOSED},
        _S.LOGGING_IN: {_T.ACCEPT: _S.CONNECTED, _T.CLOSE: _S.CLOSED},
        _S.AUTHENTICATING: {
            _T.AUTH: _S.AUTHENTICATING,
            _T.DISCONNECT: _S.CLOSED,
            _T.ACCEPT: _S.CONNECTED,
            _T.CLOSE: _S.CLOSED,
        },
        _S.CONNECTED: {
            _T.PACKET: _S.CONNECTED,
            _T.RENEW: _S.RENEWING,
            _T.DISCONNECT: _S.CLOSED,
            _T.CLOSE: _S.CLOSED,
        },
        _S.RENEWING: {
            _T.PACKET: _S.RENEWING,
            _T.AUTH: _S.RENEWING,
            _T.ACCEPT: _S.CONNECTED,
            _T.DISCONNECT: _S.CLOSED,
            _T.CLOSE: _S.CLOSED,
        },
        _S.CLOSED: {_T.CLOSE: _S.CLOSED},
    },
    error=protocol_error,
)

#: Return codes of CONNACK in 3.1.1; for other reasons the connection is closed without one.
_RETURN_CODES = {
    ReasonCode.UNSUPPORTED_VERSION: 1,
    ReasonCode.CLIENT_ID_NOT_VALID: 2,
    ReasonCode.SERVER_UNAVAILABLE: 3,
    ReasonCode.SERVER_BUSY: 3,
    ReasonCode.QUOTA_EXCEEDED: 3,
    ReasonCode.BAD_USER_OR_PASSWORD: 4,
    ReasonCode.NOT_AUTHORIZED: 5,
}

#: States in which CONNACK is the last packet, and reasons that it does not know.
_NOT_CONNECTED = frozenset({_S.NEW, _S.LOGGING_IN, _S.AUTHENTICATING})
_OF_DISCONNECT = frozenset(
    {ReasonCode.SERVER_SHUTTING_DOWN, ReasonCode.ADMINISTRATIVE_ACTION, ReasonCode.SESSION_TAKEN_OVER}
)
#: The errors of CONNACK, in place of which others are sent as an unspecified error.
_OF_CONNACK = frozenset(
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

#: What a server sends, and a client must not.
_OF_SERVERS = frozenset({PacketType.CONNACK, PacketType.SUBACK, PacketType.UNSUBACK, PacketType.PINGRESP})

_PONG = b"\xd0\x00"
#: PUBACK without its packet id.
_PUBACK = b"\x40\x02"

#: Bytes of the largest packet before somebody has logged in: a will, a user name and a password have 64 kB at most.
_MAX_CONNECT = 400_000

#: Largest number of messages under way, where a client names none.
_RECEIVE_MAXIMUM = 65_535


class ConnectionMachine:
    """The broker's side of a connection.

    Attributes:
        state: see there.
        version: of the client; at first the newest one.
        connect: what the client has begun with; None before.
        will: what is published at the end; None for nothing.
        session_expiry: seconds for which the client's session is kept after the end, as it has asked for.
        keep_alive: seconds after which a client that sends nothing is dropped, and a half more; 0 for never.
        send_quota: messages of QoS 1 and 2 that may be under way to the client.
        packets_in, packets_out: how many there were.
    """

    def __init__(self, options: MqttOptions) -> None:
        """Begin with a client of which nothing is known.

        Args:
            options: see there.
        """
        self.state = _S.NEW
        self.connect: Connect | None = None
        self.will: Will | None = None
        self.session_expiry = 0
        self.keep_alive = 0
        self.send_quota = _RECEIVE_MAXIMUM
        self.packets_in = self.packets_out = 0
        self._options = options
        self._reader = PacketReader(min(options.max_packet, _MAX_CONNECT))
        #: Messages of QoS 1 and 2 that were received, and whose exchange has not ended.
        self._incoming: set[int] = set()
        self._aliases: dict[int, str] = {}
        self._own_aliases: dict[bytes, int] = {}
        self._max_own_aliases = 0
        self._max_packet = MAX_LENGTH + 5
        self._explains = True

    @property
    def version(self) -> Version:
        """See the class."""
        return self._reader.version

    # What comes

    def feed(self, data: bytes | memoryview) -> None:
        """Take bytes from the client."""
        self._reader.feed(data)

    def next_packet(self) -> Packet | None:
        """The next packet of the client that is allowed; None until there is one.

        While the client is being logged in, there is none. Publications have their topic, also where the client sent an
        alias.

        Raises:
            MqttError: the client violates the protocol; `close` has its answer.
        """
        if self.state is _S.LOGGING_IN or self.state is _S.CLOSED:
            return None
        packet = self._reader.next_packet()
        if packet is None:
            return None
        self.packets_in += 1
        if type(packet) is Publish:
            if self.state is not _S.CONNECTED:
                self._follow(_T.PACKET)
            return self._on_publish(packet)
        if type(packet) is MessageAnswer:
            if self.state is not _S.CONNECTED:
                self._follow(_T.PACKET)
            if packet.type is PacketType.PUBREL:
                self._incoming.discard(packet.packet_id)  # its end; what was not known does not count either
            return packet
        kind = packet.type
        if kind in _OF_SERVERS:
            raise protocol_error(f"a client must not send {kind.name}")
        match packet:
            case Connect():
                self._on_connect(packet)
            case Auth():
                self._on_auth(packet)
            case Disconnect():
                self._on_disconnect(packet)
            case _:
                self._follow(_T.PACKET)
        return packet

    def _follow(self, trigger: MqttTrigger) -> None:
        self.state = MQTT_TABLE.next(self.state, trigger)

    def _on_connect(self, packet: Connect) -> None:
        properties = packet.properties
        method = properties.get(PacketProperty.AUTHENTICATION_METHOD)
        if method is None and PacketProperty.AUTHENTICATION_DATA in properties:
            raise protocol_error("authentication data without a method")
        self._follow(_T.CONNECT if method is None else _T.CONNECT_WITH_METHOD)
        self.connect = packet
        self.will = packet.will
        if packet.version is Version.V3:
            self.session_expiry = 0 if packet.clean else self._options.max_session_expiry
        else:
            self.session_expiry = min(
                properties.get(PacketProperty.SESSION_EXPIRY, 0), self._options.max_session_expiry
            )
        self.keep_alive = packet.keep_alive
        most = self._options.max_keep_alive
        if most is not None and packet.version is Version.V5 and not 0 < packet.keep_alive <= most:
            self.keep_alive = most
        self.send_quota = properties.get(PacketProperty.RECEIVE_MAXIMUM, _RECEIVE_MAXIMUM)
        self._max_own_aliases = min(properties.get(PacketProperty.TOPIC_ALIAS_MAXIMUM, 0), self._options.topic_aliases)
        self._max_packet = properties.get(PacketProperty.MAXIMUM_PACKET_SIZE, self._max_packet)
        self._explains = bool(properties.get(PacketProperty.REQUEST_PROBLEM_INFORMATION, 1))

    def _on_auth(self, packet: Auth) -> None:
        again = packet.code == ReasonCode.RE_AUTHENTICATE
        if packet.code == ReasonCode.SUCCESS:
            raise protocol_error("a client must not say that it is authenticated")
        assert self.connect is not None or self.state is _S.NEW
        self._follow(_T.RENEW if again else _T.AUTH)
        assert self.connect is not None
        method = self.connect.properties.get(PacketProperty.AUTHENTICATION_METHOD)
        if method is None or packet.properties.get(PacketProperty.AUTHENTICATION_METHOD) != method:
            raise protocol_error("AUTH with another method than that of CONNECT")

    def _on_disconnect(self, packet: Disconnect) -> None:
        expiry = packet.properties.get(PacketProperty.SESSION_EXPIRY)
        if expiry is not None:
            if expiry and not self.session_expiry:
                raise protocol_error("a session that ends with its connection is to be kept")
            self.session_expiry = min(expiry, self._options.max_session_expiry)
        self._follow(_T.DISCONNECT)
        if packet.code == ReasonCode.SUCCESS:
            self.will = None

    def _on_publish(self, packet: Publish) -> Publish:
        if packet.packet_id is not None:
            self._incoming.add(packet.packet_id)
            if len(self._incoming) > self._options.receive_maximum and self.version is Version.V5:
                raise MqttError(
                    ReasonCode.RECEIVE_MAXIMUM_EXCEEDED,
                    f"more than {self._options.receive_maximum} messages are not acknowledged",
                )
        properties = packet.properties
        if not properties:
            if not packet.topic:
                raise protocol_error("PUBLISH has neither a topic nor an alias")
            return packet
        if PacketProperty.SUBSCRIPTION_ID in properties:
            raise protocol_error("a client must not send a subscription identifier in PUBLISH")
        alias = properties.get(PacketProperty.TOPIC_ALIAS)
        if alias is not None:
            if alias > self._options.topic_aliases:
                raise MqttError(ReasonCode.TOPIC_ALIAS_INVALID, f"the largest alias is {self._options.topic_aliases}")
            if packet.topic:
                self._aliases[alias] = packet.topic
            else:
                if alias not in self._aliases:
                    raise protocol_error(f"the topic alias {alias} stands for nothing")
                packet.topic = self._aliases[alias]
        elif not packet.topic:
            raise protocol_error("PUBLISH has neither a topic nor an alias")
        return packet

    # What goes

    def accept(self, *, session_present: bool, properties: Mapping[PacketProperty, Any]) -> bytes:
        """The client is who it says, and is connected; no bytes, and nothing has changed, if it cannot take so many.

        Args:
            session_present: its session was there.
            properties: of MQTT 5 that the machine does not know itself: an assigned client id, authentication data.
        """
        connect = self.connect
        assert connect is not None
        data = self._encode(self._connack(connect, session_present, properties))
        if data:
            self._follow(_T.ACCEPT)
            self._reader.max_size = self._options.max_packet
        return data

    def _connack(self, connect: Connect, session_present: bool, properties: Mapping[PacketProperty, Any]) -> ConnAck:
        if self.version is Version.V3:
            return ConnAck(session_present)
        options = self._options
        own: dict[PacketProperty, Any] = {
            PacketProperty.RECEIVE_MAXIMUM: options.receive_maximum,
            PacketProperty.MAXIMUM_PACKET_SIZE: options.max_packet,
            PacketProperty.TOPIC_ALIAS_MAXIMUM: options.topic_aliases,
        }
        if self.session_expiry != connect.properties.get(PacketProperty.SESSION_EXPIRY, 0):
            own[PacketProperty.SESSION_EXPIRY] = self.session_expiry
        if self.keep_alive != connect.keep_alive:
            own[PacketProperty.SERVER_KEEP_ALIVE] = self.keep_alive
        if (method := connect.properties.get(PacketProperty.AUTHENTICATION_METHOD)) is not None:
            own[PacketProperty.AUTHENTICATION_METHOD] = method
        return ConnAck(session_present, properties={**own, **properties})

    def challenge(self, data: bytes | None) -> bytes:
        """The client is to answer this to go on with its authentication."""
        return self._encode(Auth(ReasonCode.CONTINUE_AUTHENTICATION, self._authentication(data)))

    def confirm(self, data: bytes | None) -> bytes:
        """The client has authenticated itself again."""
        self._follow(_T.ACCEPT)
        return self._encode(Auth(ReasonCode.SUCCESS, self._authentication(data)))

    def _authentication(self, data: bytes | None) -> Properties:
        assert self.connect is not None
        found: dict[PacketProperty, Any] = {
            PacketProperty.AUTHENTICATION_METHOD: self.connect.properties[PacketProperty.AUTHENTICATION_METHOD]
        }
        if data is not None:
            found[PacketProperty.AUTHENTICATION_DATA] = data
        return found

    def close(self, code: ReasonCode, reason: str) -> bytes:
        """End the connection; the bytes are the last ones, and may be none.

        Args:
            code, reason: for the client, as far as its version can say it.
        """
        before = self.state
        self._follow(_T.CLOSE)
        if before in _NOT_CONNECTED and code in _OF_DISCONNECT:
            code = ReasonCode.SERVER_UNAVAILABLE
        if before is _S.CLOSED:
            return b""
        if before in _NOT_CONNECTED:
            if self.connect is None and code is not ReasonCode.UNSUPPORTED_VERSION:
                return b""  # nobody knows whether it is a client of MQTT
            if self.version is Version.V3 or self.connect is None:
                # Old clients understand this answer, newer ones than ours as well.
                number = _RETURN_CODES.get(code)
                return b"" if number is None else self._encode_old(number)
            if code not in _OF_CONNACK:
                code = ReasonCode.UNSPECIFIED_ERROR
            return self._encode(ConnAck(code=code, properties=_explanation(reason)))
        if self.version is Version.V3:
            return b""
        if code not in CODES[PacketType.DISCONNECT]:
            code = ReasonCode.UNSPECIFIED_ERROR
        return self._encode(Disconnect(code, _explanation(reason)))

    def _encode_old(self, number: int) -> bytes:
        self.packets_out += 1
        return encode_packet(ConnAck(code=number), Version.V3)

    def acknowledge(
        self, kind: PacketType, packet_id: int, code: ReasonCode = ReasonCode.SUCCESS, reason: str = ""
    ) -> bytes:
        """PUBACK, PUBREC, PUBREL or PUBCOMP.

        Args:
            kind, packet_id, code: of the packet; 3.1.1 has no code.
            reason: for people; empty for none.
        """
        self.packets_out += 1
        if kind is PacketType.PUBACK and not code:
            self._incoming.discard(packet_id)
            return _PUBACK + packet_id.to_bytes(2)
        if kind is PacketType.PUBACK or (kind is PacketType.PUBREC and code.is_error):
            self._incoming.discard(packet_id)
        properties = _explanation(reason) if reason and self._explains else NO_PROPERTIES
        data = encode_acknowledgement(MessageAnswer(kind, packet_id, code, properties), self.version)
        if properties and len(data) > self._max_packet:
            data = encode_acknowledgement(MessageAnswer(kind, packet_id, code), self.version)
        return data

    def pong(self) -> bytes:
        """The answer to PINGREQ."""
        self.packets_out += 1
        return _PONG

    def answer(self, packet: Subscribe | Unsubscribe, codes: list[ReasonCode], reason: str = "") -> bytes:
        """The answer to SUBSCRIBE or UNSUBSCRIBE; no bytes if that is larger than the client allows.

        Args:
            packet: the request.
            codes: for each filter.
            reason: as of `acknowledge`.
        """
        properties = _explanation(reason) if reason and self._explains else NO_PROPERTIES
        if isinstance(packet, Unsubscribe):
            return self._encode(UnsubAck(packet.packet_id, codes, properties))
        if self.version is Version.V3:
            codes = [ReasonCode.UNSPECIFIED_ERROR if code.is_error else code for code in codes]
        return self._encode(SubAck(packet.packet_id, codes, properties))

    def encode_publication(
        self,
        topic: bytes,
        payload: bytes,
        qos: int,
        packet_id: int | None,
        *,
        retain: bool = False,
        duplicate: bool = False,
        properties: bytes = b"",
    ) -> bytes:
        """PUBLISH; no bytes if that is larger than the client allows.

        Args:
            topic: encoded.
            payload, qos, packet_id, retain, duplicate: as of `Publish`.
            properties: encoded, without their length; ignored in 3.1.1.
        """
        encoded, named, alias = b"", topic, 0
        if self.version is Version.V5:
            if self._max_own_aliases:
                alias = self._own_aliases.get(topic, 0)
                if alias:
                    named = b""
                elif len(self._own_aliases) < self._max_own_aliases:
                    alias = len(self._own_aliases) + 1
                if alias:
                    properties += b"\x23" + alias.to_bytes(2)
            encoded = encode_variable(len(properties)) + properties if properties else b"\0"
        data = encode_publish(named, payload, qos, packet_id, retain=retain, duplicate=duplicate, properties=encoded)
        if len(data) > self._max_packet:
            return b""
        if alias and named:
            self._own_aliases[topic] = alias
        self.packets_out += 1
        return data

    def _encode(self, packet: ConnAck | Auth | Disconnect | SubAck | UnsubAck) -> bytes:
        data = encode_packet(packet, self.version)
        if len(data) > self._max_packet and packet.properties:
            # Explanations are left out where they don't fit (5.0, 3.1.2.11.4).
            kept: Properties = {
                kind: value for kind, value in packet.properties.items() if kind is not PacketProperty.REASON_STRING
            }
            data = encode_packet(_with_properties(packet, kept), self.version)
        if len(data) > self._max_packet:
            return b""
        self.packets_out += 1
        return data


def _with_properties(packet: Any, properties: Properties) -> Packet:
    changed: Packet = attrs.evolve(packet, properties=properties)
    return changed


def _explanation(reason: str) -> Properties:
    return {PacketProperty.REASON_STRING: reason.replace("\0", "")[:1000]} if reason else NO_PROPERTIES
