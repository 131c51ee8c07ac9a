"""A connection of MQTT, as the broker sees it, without I/O: bytes in, packets that are allowed out, and the reverse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

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
from qmf.broker.protocols.mqtt.codec.runs import AcknowledgementRun, PublicationForm, PublicationRun, compiled_runs
from qmf.broker.protocols.mqtt.codec.values import (
    MAX_LENGTH,
    MqttError,
    PacketType,
    ReasonCode,
    Version,
    protocol_error,
)
from qmf.broker.protocols.mqtt.codec.writing import encode_acknowledgement, encode_packet, encode_publish
from qmf.broker.protocols.mqtt.connection_state import MQTT_TABLE, MqttState, MqttTrigger
from qmf.broker.protocols.mqtt.options import MqttOptions
from qmf.broker.protocols.mqtt.reasons import OF_CONNACK, OF_DISCONNECT, RETURN_CODES

_S, _T = MqttState, MqttTrigger

#: Read for each packet: a member of an enumeration takes several times as long to find.
_CONNECTED, _LOGGING_IN, _CLOSED, _V5, _PUBACK_TYPE = (
    _S.CONNECTED,
    _S.LOGGING_IN,
    _S.CLOSED,
    Version.V5,
    PacketType.PUBACK,
)
#: Publications of a run at most, and bytes after which one that is written ends.
_MOST_IN_RUN, _RUN_BYTES = 256, 64 * 1024

#: States in which CONNACK is the last packet.
_NOT_CONNECTED = frozenset({_S.NEW, _S.LOGGING_IN, _S.AUTHENTICATING})

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
        version: of the client; at first the newest one.
        connect: what the client has begun with; None before.
        will: what is published at the end; None for nothing.
        session_expiry: seconds for which the client's session is kept after the end, as it has asked for.
        keep_alive: seconds after which a client that sends nothing is dropped, and a half more; 0 for never.
        send_quota: messages of QoS 1 and 2 that may be under way to the client.
        packets_in, packets_out: how many there were.
    """

    def __init__(self, options: MqttOptions) -> None:
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

    def expect_run(self, packet: Publish, prefix: bytes) -> None:
        """See `PacketReader.expect_run`."""
        self._reader.expect_run(packet, prefix)

    def next_run(self) -> PublicationRun | AcknowledgementRun | None:
        """Packets of the client that come next, if they are a run; None for all else."""
        if self.state is not _CONNECTED:
            return None
        most = _MOST_IN_RUN
        if self._reader.version is _V5:
            most = min(most, self._options.receive_maximum - len(self._incoming))
        found = self._reader.next_run(most)
        if type(found) is PublicationRun:
            self.packets_in += len(found.messages)
            self._incoming.update(found.packet_ids)
        elif found is not None:
            self.packets_in += len(found.packet_ids)
        return found

    def next_packet(self) -> Packet | None:
        """The next packet of the client that is allowed; None until there is one.

        While the client is being logged in, there is none. Publications have their topic, also where the client sent an
        alias.

        Raises:
            MqttError: the client violates the protocol; `close` has its answer.
        """
        if self.state is _LOGGING_IN or self.state is _CLOSED:
            return None
        packet = self._reader.next_packet()
        if packet is None:
            return None
        self.packets_in += 1
        if type(packet) is Publish:
            if self.state is not _CONNECTED:
                self._follow(_T.PACKET)
            return self._on_publish(packet)
        if type(packet) is MessageAnswer:
            if self.state is not _CONNECTED:
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
        if before in _NOT_CONNECTED and code in OF_DISCONNECT:
            code = ReasonCode.SERVER_UNAVAILABLE
        if before is _S.CLOSED:
            return b""
        if before in _NOT_CONNECTED:
            if self.connect is None and code is not ReasonCode.UNSUPPORTED_VERSION:
                return b""  # nobody knows whether it is a client of MQTT
            if self.version is Version.V3 or self.connect is None:
                # Old clients understand this answer, newer ones than ours as well.
                number = RETURN_CODES.get(code)
                return b"" if number is None else self._encode_old(number)
            if code not in OF_CONNACK:
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
        if kind is _PUBACK_TYPE and not code:
            self._incoming.discard(packet_id)
            return _PUBACK + packet_id.to_bytes(2)
        if kind is PacketType.PUBACK or (kind is PacketType.PUBREC and code.is_error):
            self._incoming.discard(packet_id)
        properties = _explanation(reason) if reason and self._explains else NO_PROPERTIES
        data = encode_acknowledgement(MessageAnswer(kind, packet_id, code, properties), self.version)
        if properties and len(data) > self._max_packet:
            data = encode_acknowledgement(MessageAnswer(kind, packet_id, code), self.version)
        return data

    def acknowledge_run(self, packet_ids: list[int]) -> bytes:
        """PUBACK for the publications of a run, all of which were taken."""
        self.packets_out += len(packet_ids)
        self._incoming.difference_update(packet_ids)
        runs = compiled_runs()
        assert runs is not None  # which has read them
        return runs.write_acknowledgements(packet_ids)

    def pong(self) -> bytes:
        """The answer to PINGREQ."""
        self.packets_out += 1
        return _PONG

    def answer(self, packet: Subscribe | Unsubscribe, codes: list[ReasonCode], reason: str = "") -> bytes:
        """The answer to SUBSCRIBE or UNSUBSCRIBE; no bytes if that is larger than the client allows.

        Args:
            codes: for each filter.
            reason: as of `acknowledge`.
        """
        properties = _explanation(reason) if reason and self._explains else NO_PROPERTIES
        if isinstance(packet, Unsubscribe):
            return self._encode(UnsubAck(packet.packet_id, codes, properties))
        if self.version is Version.V3:
            codes = [ReasonCode.UNSPECIFIED_ERROR if code.is_error else code for code in codes]
        return self._encode(SubAck(packet.packet_id, codes, properties))

    def publication_form(self, topic: bytes, qos: int, *, retain: bool, properties: bytes) -> PublicationForm | None:
        """What PUBLISH of a run have in common; None if the next one must be encoded by itself.

        Args:
            topic, qos, retain, properties: as of `encode_publication`.
        """
        first = 0x30 | qos << 1 | retain
        named = len(topic).to_bytes(2) + topic
        if self._reader.version is not _V5:
            return PublicationForm(first, named, b"")
        if self._max_own_aliases:
            alias = self._own_aliases.get(topic, 0)
            if alias:
                named = b"\0\0"
                properties += b"\x23" + alias.to_bytes(2)
            elif len(self._own_aliases) < self._max_own_aliases:
                return None
        return PublicationForm(first, named, encode_variable(len(properties)) + properties)

    def encode_run(
        self, entries: list[Any], start: int, head: bytes, form: PublicationForm | None, packet_ids: list[int] | None
    ) -> tuple[bytes, int]:
        """PUBLISH for the messages of some entries, as far as they are alike and not too large; see `runs.c`.

        Args:
            entries, start: from which one on.
            head: what their stored forms begin with.
            form: of the packets; None if the next one must be encoded by itself.
            packet_ids: of them; None with QoS 0.

        Returns:
            the packets, and their number.
        """
        runs = compiled_runs()
        if runs is None or form is None:
            return b"", 0
        data, count = runs.write_publications(
            entries, start, head, form.first, form.topic, form.properties, packet_ids, self._max_packet, _RUN_BYTES
        )
        self.packets_out += count
        return data, count

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
        if self._reader.version is _V5:
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
