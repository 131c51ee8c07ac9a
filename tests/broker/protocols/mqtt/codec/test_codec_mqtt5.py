"""The codec beside `mqtt5`, a codec of others for MQTT 5: each reads what the other writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mqtt5
import pytest
from broker.protocols.mqtt.codec.packets_made import acknowledgements, connects, publishes, subscribes
from hypothesis import given

from qmf.broker.protocols.mqtt.codec.packets import Connect, MessageAnswer, Packet, Publish, Subscribe
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty, Properties
from qmf.broker.protocols.mqtt.codec.reading import PacketReader
from qmf.broker.protocols.mqtt.codec.values import PacketType, Version
from qmf.broker.protocols.mqtt.codec.writing import encode_packet

pytestmark = pytest.mark.slow

#: Properties by their names there.
NAMES = {
    PacketProperty.MESSAGE_EXPIRY: "message_expiry_interval",
    PacketProperty.CONTENT_TYPE: "content_type",
    PacketProperty.RESPONSE_TOPIC: "response_topic",
    PacketProperty.CORRELATION_DATA: "correlation_data",
    PacketProperty.TOPIC_ALIAS: "topic_alias",
    PacketProperty.REASON_STRING: "reason_str",
    PacketProperty.USER_PROPERTY: "user_properties",
    PacketProperty.SUBSCRIPTION_ID: "subscription_ids",
    PacketProperty.AUTHENTICATION_METHOD: "authentication_method",
    PacketProperty.AUTHENTICATION_DATA: "authentication_data",
}


def theirs(packet: Packet) -> Any:
    """A packet as `mqtt5` reads it, which reads nothing else."""
    data = encode_packet(packet, Version.V5)
    found, size = mqtt5.read(memoryview(data))
    assert size == len(data)
    return found


def back(packet: Any) -> Packet:
    """What we read of the bytes of a packet of `mqtt5`."""
    reader = PacketReader()
    reader.feed(packet.write())
    found = reader.next_packet()
    assert found is not None
    assert reader.waiting == 0
    return found


def assert_properties(found: Any, properties: Properties) -> None:
    for kind, name in NAMES.items():
        if kind in properties:
            expected = properties[kind]
            value = getattr(found, name)
            assert (tuple(value) if isinstance(expected, tuple) else value) == expected


def without_defaults(properties: Mapping[PacketProperty, Any], packet: PacketType) -> Mapping[PacketProperty, Any]:
    """The properties without those that have their default, which `mqtt5` leaves out, or `session expiry` of 0."""
    defaults = {
        PacketProperty.PAYLOAD_FORMAT: 0,
        PacketProperty.WILL_DELAY: 0,
        PacketProperty.SESSION_EXPIRY: 0,
        PacketProperty.RECEIVE_MAXIMUM: 65_535,
        PacketProperty.TOPIC_ALIAS_MAXIMUM: 0,
        PacketProperty.REQUEST_PROBLEM_INFORMATION: 1,
        PacketProperty.REQUEST_RESPONSE_INFORMATION: 0,
    }
    return {kind: value for kind, value in properties.items() if packet == 0 or defaults.get(kind) != value}


@given(publishes(Version.V5))
def test_publish(packet: Publish) -> None:
    found = theirs(packet)
    assert (found.topic, found.payload, int(found.qos)) == (packet.topic, packet.payload, packet.qos)
    assert (found.retain, found.duplicate, found.packet_id) == (packet.retain, packet.duplicate, packet.packet_id)
    assert_properties(found, packet.properties)
    returned = back(found)
    assert isinstance(returned, Publish)
    assert (returned.topic, returned.payload, returned.packet_id) == (packet.topic, packet.payload, packet.packet_id)
    assert without_defaults(returned.properties, PacketType.PUBLISH) == without_defaults(
        packet.properties, PacketType.PUBLISH
    )


@given(connects(Version.V5))
def test_connect(packet: Connect) -> None:
    found = theirs(packet)
    assert (found.client_id, found.clean_start, found.keep_alive) == (packet.client_id, packet.clean, packet.keep_alive)
    # An empty password, or none, is the same to it.
    assert (found.username, found.password or b"") == (packet.username, packet.password or b"")
    assert (found.will is None) == (packet.will is None)
    if packet.will is not None:
        assert (found.will.topic, found.will.retain, int(found.will.qos)) == (
            packet.will.topic,
            packet.will.retain,
            packet.will.qos,
        )
        assert found.will.will_delay_interval == packet.will.properties.get(PacketProperty.WILL_DELAY, 0)
    assert_properties(found, packet.properties)
    returned = back(found)
    assert isinstance(returned, Connect)
    assert returned.client_id == packet.client_id
    assert without_defaults(returned.properties, PacketType.CONNECT) == without_defaults(
        packet.properties, PacketType.CONNECT
    )


@given(subscribes(Version.V5))
def test_subscribe(packet: Subscribe) -> None:
    found = theirs(packet)
    assert [
        (item.pattern, int(item.max_qos), item.no_local, item.retain_as_published, int(item.retain_handling))
        for item in found.topic_filters
    ] == [
        (item.topic_filter, item.qos, item.no_local, item.retain_as_published, item.retain_handling)
        for item in packet.subscriptions
    ]
    assert back(found) == packet


@given(acknowledgements(Version.V5))
def test_acknowledgements(packet: MessageAnswer) -> None:
    found = theirs(packet)
    assert (found.packet_id, int(found.reason_code)) == (packet.packet_id, packet.code)
    assert_properties(found, packet.properties)
    assert back(found) == packet
