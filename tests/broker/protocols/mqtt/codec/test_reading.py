"""Bytes become packets, and nothing else does: round trips, hostile bytes, and what each version refuses."""

from __future__ import annotations

import contextlib

import pytest
from broker.protocols.mqtt.codec.packets_made import packets
from hypothesis import given
from hypothesis import strategies as st

from qmf.broker.protocols.mqtt.codec.packets import Connect, Disconnect, Packet, Publish, Subscribe, SubscriptionRequest
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty
from qmf.broker.protocols.mqtt.codec.reading import PacketReader
from qmf.broker.protocols.mqtt.codec.values import MqttError, ReasonCode, Version
from qmf.broker.protocols.mqtt.codec.writing import encode_packet

_R = ReasonCode


def read(data: bytes, version: Version = Version.V5) -> list[Packet]:
    reader = PacketReader(version=version)
    reader.feed(data)
    found = []
    while (packet := reader.next_packet()) is not None:
        found.append(packet)
    return found


@pytest.mark.slow
@given(st.lists(packets(Version.V5), max_size=3), st.integers(1, 50))
def test_packets_of_version_5_come_back_as_they_were(sent: list[Packet], size: int) -> None:
    check_round_trip(sent, size, Version.V5)


@pytest.mark.slow
@given(st.lists(packets(Version.V3), max_size=3), st.integers(1, 50))
def test_packets_of_version_3_come_back_as_they_were(sent: list[Packet], size: int) -> None:
    check_round_trip(sent, size, Version.V3)


def check_round_trip(sent: list[Packet], size: int, version: Version) -> None:
    """The packets, cut into pieces of some size."""
    data = b"".join(encode_packet(packet, version) for packet in sent)
    reader = PacketReader(version=version)
    found: list[Packet] = []
    for start in range(0, len(data), size):
        reader.feed(data[start : start + size])
        while (packet := reader.next_packet()) is not None:
            found.append(packet)
    assert found == sent
    assert reader.waiting == 0


def check_hostile(data: bytes, version: Version) -> None:
    """Bytes are packets, or `MqttError`; what is a packet is written and read as the same again."""
    reader = PacketReader(version=version)
    reader.feed(data)
    found: list[Packet] = []
    with contextlib.suppress(MqttError):
        while (packet := reader.next_packet()) is not None:
            found.append(packet)
    version = reader.version
    again = b"".join(encode_packet(packet, version) for packet in found)
    assert read(again, version) == found


@pytest.mark.slow
@given(st.binary(max_size=60), st.sampled_from(list(Version)))
def test_any_bytes_are_packets_or_an_error(data: bytes, version: Version) -> None:
    check_hostile(data, version)


@pytest.mark.slow
@given(packets(Version.V5), st.data())
def test_changed_packets_are_packets_or_an_error(packet: Packet, data: st.DataObject) -> None:
    encoded = bytearray(encode_packet(packet, Version.V5))
    for place in data.draw(st.lists(st.integers(0, len(encoded) - 1), min_size=1, max_size=3)):
        encoded[place] = data.draw(st.integers(0, 255))
    check_hostile(bytes(encoded), Version.V5)


def connect(flags: int, rest: bytes, *, name: bytes = b"\0\4MQTT", level: int = 5) -> bytes:
    content = name + bytes((level, flags)) + b"\0\0" + rest
    return bytes((0x10, len(content))) + content


