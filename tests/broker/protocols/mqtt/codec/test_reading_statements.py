"""What the standard says of the bytes of packets, where docs/mqtt-conformance.md has no other test of it."""

from __future__ import annotations

import itertools

import pytest

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
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty
from qmf.broker.protocols.mqtt.codec.reading import PacketReader
from qmf.broker.protocols.mqtt.codec.values import MqttError, PacketType, ReasonCode, Version
from qmf.broker.protocols.mqtt.codec.writing import encode_packet

_P = PacketProperty
#: In place of a text that is to be spoilt.
MARK = "MARK"
_USER = ("a", "1")


def read(data: bytes) -> Packet | None:
    reader = PacketReader()
    reader.feed(data)
    return reader.next_packet()


TEXTS: dict[str, Packet] = {
    "client id": Connect(client_id=MARK),
    "will topic": Connect(will=Will(MARK)),
    "user name": Connect(username=MARK),
    "topic": Publish(MARK),
    "response topic": Publish("a", properties={_P.RESPONSE_TOPIC: MARK}),
    "content type": Publish("a", properties={_P.CONTENT_TYPE: MARK}),
    "name of a user property": Publish("a", properties={_P.USER_PROPERTY: ((MARK, "1"), _USER)}),
    "value of a user property": Publish("a", properties={_P.USER_PROPERTY: (_USER, ("a", MARK))}),
    "filter of SUBSCRIBE": Subscribe(1, (SubscriptionRequest(MARK),)),
    "filter of UNSUBSCRIBE": Unsubscribe(1, (MARK,)),
    "authentication method": Auth(0x18, {_P.AUTHENTICATION_METHOD: MARK}),
}


@pytest.mark.parametrize("spoilt", [b"a\0bc", b"\xed\xa0\x80x", b"\xed\xbf\xbfx", b"\xc0\xafxx", b"\xff\xfexx"])
@pytest.mark.parametrize("field", TEXTS)
def test_texts_are_utf_8_without_surrogates_and_null(field: str, spoilt: bytes) -> None:
    with pytest.raises(MqttError, match=r"UTF-8|U\+0000") as caught:
        read(encode_packet(TEXTS[field], Version.V5).replace(MARK.encode(), spoilt))
    assert caught.value.code is ReasonCode.MALFORMED_PACKET


def test_a_byte_order_mark_is_a_character() -> None:
    packet = Publish("\ufeffa\ufeff", properties={_P.CONTENT_TYPE: "\ufeff"})
    assert read(encode_packet(packet, Version.V5)) == packet


PACKETS: list[Packet] = [
    Connect(),
    ConnAck(),
    *(MessageAnswer(kind, 1) for kind in (PacketType.PUBACK, PacketType.PUBREC, PacketType.PUBREL, PacketType.PUBCOMP)),
    Subscribe(1, (SubscriptionRequest("a"),)),
    SubAck(1, (0,)),
    Unsubscribe(1, ("a",)),
    UnsubAck(1, (0,)),
    Ping(),
    Ping(PacketType.PINGRESP),
    Disconnect(),
    Auth(0x18, {_P.AUTHENTICATION_METHOD: "PLAIN"}),
]


@pytest.mark.parametrize("packet", PACKETS, ids=lambda packet: packet.type.name)
def test_reserved_flags_have_their_values(packet: Packet) -> None:
    data = encode_packet(packet, Version.V5)
    assert read(data) == packet
    for flags in range(16):
        if flags != data[0] & 15:
            with pytest.raises(MqttError, match="with the flags") as caught:
                read(bytes((data[0] & 0xF0 | flags,)) + data[1:])
            assert caught.value.code is ReasonCode.MALFORMED_PACKET


@pytest.mark.parametrize(
    "packet", [Connect(), ConnAck(), *PACKETS[6:10], Publish("a")], ids=lambda each: each.type.name
)
def test_no_properties_are_a_length_of_zero(packet: Packet) -> None:
    data = encode_packet(packet, Version.V5)
    place = {PacketType.CONNECT: 12, PacketType.PUBLISH: 5}.get(packet.type, 4)
    assert data[place] == 0
    assert read(data) == packet


@pytest.mark.parametrize("packet", [Connect(), Publish("a")], ids=lambda each: each.type.name)
def test_the_length_of_properties_is_there(packet: Packet) -> None:
    data = encode_packet(packet, Version.V5)
    place = 12 if packet.type is PacketType.CONNECT else 5
    spoilt = data[:place] + data[place + 1 :]
    with pytest.raises(MqttError) as caught:
        read(bytes((spoilt[0], len(spoilt) - 2)) + spoilt[2:])
    assert caught.value.code is ReasonCode.MALFORMED_PACKET


def test_a_publication_with_qos_0_has_no_packet_id() -> None:
    assert encode_packet(Publish("a", b"x"), Version.V5) == b"\x30\x05\0\1a\0x"
    assert read(b"\x30\x05\0\1a\0x") == Publish("a", b"x", packet_id=None)


@pytest.mark.parametrize("flags", list(itertools.product([False, True], repeat=3)), ids=str)
def test_the_flags_of_connect_say_which_fields_follow(flags: tuple[bool, bool, bool]) -> None:
    has_will, has_user, has_password = flags
    packet = Connect(
        client_id="id",
        will=Will("w", b"x", 1, True, {_P.WILL_DELAY: 1}) if has_will else None,
        username="u" if has_user else None,
        password=b"p" if has_password else None,
    )
    data = encode_packet(packet, Version.V5)
    assert read(data) == packet
    fields = [b"\0\2id", b"\5\x18\0\0\0\1\0\1w\0\1x" * has_will, b"\0\1u" * has_user, b"\0\1p" * has_password]
    assert data.endswith(b"".join(fields))
    for bit, present in ((0x04, has_will), (0x80, has_user), (0x40, has_password)):
        other = bytearray(data)
        other[9] ^= bit | (0x28 if bit == 0x04 and present else 0)
        with pytest.raises(MqttError) as caught:
            read(bytes(other))
        assert caught.value.code is ReasonCode.MALFORMED_PACKET


def test_connect_has_a_client_id() -> None:
    with pytest.raises(MqttError, match="ends within a field"):
        read(b"\x10\x0b\0\4MQTT\5\2\0\0\0")


@pytest.mark.parametrize("topic", ["a/+", "#", ""])
def test_a_response_topic_is_the_name_of_a_topic(topic: str) -> None:
    for packet in (
        Publish("a", properties={_P.RESPONSE_TOPIC: topic}),
        Connect(will=Will("a", properties={_P.RESPONSE_TOPIC: topic})),
    ):
        with pytest.raises(MqttError, match="the response topic") as caught:
            read(encode_packet(packet, Version.V5))
        assert caught.value.code is ReasonCode.PROTOCOL_ERROR
