"""The broker's side of a connection without I/O: what is allowed when, for both versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
from qmf.broker.protocols.mqtt.connection_state import MQTT_TABLE, MqttState
from qmf.broker.protocols.mqtt.machine import ConnectionMachine
from qmf.broker.protocols.mqtt.options import MqttOptions
from qmf.errors import CallerError

_P = PacketProperty


def fed(machine: ConnectionMachine, *packets: Packet) -> list[Packet]:
    """What the machine gives of packets."""
    for packet in packets:
        machine.feed(encode_packet(packet, machine.version if not isinstance(packet, Connect) else packet.version))
    found = []
    while (each := machine.next_packet()) is not None:
        found.append(each)
    return found


def answer(machine: ConnectionMachine, data: bytes) -> Packet:
    reader = PacketReader(version=machine.version)
    reader.feed(data)
    packet = reader.next_packet()
    assert packet is not None
    assert not reader.waiting
    return packet


def connected(
    connect: Connect | None = None,
    *,
    version: Version = Version.V5,
    properties: dict[PacketProperty, Any] | None = None,
    **options: Any,
) -> ConnectionMachine:
    machine = ConnectionMachine(MqttOptions(**options))
    fed(machine, connect or Connect(version, "me", properties=properties or {}))
    machine.accept(session_present=False, properties={})
    return machine


def test_a_client_connects() -> None:
    machine = ConnectionMachine(MqttOptions())
    connect = Connect(Version.V5, "me", keep_alive=10)
    assert fed(machine, connect) == [connect]
    assert answer(machine, machine.accept(session_present=True, properties={_P.ASSIGNED_CLIENT_ID: "you"})) == ConnAck(
        True,
        0,
        {
            _P.RECEIVE_MAXIMUM: 1000,
            _P.MAXIMUM_PACKET_SIZE: 4 * 1024 * 1024,
            _P.TOPIC_ALIAS_MAXIMUM: 32,
            _P.ASSIGNED_CLIENT_ID: "you",
        },
    )
    assert fed(machine, Ping()) == [Ping()]
    assert (machine.packets_in, machine.packets_out, machine.keep_alive) == (2, 1, 10)


def test_a_client_of_version_3_connects() -> None:
    machine = ConnectionMachine(MqttOptions(max_session_expiry=100))
    fed(machine, Connect(Version.V3, "me", clean=False))
    assert machine.accept(session_present=True, properties={}) == b"\x20\x02\x01\x00"
    assert machine.session_expiry == 100


def test_what_comes_before_the_login_has_ended_waits() -> None:
    machine = ConnectionMachine(MqttOptions())
    connect = Connect(Version.V3, "me")
    assert fed(machine, connect, Ping()) == [connect]
    machine.accept(session_present=False, properties={})
    assert machine.next_packet() == Ping()


@pytest.mark.parametrize(
    "packet",
    [
        Ping(),
        Publish("a"),
        Disconnect(),
        Auth(ReasonCode.CONTINUE_AUTHENTICATION),
        Subscribe(1, (SubscriptionRequest("a"),)),
    ],
)
def test_the_first_packet_is_connect(packet: Packet) -> None:
    with pytest.raises(MqttError, match="is new") as caught:
        fed(ConnectionMachine(MqttOptions()), packet)
    assert caught.value.code is ReasonCode.PROTOCOL_ERROR


@pytest.mark.parametrize("packet", [ConnAck(), SubAck(1, (0,)), UnsubAck(1, (0,)), Ping(PacketType.PINGRESP)])
def test_a_client_must_not_send_what_servers_send(packet: Packet) -> None:
    with pytest.raises(MqttError, match="must not send"):
        fed(connected(), packet)


def test_connect_comes_once() -> None:
    with pytest.raises(MqttError, match="CONNECT"):
        fed(connected(), Connect())


def test_a_connection_that_is_closed_reads_nothing() -> None:
    machine = connected()
    assert fed(machine, Disconnect(), Ping()) == [Disconnect()]
    assert machine.state is MqttState.CLOSED
    assert machine.close(ReasonCode.PROTOCOL_ERROR, "x") == b""


@pytest.mark.parametrize("state", MqttState)
def test_each_state_can_be_reached_and_left(state: MqttState) -> None:
    reached = {MqttState.NEW} | {to for row in MQTT_TABLE.rows.values() for to in row.values()}
    assert state in reached
    assert MQTT_TABLE.rows[state]


def test_a_will_is_dropped_by_a_clean_end_alone() -> None:
    will = Will("a", b"lost")
    machine = connected(Connect(Version.V5, "me", will=will))
    assert machine.will == will
    fed(machine, Disconnect(ReasonCode.DISCONNECT_WITH_WILL))
    assert machine.will == will
    machine = connected(Connect(Version.V5, "me", will=will))
    fed(machine, Disconnect())
    assert machine.will is None


def test_the_end_may_change_the_expiry_of_the_session() -> None:
    machine = connected(properties={_P.SESSION_EXPIRY: 10}, max_session_expiry=50)
    fed(machine, Disconnect(properties={_P.SESSION_EXPIRY: 100}))
    assert machine.session_expiry == 50


def test_a_session_that_ends_at_once_is_not_kept_at_the_end() -> None:
    with pytest.raises(MqttError, match="is to be kept"):
        fed(connected(), Disconnect(properties={_P.SESSION_EXPIRY: 100}))


def test_what_the_broker_has_changed_is_in_connack() -> None:
    machine = ConnectionMachine(MqttOptions(max_session_expiry=50, max_keep_alive=20))
    fed(machine, Connect(Version.V5, "me", properties={_P.SESSION_EXPIRY: 100}))
    found = answer(machine, machine.accept(session_present=False, properties={}))
    assert isinstance(found, ConnAck)
    assert found.properties[_P.SESSION_EXPIRY] == 50
    assert found.properties[_P.SERVER_KEEP_ALIVE] == 20 == machine.keep_alive


@pytest.mark.parametrize(("asked", "expected"), [(0, 20), (10, 10), (30, 20)])
def test_the_keep_alive_has_a_limit_in_version_5(asked: int, expected: int) -> None:
    assert connected(Connect(Version.V5, "me", keep_alive=asked), max_keep_alive=20).keep_alive == expected
    assert connected(Connect(Version.V3, "me", keep_alive=asked), max_keep_alive=20).keep_alive == asked


def test_topic_aliases_stand_for_topics() -> None:
    machine = connected()
    found = fed(
        machine,
        Publish("a", b"1", properties={_P.TOPIC_ALIAS: 1}),
        Publish("", b"2", properties={_P.TOPIC_ALIAS: 1}),
        Publish("b", b"3", properties={_P.TOPIC_ALIAS: 1}),
        Publish("", b"4", properties={_P.TOPIC_ALIAS: 1}),
    )
    assert [each.topic for each in found if isinstance(each, Publish)] == ["a", "a", "b", "b"]


@pytest.mark.parametrize(
    ("packet", "code"),
    [
        (Publish(""), ReasonCode.PROTOCOL_ERROR),
        (Publish("", properties={_P.CONTENT_TYPE: "x"}), ReasonCode.PROTOCOL_ERROR),
        (Publish("", properties={_P.TOPIC_ALIAS: 2}), ReasonCode.PROTOCOL_ERROR),
        (Publish("a", properties={_P.TOPIC_ALIAS: 33}), ReasonCode.TOPIC_ALIAS_INVALID),
        (Publish("a", properties={_P.SUBSCRIPTION_ID: (1,)}), ReasonCode.PROTOCOL_ERROR),
    ],
)
def test_publications_that_are_not_allowed(packet: Publish, code: ReasonCode) -> None:
    with pytest.raises(MqttError) as caught:
        fed(connected(), packet)
    assert caught.value.code is code


def test_more_than_the_receive_maximum_is_refused() -> None:
    machine = connected(receive_maximum=2)
    fed(machine, Publish("a", qos=1, packet_id=1), Publish("a", qos=2, packet_id=2))
    with pytest.raises(MqttError) as caught:
        fed(machine, Publish("a", qos=1, packet_id=3))
    assert caught.value.code is ReasonCode.RECEIVE_MAXIMUM_EXCEEDED


def test_what_is_acknowledged_does_not_count() -> None:
    machine = connected(receive_maximum=1)
    for number in range(1, 10, 3):
        fed(machine, Publish("a", qos=1, packet_id=number))
        assert machine.acknowledge(PacketType.PUBACK, number) == b"\x40\x02" + number.to_bytes(2)
        fed(machine, Publish("a", qos=2, packet_id=number + 1))
        machine.acknowledge(PacketType.PUBREC, number + 1)
        fed(machine, MessageAnswer(PacketType.PUBREL, number + 1))
        fed(machine, Publish("a", qos=2, packet_id=number + 2))
        machine.acknowledge(PacketType.PUBREC, number + 2, ReasonCode.QUOTA_EXCEEDED)
    assert machine.packets_in == 13


def test_clients_of_version_3_have_no_receive_maximum() -> None:
    machine = connected(version=Version.V3, receive_maximum=1)
    assert len(fed(machine, *(Publish("a", qos=1, packet_id=number) for number in (1, 2, 3)))) == 3


def publish(machine: ConnectionMachine, topic: bytes, payload: bytes = b"x", **more: Any) -> Publish | None:
    data = machine.encode_publication(topic, payload, 0, None, **more)
    if not data:
        return None
    packet = answer(machine, data)
    assert isinstance(packet, Publish)
    return packet


def test_aliases_are_used_where_the_client_allows_them() -> None:
    machine = connected(properties={_P.TOPIC_ALIAS_MAXIMUM: 1})
    assert publish(machine, b"a") == Publish("a", b"x", properties={_P.TOPIC_ALIAS: 1})
    assert publish(machine, b"a", properties=b"\x01\x01") == Publish(
        "", b"x", properties={_P.PAYLOAD_FORMAT: 1, _P.TOPIC_ALIAS: 1}
    )
    assert publish(machine, b"b") == Publish("b", b"x")


def test_what_the_client_cannot_take_is_not_sent() -> None:
    machine = connected(properties={_P.MAXIMUM_PACKET_SIZE: 30, _P.TOPIC_ALIAS_MAXIMUM: 5})
    assert publish(machine, b"a", b"x" * 40) is None
    assert publish(machine, b"a", b"x") == Publish("a", b"x", properties={_P.TOPIC_ALIAS: 1})


def test_publications_of_version_3_have_no_properties() -> None:
    assert (
        connected(version=Version.V3).encode_publication(b"a", b"x", 1, 5, properties=b"zzz") == b"\x32\x06\0\1a\0\5x"
    )


@pytest.mark.parametrize(
    ("code", "number"),
    [
        (ReasonCode.CLIENT_ID_NOT_VALID, 2),
        (ReasonCode.SERVER_BUSY, 3),
        (ReasonCode.BAD_USER_OR_PASSWORD, 4),
        (ReasonCode.NOT_AUTHORIZED, 5),
    ],
)
def test_a_login_is_refused(code: ReasonCode, number: int) -> None:
    machine = ConnectionMachine(MqttOptions())
    fed(machine, Connect(Version.V5))
    assert answer(machine, machine.close(code, "so")) == ConnAck(code=code, properties={_P.REASON_STRING: "so"})
    machine = ConnectionMachine(MqttOptions())
    fed(machine, Connect(Version.V3))
    assert machine.close(code, "so") == bytes((0x20, 2, 0, number))


def test_other_refusals_have_no_words_in_version_3() -> None:
    machine = ConnectionMachine(MqttOptions())
    fed(machine, Connect(Version.V3))
    assert machine.close(ReasonCode.PROTOCOL_ERROR, "so") == b""
    assert connected(version=Version.V3).close(ReasonCode.SERVER_SHUTTING_DOWN, "so") == b""


def test_who_is_no_client_gets_no_answer() -> None:
    assert ConnectionMachine(MqttOptions()).close(ReasonCode.MALFORMED_PACKET, "so") == b""
    assert ConnectionMachine(MqttOptions()).close(ReasonCode.UNSUPPORTED_VERSION, "so") == b"\x20\x02\0\x01"


def test_a_connection_is_closed_with_a_reason() -> None:
    machine = connected()
    assert answer(machine, machine.close(ReasonCode.SESSION_TAKEN_OVER, "so")) == Disconnect(
        ReasonCode.SESSION_TAKEN_OVER, {_P.REASON_STRING: "so"}
    )


def test_reasons_are_left_out_where_the_client_wants_none_or_has_no_room() -> None:
    machine = connected(properties={_P.REQUEST_PROBLEM_INFORMATION: 0})
    found = answer(machine, machine.acknowledge(PacketType.PUBACK, 1, ReasonCode.QUOTA_EXCEEDED, "full"))
    assert found == MessageAnswer(PacketType.PUBACK, 1, ReasonCode.QUOTA_EXCEEDED)
    machine = connected(properties={_P.MAXIMUM_PACKET_SIZE: 20})
    assert answer(machine, machine.close(ReasonCode.PROTOCOL_ERROR, "x" * 100)) == Disconnect(ReasonCode.PROTOCOL_ERROR)


@pytest.mark.parametrize(
    ("version", "expected"), [(Version.V5, [1, ReasonCode.NOT_AUTHORIZED]), (Version.V3, [1, 0x80])]
)
def test_subscriptions_are_answered(version: Version, expected: Sequence[int]) -> None:
    machine = connected(version=version)
    request = Subscribe(7, (SubscriptionRequest("a", 1), SubscriptionRequest("b")))
    codes = [ReasonCode.GRANTED_QOS_1, ReasonCode.NOT_AUTHORIZED]
    found = answer(machine, machine.answer(request, codes))
    assert isinstance(found, SubAck)
    assert list(found.codes) == expected
    found = answer(machine, machine.answer(Unsubscribe(8, ("a",)), [ReasonCode.NO_SUBSCRIPTION_EXISTED]))
    assert isinstance(found, UnsubAck)
    assert list(found.codes) == ([] if version is Version.V3 else [ReasonCode.NO_SUBSCRIPTION_EXISTED])


METHOD = {_P.AUTHENTICATION_METHOD: "SCRAM-SHA-256"}


def test_enhanced_authentication_goes_back_and_forth() -> None:
    machine = ConnectionMachine(MqttOptions())
    fed(machine, Connect(Version.V5, properties={**METHOD, _P.AUTHENTICATION_DATA: b"first"}))
    assert answer(machine, machine.challenge(b"prove")) == Auth(
        ReasonCode.CONTINUE_AUTHENTICATION, {**METHOD, _P.AUTHENTICATION_DATA: b"prove"}
    )
    proof = Auth(ReasonCode.CONTINUE_AUTHENTICATION, {**METHOD, _P.AUTHENTICATION_DATA: b"proof"})
    assert fed(machine, proof) == [proof]
    found = answer(machine, machine.accept(session_present=False, properties={_P.AUTHENTICATION_DATA: b"end"}))
    assert isinstance(found, ConnAck)
    assert found.properties[_P.AUTHENTICATION_METHOD] == "SCRAM-SHA-256"
    assert found.properties[_P.AUTHENTICATION_DATA] == b"end"
    again = Auth(ReasonCode.RE_AUTHENTICATE, METHOD)
    assert fed(machine, again, Ping()) == [again, Ping()]
    assert machine.state is MqttState.RENEWING
    assert answer(machine, machine.confirm(None)) == Auth(ReasonCode.SUCCESS, METHOD)


@pytest.mark.parametrize(
    "packet",
    [
        Publish("a"),
        Auth(ReasonCode.SUCCESS, METHOD),
        Auth(ReasonCode.RE_AUTHENTICATE, METHOD),
        Auth(ReasonCode.CONTINUE_AUTHENTICATION, {_P.AUTHENTICATION_METHOD: "PLAIN"}),
    ],
)
def test_during_authentication_the_client_answers_alone(packet: Packet) -> None:
    machine = ConnectionMachine(MqttOptions())
    fed(machine, Connect(Version.V5, properties=METHOD))
    with pytest.raises(MqttError):
        fed(machine, packet)


def test_who_has_no_method_cannot_authenticate_again() -> None:
    with pytest.raises(MqttError, match="another method"):
        fed(connected(), Auth(ReasonCode.RE_AUTHENTICATE, METHOD))


def test_authentication_data_needs_a_method() -> None:
    with pytest.raises(MqttError, match="without a method"):
        fed(ConnectionMachine(MqttOptions()), Connect(properties={_P.AUTHENTICATION_DATA: b"x"}))


@pytest.mark.parametrize(
    "options",
    [
        {"max_packet": 10},
        {"receive_maximum": 0},
        {"topic_aliases": 70_000},
        {"max_keep_alive": 0},
        {"max_session_expiry": -1},
        {"max_subscriptions": 0},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(CallerError, match="of MQTT must be"):
        MqttOptions(**options)


def test_a_login_that_is_interrupted_is_refused_with_a_reason_of_connack() -> None:
    machine = ConnectionMachine(MqttOptions())
    fed(machine, Connect(Version.V5))
    found = answer(machine, machine.close(ReasonCode.SERVER_SHUTTING_DOWN, ""))
    assert found == ConnAck(code=ReasonCode.SERVER_UNAVAILABLE)


def test_packets_are_smaller_before_the_login() -> None:
    machine = ConnectionMachine(MqttOptions())
    machine.feed(b"\x10\xff\xff\x7f")
    with pytest.raises(MqttError) as caught:
        machine.next_packet()
    assert caught.value.code is ReasonCode.PACKET_TOO_LARGE
    assert len(fed(connected(), Publish("a", b"x" * 1_000_000))) == 1