@pytest.mark.parametrize(
    ("data", "code", "reason"),
    [
        (b"\x00\x00", _R.MALFORMED_PACKET, "type 0"),
        (b"\x36\x00", _R.MALFORMED_PACKET, "QoS 3"),
        (b"\x38\x03\0\1a", _R.MALFORMED_PACKET, "duplicate"),
        (b"\x32\x05\0\1a\0\0", _R.MALFORMED_PACKET, "packet id 0"),
        (b"\x30\x04\0\1+\0", _R.TOPIC_NAME_INVALID, "no wildcards"),
        (b"\x30\x04\0\1\0\0", _R.MALFORMED_PACKET, "U+0000"),
        (b"\x30\x04\0\1\xff\0", _R.MALFORMED_PACKET, "UTF-8"),
        (b"\x30\x06\0\3\xed\xa0\x80\0", _R.MALFORMED_PACKET, "UTF-8"),
        (b"\x30\x02\0\5", _R.MALFORMED_PACKET, "ends within"),
        (b"\x30\x07\0\1a\3\x23\0\0", _R.TOPIC_ALIAS_INVALID, "alias"),
        (b"\x30\x09\0\1a\5\x01\0\x01\1x", _R.PROTOCOL_ERROR, "PAYLOAD_FORMAT is repeated"),
        (b"\x30\x06\0\1a\2\x01\2", _R.PROTOCOL_ERROR, "PAYLOAD_FORMAT must not be 2"),
        (b"\x30\x06\0\1a\2\x11\2", _R.MALFORMED_PACKET, "property 17"),
        (b"\x30\x06\0\1a\2\x7f\2", _R.MALFORMED_PACKET, "property 127"),
        (b"\x30\x05\0\1a\5\1", _R.MALFORMED_PACKET, "longer than their packet"),
        (b"\x30\x07\0\1a\1\x01\0x", _R.MALFORMED_PACKET, "last property"),
        (b"\x30\x05\0\1a\x80\0", _R.MALFORMED_PACKET, "more bytes than it needs"),
        (b"\x30\x80\0", _R.MALFORMED_PACKET, "more bytes than it needs"),
        (b"\x30\x80\x80\x80\x80\x01", _R.MALFORMED_PACKET, "more than four bytes"),
        (b"\x31\xff\xff\xff\xff", _R.MALFORMED_PACKET, "more than four bytes"),
        (b"\x41\x02\0\1", _R.MALFORMED_PACKET, "PUBACK with the flags 1"),
        (b"\x60\x02\0\1", _R.MALFORMED_PACKET, "PUBREL with the flags 0"),
        (b"\x40\x02\0\0", _R.MALFORMED_PACKET, "packet id 0"),
        (b"\x40\x03\0\1\x01", _R.PROTOCOL_ERROR, "reason code 0x01"),
        (b"\x62\x03\0\1\x10", _R.PROTOCOL_ERROR, "reason code 0x10"),
        (b"\x40\x05\0\1\0\0\0", _R.MALFORMED_PACKET, "1 bytes too many"),
        (b"\x80\x06\0\1\0\0\1a", _R.MALFORMED_PACKET, "SUBSCRIBE with the flags 0"),
        (b"\x82\x03\0\1\0", _R.PROTOCOL_ERROR, "without a topic filter"),
        (b"\x82\x07\0\1\0\0\1a\3", _R.MALFORMED_PACKET, "options 3"),
        (b"\x82\x07\0\1\0\0\1a\x40", _R.MALFORMED_PACKET, "options 64"),
        (b"\x82\x07\0\1\0\0\1a\x30", _R.PROTOCOL_ERROR, "retain handling 3"),
        (b"\x82\x09\0\1\2\x0b\0\0\1a\0", _R.PROTOCOL_ERROR, "SUBSCRIPTION_ID must not be 0"),
        (b"\x82\x10\0\1\0\0\x0a$share/g/a\4", _R.PROTOCOL_ERROR, "no local"),
        (b"\xa2\x03\0\1\0", _R.PROTOCOL_ERROR, "without a topic filter"),
        (b"\xa2\x07\0\1\0\0\2#a", _R.TOPIC_FILTER_INVALID, "last level"),
        (b"\xc0\x01\0", _R.MALFORMED_PACKET, "too many"),
        (b"\xe0\x01\x01", _R.PROTOCOL_ERROR, "reason code 0x01"),
        (b"\xe0\x01\x84", _R.PROTOCOL_ERROR, "reason code 0x84"),
        (b"\xf0\x01\x05", _R.PROTOCOL_ERROR, "reason code 0x05"),
        (connect(1, b"\0\0\0"), _R.MALFORMED_PACKET, "reserved flag"),
        (connect(0x18, b"\0\0\0"), _R.MALFORMED_PACKET, "contradict"),
        (connect(0x1C, b"\0\0\0"), _R.MALFORMED_PACKET, "contradict"),
        (connect(0x20, b"\0\0\0"), _R.MALFORMED_PACKET, "contradict"),
        (connect(0, b"\0\0\0x"), _R.MALFORMED_PACKET, "too many"),
        (connect(0, b"\3\x21\0\0\0\0"), _R.PROTOCOL_ERROR, "RECEIVE_MAXIMUM must not be 0"),
        (connect(0, b"\5\x27\0\0\0\0\0\0"), _R.PROTOCOL_ERROR, "MAXIMUM_PACKET_SIZE must not be 0"),
        (connect(4, b"\0\0\0\0\0\1#\0\0"), _R.TOPIC_NAME_INVALID, "will"),
        (connect(0x40, b"\0\0\0\0", level=4), _R.MALFORMED_PACKET, "without a user name"),
        (connect(0, b"", level=6), _R.UNSUPPORTED_VERSION, "version 6"),
        (connect(0, b"", name=b"\0\6MQIsdp", level=3), _R.UNSUPPORTED_VERSION, "MQIsdp"),
        (connect(0, b"", name=b"\0\4AMQP"), _R.MALFORMED_PACKET, "does not name MQTT"),
    ],
)
def test_what_is_wrong_is_named(data: bytes, code: ReasonCode, reason: str) -> None:
    with pytest.raises(MqttError, match=r".") as caught:
        read(data)
    assert reason in str(caught.value)
    assert caught.value.code is code


