"""From bytes to packets: framing, and the strict checks of both versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qmf.broker.protocols.mqtt.codec.fields import PacketFields
from qmf.broker.protocols.mqtt.codec.packets import (
    Auth,
    ConnAck,
    Connect,
    Disconnect,
    MessageAnswer,
    Packet,
    Ping,
    Publish,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    UnsubAck,
    Unsubscribe,
    Will,
)
from qmf.broker.protocols.mqtt.codec.properties import NO_PROPERTIES, WILL, Properties, read_properties
from qmf.broker.protocols.mqtt.codec.runs import AcknowledgementRun, PublicationForm, PublicationRun, compiled_runs
from qmf.broker.protocols.mqtt.codec.topics import filter_error, topic_error
from qmf.broker.protocols.mqtt.codec.values import (
    MAX_LENGTH,
    MqttError,
    PacketType,
    ReasonCode,
    Version,
    malformed_packet,
    protocol_error,
)

_R = ReasonCode
#: The reason codes of types of packets, if they are not those of another one.
_OF_PACKETS: Mapping[PacketType, frozenset[int]] = {
    PacketType.PUBACK: frozenset(
        {
            _R.SUCCESS,
            _R.NO_MATCHING_SUBSCRIBERS,
            _R.UNSPECIFIED_ERROR,
            _R.IMPLEMENTATION_ERROR,
            _R.NOT_AUTHORIZED,
            _R.TOPIC_NAME_INVALID,
            _R.PACKET_ID_IN_USE,
            _R.QUOTA_EXCEEDED,
            _R.PAYLOAD_FORMAT_INVALID,
        }
    ),
    PacketType.PUBREL: frozenset({_R.SUCCESS, _R.PACKET_ID_NOT_FOUND}),
    PacketType.DISCONNECT: frozenset(
        {_R.SUCCESS, _R.DISCONNECT_WITH_WILL}
        | {code for code in _R if _R.UNSPECIFIED_ERROR <= code <= _R.WILDCARDS_NOT_SUPPORTED}
    )
    - {
        _R.UNSUPPORTED_VERSION,
        _R.CLIENT_ID_NOT_VALID,
        _R.BAD_USER_OR_PASSWORD,
        _R.SERVER_UNAVAILABLE,
        _R.BANNED,
        _R.BAD_AUTHENTICATION_METHOD,
        _R.PACKET_ID_IN_USE,
        _R.PACKET_ID_NOT_FOUND,
    },
    PacketType.AUTH: frozenset({_R.SUCCESS, _R.CONTINUE_AUTHENTICATION, _R.RE_AUTHENTICATE}),
}
#: The reason codes of each type of packet that clients and servers send.
CODES: Mapping[PacketType, frozenset[int]] = {
    **_OF_PACKETS,
    PacketType.PUBREC: _OF_PACKETS[PacketType.PUBACK],
    PacketType.PUBCOMP: _OF_PACKETS[PacketType.PUBREL],
}


class PacketReader:
    """Makes packets from the bytes of a connection.

    Attributes:
        version: of the connection; set by the first CONNECT, and by whoever reads what a server sends.
        max_size: of a packet, in bytes.
    """

    def __init__(self, max_size: int = MAX_LENGTH + 5, version: Version = Version.V5) -> None:
        """Begin with the first byte of a connection; arguments as the attributes."""
        self.version = version
        self.max_size = max_size
        self._buffer = b""
        self._position = 0
        #: Bytes that came and are not in the buffer yet.
        self._parts: list[bytes] = []
        #: Bytes that are not read yet, and how many there must be for the next step.
        self._size = 0
        self._needed = 2
        self._runs = compiled_runs()
        #: What a run of publications has in common, and what its stored messages begin with; None to read one by one.
        self._form: PublicationForm | None = None
        self._prefix = b""
        #: Where the last publication lies in the buffer.
        self._last = (0, 0)

    @property
    def waiting(self) -> int:
        """Bytes that are not read yet."""
        return self._size

    def feed(self, data: bytes | memoryview) -> None:
        """Take bytes from the connection."""
        self._parts.append(bytes(data))
        self._size += len(data)

    def expect_run(self, packet: Publish, prefix: bytes) -> None:
        """Publications that follow, and are like one that was read last, are to be read as runs.

        Args:
            prefix: what the stored forms of its like begin with.
        """
        start, end = self._last
        content = self._buffer[start:end]
        if self._runs is None or not content:
            return
        place = 1
        while content[place] > 0x7F:
            place += 1
        topic = place + 1
        behind = topic + 2 + int.from_bytes(content[topic : topic + 2])
        properties = content[behind + (2 if packet.qos else 0) : len(content) - len(packet.payload)]
        self._form = PublicationForm(content[0], content[topic:behind], properties)
        self._prefix = prefix

    def next_run(self, most: int) -> PublicationRun | AcknowledgementRun | None:
        """Packets that come next, if they are a run; None if they have to be read one by one.

        Args:
            most: publications at most.
        """
        runs = self._runs
        if runs is None or self._size < self._needed:
            return None
        if self._parts:
            self._join()
        buffer, position, form = self._buffer, self._position, self._form
        found: PublicationRun | AcknowledgementRun
        if form is not None and buffer[position] == form.first:
            messages, packet_ids, end = runs.read_publications(
                buffer, position, form.first, form.topic, form.properties, self._prefix, most, self.max_size
            )
            if not messages:
                return None
            found = PublicationRun(messages, packet_ids)
        elif buffer[position] == _PUBACK:
            packet_ids, end = runs.read_acknowledgements(buffer, position)
            if not packet_ids:
                return None
            found = AcknowledgementRun(packet_ids)
        else:
            return None
        self._size -= end - position
        self._position = end
        self._needed = 2
        return found

    def next_packet(self) -> Packet | None:
        """The next packet; None until there are more bytes.

        Raises:
            MqttError: the bytes are no packet, or one that is not allowed. Nothing may be read any more.
        """
        if self._size < self._needed:
            return None
        if self._parts:
            self._join()
        buffer, position = self._buffer, self._position
        start = position + 2
        length = buffer[position + 1]
        if length > 0x7F:
            found = self._length(start, length & 0x7F)
            if found is None:
                return None
            start, length = found
        end = start + length
        if end - position > self.max_size:
            raise self._too_large(end - position)
        first = buffer[position]
        if end - position > self._size:
            _check_flags(first)
            self._needed = end - position
            return None
        self._size -= end - position
        self._needed = 2
        self._position = end
        if first >> 4 == 3:
            self._last, self._form = (position, end), None
            return _publish(first, buffer[start:end], self.version)
        if length == 2 and (answer := _SHORT_ANSWERS.get(first)) is not None:
            packet_id = buffer[start] << 8 | buffer[start + 1]
            if packet_id:
                return MessageAnswer(answer, packet_id)
        return self._packet(first, buffer[start:end])

    def _join(self) -> None:
        """Add what came to the buffer, without what was read."""
        rest = self._buffer[self._position :]
        self._buffer = b"".join((rest, *self._parts)) if rest or len(self._parts) > 1 else self._parts[0]
        self._position = 0
        self._parts.clear()

    def _length(self, start: int, length: int) -> tuple[int, int] | None:
        """Where the content of a packet starts, and its length, of which a byte was read; None if it is incomplete."""
        buffer, shift = self._buffer, 7
        while True:
            if start >= len(buffer):
                self._needed = self._size + 1
                if length > self.max_size:
                    raise self._too_large(length)
                return None
            byte = buffer[start]
            start += 1
            length |= (byte & 0x7F) << shift
            if byte < 0x80:
                if not byte:
                    raise malformed_packet("a length has more bytes than it needs")
                return start, length
            shift += 7
            if shift > 21:
                raise malformed_packet("a length has more than four bytes")

    def _too_large(self, size: int) -> MqttError:
        return MqttError(ReasonCode.PACKET_TOO_LARGE, f"a packet of {size} bytes is larger than {self.max_size} bytes")

    def _packet(self, first: int, content: bytes) -> Packet:
        kind = _check_flags(first)
        reader = PacketFields(content)
        if kind is PacketType.CONNECT:
            packet = _connect(reader)
            self.version = packet.version
            return packet
        if kind in _ACKNOWLEDGEMENTS:
            return _acknowledgement(kind, reader, self.version)
        if kind in (PacketType.PINGREQ, PacketType.PINGRESP):
            reader.end()
            return Ping(kind)
        if kind is PacketType.AUTH and self.version is Version.V3:
            raise malformed_packet("MQTT 3.1.1 has no AUTH")
        packet_of = _READERS[kind]
        return packet_of(reader, self.version)


_ACKNOWLEDGEMENTS = frozenset({PacketType.PUBACK, PacketType.PUBREC, PacketType.PUBREL, PacketType.PUBCOMP})
#: The first byte of PUBACK.
_PUBACK = 0x40
#: Answers to messages by their first byte, which have two bytes nearly always.
_SHORT_ANSWERS = {
    0x40: PacketType.PUBACK,
    0x50: PacketType.PUBREC,
    0x62: PacketType.PUBREL,
    0x70: PacketType.PUBCOMP,
}
#: The flags in the first byte.
_FLAGS = {PacketType.PUBREL: 2, PacketType.SUBSCRIBE: 2, PacketType.UNSUBSCRIBE: 2}


def _check_flags(first: int) -> PacketType:
    number = first >> 4
    if not number:
        raise malformed_packet("there is no packet of type 0")
    kind = PacketType(number)
    if kind is not PacketType.PUBLISH and first & 15 != _FLAGS.get(kind, 0):
        raise malformed_packet(f"{kind.name} with the flags {first & 15}")
    return kind


def _publish(first: int, content: bytes, version: Version) -> Publish:
    """PUBLISH, as fast as possible: a connection has hardly any other packets."""
    qos = first >> 1 & 3
    if qos == 3:
        raise malformed_packet("PUBLISH with QoS 3")
    if first & 8 and not qos:
        raise malformed_packet("PUBLISH with QoS 0 is marked as duplicate")
    size = len(content)
    end = 2 + (content[0] << 8 | content[1]) if size >= 2 else 2
    position = end + 2 if qos else end
    if position > size:
        raise malformed_packet("PUBLISH ends within a field")
    try:
        topic = content[2:end].decode()
    except UnicodeDecodeError as error:
        raise malformed_packet(f"a topic is not UTF-8: {error.reason}") from error
    packet_id = None
    if qos:
        packet_id = content[end] << 8 | content[end + 1]
        if not packet_id:
            raise malformed_packet("PUBLISH with the packet id 0")
    properties = NO_PROPERTIES
    if version == 5:
        if position < size and not content[position]:
            position += 1
        else:
            reader = PacketFields(content, position)
            properties = read_properties(reader, PacketType.PUBLISH)
            position = reader.position
    if topic or version == 4:
        _check_topic(topic)
    return Publish(topic, content[position:], qos, bool(first & 1), bool(first & 8), packet_id, properties)


def _check_topic(topic: str) -> None:
    if "+" in topic or "#" in topic or "\0" in topic or not topic or topic.count("/") > 100:
        if "\0" in topic:
            raise malformed_packet("a topic contains U+0000")
        if error := topic_error(topic):
            raise MqttError(ReasonCode.TOPIC_NAME_INVALID, error)


def _connect_version(reader: PacketFields) -> Version:
    name, level = reader.binary(), reader.byte()
    if name == b"MQTT" and level in (Version.V3, Version.V5):
        return Version(level)
    if name in (b"MQTT", b"MQIsdp"):
        raise MqttError(ReasonCode.UNSUPPORTED_VERSION, f"version {level} of {name.decode()} is not supported")
    raise malformed_packet("CONNECT does not name MQTT")


def _connect_flags(reader: PacketFields, version: Version) -> int:
    flags = reader.byte()
    has_will, qos, retain = bool(flags & 4), flags >> 3 & 3, bool(flags & 32)
    if flags & 1:
        raise malformed_packet("CONNECT has a reserved flag")
    if qos == 3 or (not has_will and (qos or retain)):
        raise malformed_packet("the flags of the will contradict each other")
    if version is Version.V3 and flags & 64 and not flags & 128:
        raise malformed_packet("a password without a user name")
    return flags


def _connect(reader: PacketFields) -> Connect:
    version = _connect_version(reader)
    flags = _connect_flags(reader, version)
    keep_alive = reader.short()
    properties = _properties(reader, PacketType.CONNECT, version)
    client_id = reader.text()
    will = None
    if flags & 4:
        of_will = _properties(reader, WILL, version)
        topic, payload = reader.text(), reader.binary()
        if error := topic_error(topic):
            raise MqttError(ReasonCode.TOPIC_NAME_INVALID, f"the will: {error}")
        will = Will(topic, payload, flags >> 3 & 3, bool(flags & 32), of_will)
    username = reader.text() if flags & 128 else None
    password = reader.binary() if flags & 64 else None
    reader.end()
    return Connect(version, client_id, bool(flags & 2), keep_alive, will, username, password, properties)


def _properties(reader: PacketFields, packet: int, version: Version) -> Properties:
    return read_properties(reader, packet) if version is Version.V5 else NO_PROPERTIES


def _acknowledgement(kind: PacketType, reader: PacketFields, version: Version) -> MessageAnswer:
    packet_id = reader.short()
    if not packet_id:
        raise malformed_packet(f"{kind.name} with the packet id 0")
    code, properties = int(ReasonCode.SUCCESS), NO_PROPERTIES
    if version is Version.V5 and reader.left:
        code = _code(kind, reader)
        if reader.left:
            properties = read_properties(reader, kind)
    reader.end()
    return MessageAnswer(kind, packet_id, code, properties)


def _code(kind: PacketType, reader: PacketFields) -> int:
    code = reader.byte()
    if code not in CODES[kind]:
        raise protocol_error(f"{kind.name} with the reason code 0x{code:02X}")
    return code


def _packet_id(reader: PacketFields, kind: PacketType) -> int:
    packet_id = reader.short()
    if not packet_id:
        raise malformed_packet(f"{kind.name} with the packet id 0")
    return packet_id


def _connack(reader: PacketFields, version: Version) -> ConnAck:
    flags, code = reader.byte(), reader.byte()
    if flags > 1:
        raise malformed_packet("CONNACK has reserved flags")
    properties = _properties(reader, PacketType.CONNACK, version)
    reader.end()
    return ConnAck(bool(flags), code, properties)


def _subscribe(reader: PacketFields, version: Version) -> Subscribe:
    packet_id = _packet_id(reader, PacketType.SUBSCRIBE)
    properties = _properties(reader, PacketType.SUBSCRIBE, version)
    requests: list[SubscriptionRequest] = []
    while reader.left:
        topic_filter, options = reader.text(), reader.byte()
        most = 0b0011_1111 if version is Version.V5 else 0b11
        if options > most or options & 3 == 3:
            raise malformed_packet(f"the options {options} of a subscription")
        handling = options >> 4
        if handling == 3:
            raise protocol_error("the retain handling 3 of a subscription")
        requests.append(SubscriptionRequest(topic_filter, options & 3, bool(options & 4), bool(options & 8), handling))
    if not requests:
        raise protocol_error("SUBSCRIBE without a topic filter")
    for request in requests:
        if request.no_local and request.topic_filter.startswith("$share/"):
            raise protocol_error("a shared subscription with the option no local")
    return Subscribe(packet_id, tuple(requests), properties)


def _unsubscribe(reader: PacketFields, version: Version) -> Unsubscribe:
    packet_id = _packet_id(reader, PacketType.UNSUBSCRIBE)
    properties = _properties(reader, PacketType.UNSUBSCRIBE, version)
    filters: list[str] = []
    while reader.left:
        filters.append(reader.text())
    if not filters:
        raise protocol_error("UNSUBSCRIBE without a topic filter")
    for topic_filter in filters:
        if error := filter_error(topic_filter):
            raise MqttError(ReasonCode.TOPIC_FILTER_INVALID, error)
    return Unsubscribe(packet_id, tuple(filters), properties)


def _suback(reader: PacketFields, version: Version) -> SubAck:
    packet_id = _packet_id(reader, PacketType.SUBACK)
    properties = _properties(reader, PacketType.SUBACK, version)
    return SubAck(packet_id, tuple(reader.rest()), properties)


def _unsuback(reader: PacketFields, version: Version) -> UnsubAck:
    packet_id = _packet_id(reader, PacketType.UNSUBACK)
    properties = _properties(reader, PacketType.UNSUBACK, version)
    codes = reader.rest()
    if codes and version is Version.V3:
        raise malformed_packet("UNSUBACK of MQTT 3.1.1 has no reason codes")
    return UnsubAck(packet_id, tuple(codes), properties)


def _disconnect(reader: PacketFields, version: Version) -> Disconnect:
    if version is Version.V3 or not reader.left:
        reader.end()
        return Disconnect()
    code = _code(PacketType.DISCONNECT, reader)
    properties = read_properties(reader, PacketType.DISCONNECT) if reader.left else NO_PROPERTIES
    reader.end()
    return Disconnect(code, properties)


def _auth(reader: PacketFields, version: Version) -> Auth:  # noqa: ARG001 - only MQTT 5 has it
    if not reader.left:
        return Auth()
    code = _code(PacketType.AUTH, reader)
    properties = read_properties(reader, PacketType.AUTH) if reader.left else NO_PROPERTIES
    reader.end()
    return Auth(code, properties)


_READERS: Mapping[PacketType, Callable[[PacketFields, Version], Packet]] = {
    PacketType.CONNACK: _connack,
    PacketType.SUBSCRIBE: _subscribe,
    PacketType.SUBACK: _suback,
    PacketType.UNSUBSCRIBE: _unsubscribe,
    PacketType.UNSUBACK: _unsuback,
    PacketType.DISCONNECT: _disconnect,
    PacketType.AUTH: _auth,
}
