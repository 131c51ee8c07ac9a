"""From packets to bytes. What a version does not have is left out."""

from __future__ import annotations

from qmf.broker.protocols.mqtt.codec.fields import encode_binary, encode_text, encode_variable
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
    UnsubAck,
    Unsubscribe,
)
from qmf.broker.protocols.mqtt.codec.properties import Properties, encode_properties
from qmf.broker.protocols.mqtt.codec.values import PacketType, ReasonCode, Version

#: PUBACK and the like in its short form, without the packet id.
_SHORT = {
    PacketType.PUBACK: b"\x40\x02",
    PacketType.PUBREC: b"\x50\x02",
    PacketType.PUBREL: b"\x62\x02",
    PacketType.PUBCOMP: b"\x70\x02",
}


def encode_packet(packet: Packet, version: Version) -> bytes:
    """The bytes of a packet.

    Raises:
        ValueError: a field is too long.
    """
    match packet:
        case Publish():
            return encode_publish(
                packet.topic.encode(),
                packet.payload,
                packet.qos,
                packet.packet_id,
                retain=packet.retain,
                duplicate=packet.duplicate,
                properties=encode_properties(packet.properties) if version is Version.V5 else b"",
            )
        case MessageAnswer():
            return encode_acknowledgement(packet, version)
        case Connect():
            return _frame(0x10, _connect(packet))
        case ConnAck():
            flags = bytes((packet.session_present, packet.code))
            return _frame(0x20, flags + _properties(packet.properties, version))
        case Subscribe():
            options = b"".join(
                encode_text(item.topic_filter)
                + bytes((item.qos | item.no_local << 2 | item.retain_as_published << 3 | item.retain_handling << 4,))
                for item in packet.subscriptions
            )
            return _frame(0x82, packet.packet_id.to_bytes(2) + _properties(packet.properties, version) + options)
        case Unsubscribe():
            filters = b"".join(map(encode_text, packet.topic_filters))
            return _frame(0xA2, packet.packet_id.to_bytes(2) + _properties(packet.properties, version) + filters)
        case SubAck() | UnsubAck():
            head = 0x90 if isinstance(packet, SubAck) else 0xB0
            codes = bytes(packet.codes) if version is Version.V5 or isinstance(packet, SubAck) else b""
            return _frame(head, packet.packet_id.to_bytes(2) + _properties(packet.properties, version) + codes)
        case Ping():
            return bytes((packet.type << 4, 0))
        case Disconnect() | Auth():
            return _frame(packet.type << 4, _ending(packet.code, packet.properties, version))


def encode_publish(
    topic: bytes,
    payload: bytes,
    qos: int,
    packet_id: int | None,
    *,
    retain: bool = False,
    duplicate: bool = False,
    properties: bytes = b"",
) -> bytes:
    """The bytes of PUBLISH, as fast as possible.

    Args:
        topic: encoded, at most 65,535 bytes.
        payload, qos, packet_id, retain, duplicate: as of `Publish`.
        properties: encoded, with their length; empty in MQTT 3.1.1.

    Raises:
        ValueError: the packet is too long.
    """
    first = 0x30 | qos << 1 | retain | duplicate << 3
    size = len(topic)
    if qos and packet_id is not None:
        length = 4 + size + len(properties) + len(payload)
        number = packet_id.to_bytes(2)
    else:
        length = 2 + size + len(properties) + len(payload)
        number = b""
    if length < 0x80:
        head = bytes((first, length, size >> 8, size & 0xFF))
    else:
        head = bytes((first,)) + encode_variable(length) + size.to_bytes(2)
    return b"".join((head, topic, number, properties, payload))


def encode_acknowledgement(packet: MessageAnswer, version: Version) -> bytes:
    """The bytes of PUBACK, PUBREC, PUBREL or PUBCOMP."""
    short = _SHORT[packet.type]
    if version is Version.V3 or (not packet.code and not packet.properties):
        return short + packet.packet_id.to_bytes(2)
    content = packet.packet_id.to_bytes(2) + _ending(packet.code, packet.properties, version)
    return _frame(short[0], content)


def _ending(code: int, properties: Properties, version: Version) -> bytes:
    """Reason code and properties at the end of a packet, as far as they are needed."""
    if version is Version.V3 or (code == ReasonCode.SUCCESS and not properties):
        return b""
    return bytes((code,)) + (encode_properties(properties) if properties else b"")


def _frame(first: int, content: bytes) -> bytes:
    return bytes((first,)) + encode_variable(len(content)) + content


def _properties(properties: Properties, version: Version) -> bytes:
    return encode_properties(properties) if version is Version.V5 else b""


def _connect(packet: Connect) -> bytes:
    will = packet.will
    flags = packet.clean << 1 | (packet.password is not None) << 6 | (packet.username is not None) << 7
    parts = [encode_text(packet.client_id)]
    if will is not None:
        flags |= 4 | will.qos << 3 | will.retain << 5
        parts += [_properties(will.properties, packet.version), encode_text(will.topic), encode_binary(will.payload)]
    if packet.username is not None:
        parts.append(encode_text(packet.username))
    if packet.password is not None:
        parts.append(encode_binary(packet.password))
    head = b"\0\4MQTT" + bytes((packet.version, flags)) + packet.keep_alive.to_bytes(2)
    return head + _properties(packet.properties, packet.version) + b"".join(parts)