@pytest.mark.parametrize("data", [b"\xf0\x00", b"\xb0\x03\0\1\0", b"\xe0\x01\x00", b"\x82\x06\0\1\0\1a\4"])
def test_what_only_version_5_has_is_refused_in_3(data: bytes) -> None:
    with pytest.raises(MqttError) as caught:
        read(data, Version.V3)
    assert caught.value.code is ReasonCode.MALFORMED_PACKET


def test_a_packet_that_is_too_large_is_refused_before_it_is_there() -> None:
    reader = PacketReader(max_size=100)
    reader.feed(b"\x30\xff\x7f")
    with pytest.raises(MqttError) as caught:
        reader.next_packet()
    assert caught.value.code is ReasonCode.PACKET_TOO_LARGE


def test_wrong_flags_are_refused_before_the_packet_is_there() -> None:
    reader = PacketReader()
    reader.feed(b"\x1f\x20")
    with pytest.raises(MqttError, match="CONNECT with the flags 15"):
        reader.next_packet()


def test_the_first_packet_says_which_version_follows() -> None:
    reader = PacketReader()
    reader.feed(encode_packet(Connect(Version.V3, "a"), Version.V3) + b"\x30\x04\0\1ax")
    reader.next_packet()
    assert reader.next_packet() == Publish("a", b"x")


def test_a_reader_goes_on_after_many_packets() -> None:
    reader = PacketReader(version=Version.V3)
    one = encode_packet(Publish("topic", b"x" * 1000), Version.V3)
    for _ in range(200):
        reader.feed(one * 2)
        assert reader.next_packet() is not None
    count = 0
    while reader.next_packet() is not None:
        count += 1
    assert count == 200


def test_shorter_forms_have_defaults() -> None:
    assert read(b"\xe0\x00\xe0\x01\x04") == [Disconnect(), Disconnect(4)]


def test_the_options_of_a_subscription() -> None:
    expected = SubscriptionRequest("a", 1, no_local=True, retain_as_published=True, retain_handling=2)
    assert read(b"\x82\x09\0\7\2\x0b\5\0\1a\x2d") == [Subscribe(7, (expected,), {PacketProperty.SUBSCRIPTION_ID: 5})]
