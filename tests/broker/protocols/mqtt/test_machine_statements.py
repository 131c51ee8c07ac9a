"""What the standard says of a connection, where the table in docs/mqtt-conformance.md has no other test of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from broker.protocols.mqtt.test_machine import METHOD, answer, connected, fed, publish

from qmf.broker.protocols.mqtt.codec.packets import (
    Auth,
    ConnAck,
    Connect,
    Disconnect,
    MessageAnswer,
    Publish,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    UnsubAck,
    Unsubscribe,
)
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty
from qmf.broker.protocols.mqtt.codec.reading import PacketReader
from qmf.broker.protocols.mqtt.codec.values import MqttError, PacketType, ReasonCode, Version
from qmf.broker.protocols.mqtt.connection_state import MqttState
from qmf.broker.protocols.mqtt.machine import ConnectionMachine
from qmf.broker.protocols.mqtt.options import MqttOptions
from qmf.broker.protocols.mqtt.reasons import LOGIN_CODES, REASONS

_P, _R = PacketProperty, ReasonCode
REASON = "because " * 20

#: What the broker sends with a reason, by the type of the packet.
EXPLAINED: dict[str, Callable[[ConnectionMachine], bytes]] = {
    "PUBACK": lambda machine: machine.acknowledge(PacketType.PUBACK, 1, _R.QUOTA_EXCEEDED, REASON),
    "PUBREC": lambda machine: machine.acknowledge(PacketType.PUBREC, 1, _R.QUOTA_EXCEEDED, REASON),
    "PUBREL": lambda machine: machine.acknowledge(PacketType.PUBREL, 1, _R.PACKET_ID_NOT_FOUND, REASON),
    "PUBCOMP": lambda machine: machine.acknowledge(PacketType.PUBCOMP, 1, _R.PACKET_ID_NOT_FOUND, REASON),
    "SUBACK": lambda machine: machine.answer(Subscribe(1, (SubscriptionRequest("a"),)), [_R.NOT_AUTHORIZED], REASON),
    "UNSUBACK": lambda machine: machine.answer(Unsubscribe(1, ("a",)), [_R.NOT_AUTHORIZED], REASON),
    "DISCONNECT": lambda machine: machine.close(_R.ADMINISTRATIVE_ACTION, REASON),
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_reason_is_left_out_where_it_does_not_fit(name: str) -> None:
    with_reason = EXPLAINED[name](connected())
    assert REASON.encode() in with_reason
    data = EXPLAINED[name](connected(properties={_P.MAXIMUM_PACKET_SIZE: 30}))
    assert 0 < len(data) <= 30
    packet = answer(connected(), data)
    assert packet.type.name == name
    assert not getattr(packet, "properties")  # noqa: B009 - not all packets have any
    # The broker has no user properties of its own, which could be too large.
    assert _P.USER_PROPERTY not in getattr(answer(connected(), with_reason), "properties")  # noqa: B009


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_client_that_wants_no_reasons_gets_one_with_disconnect_alone(name: str) -> None:
    data = EXPLAINED[name](connected(properties={_P.REQUEST_PROBLEM_INFORMATION: 0}))
    assert (REASON.encode() in data) is (name == "DISCONNECT")


def test_a_client_that_cannot_take_connack_is_refused() -> None:
    machine = ConnectionMachine(MqttOptions())
    fed(machine, Connect(properties={_P.MAXIMUM_PACKET_SIZE: 20}))
    assert machine.accept(session_present=False, properties={_P.ASSIGNED_CLIENT_ID: "x" * 40}) == b""
    assert machine.state is MqttState.LOGGING_IN
    refusal = machine.close(_R.PACKET_TOO_LARGE, REASON)
    assert answer(machine, refusal) == ConnAck(code=_R.PACKET_TOO_LARGE)
    assert len(refusal) <= 20


def test_an_answer_that_a_client_cannot_take_is_not_made() -> None:
    machine = connected(properties={_P.MAXIMUM_PACKET_SIZE: 30})
    filters = [f"a/{number}" for number in range(40)]
    request = Subscribe(1, tuple(SubscriptionRequest(each) for each in filters))
    assert machine.answer(request, [_R.SUCCESS] * 40) == b""
    assert machine.answer(Unsubscribe(1, filters), [_R.SUCCESS] * 40) == b""


@pytest.mark.parametrize("present", [False, True])
@pytest.mark.parametrize("version", list(Version), ids=["3.1.1", "5"])
def test_the_reserved_flags_of_connack_are_zero(version: Version, present: bool) -> None:
    machine = ConnectionMachine(MqttOptions())
    fed(machine, Connect(version))
    assert machine.accept(session_present=present, properties={})[2] == present
    refused = ConnectionMachine(MqttOptions())
    fed(refused, Connect(version))
    assert refused.close(_R.NOT_AUTHORIZED, "")[2] == 0


def test_connack_is_sent_once() -> None:
    machine = connected()
    with pytest.raises(MqttError):
        machine.accept(session_present=False, properties={})
    assert answer(machine, machine.close(_R.PROTOCOL_ERROR, "")) == Disconnect(_R.PROTOCOL_ERROR)


def test_there_is_no_response_information_and_no_limit_of_qos_or_retained_messages() -> None:
    for wanted in (0, 1):
        machine = ConnectionMachine(MqttOptions())
        fed(machine, Connect(properties={_P.REQUEST_RESPONSE_INFORMATION: wanted}))
        packet = answer(machine, machine.accept(session_present=False, properties={}))
        assert isinstance(packet, ConnAck)
        assert set(packet.properties) == {_P.RECEIVE_MAXIMUM, _P.MAXIMUM_PACKET_SIZE, _P.TOPIC_ALIAS_MAXIMUM}


def test_a_client_that_allows_no_aliases_gets_none() -> None:
    for properties in ({}, {_P.TOPIC_ALIAS_MAXIMUM: 0}):
        machine = connected(properties=properties)
        assert [publish(machine, b"a") for _ in range(3)] == [Publish("a", b"x")] * 3


def test_no_alias_is_larger_than_the_client_allows() -> None:
    machine = connected(properties={_P.TOPIC_ALIAS_MAXIMUM: 3}, topic_aliases=10)
    found = [publish(machine, str(number % 7).encode()) for number in range(30)]
    aliases = {each.properties[_P.TOPIC_ALIAS] for each in found if each is not None and each.properties}
    assert aliases == {1, 2, 3}


def test_every_alias_up_to_the_maximum_is_taken() -> None:
    machine = connected(topic_aliases=5)
    sent = [Publish(str(number), properties={_P.TOPIC_ALIAS: number}) for number in range(1, 6)]
    again = [Publish("", properties={_P.TOPIC_ALIAS: number}) for number in range(1, 6)]
    assert [each.topic for each in fed(machine, *sent, *again) if isinstance(each, Publish)] == list("12345") * 2


def test_no_aliases_are_carried_to_another_connection() -> None:
    fed(connected(), Publish("a", properties={_P.TOPIC_ALIAS: 1}))
    with pytest.raises(MqttError, match="stands for nothing"):
        fed(connected(), Publish("", properties={_P.TOPIC_ALIAS: 1}))


def test_without_a_method_nobody_is_asked_to_authenticate() -> None:
    machine = ConnectionMachine(MqttOptions())
    fed(machine, Connect())
    packet = answer(machine, machine.accept(session_present=False, properties={}))
    assert isinstance(packet, ConnAck)
    assert _P.AUTHENTICATION_METHOD not in packet.properties
    with pytest.raises(MqttError, match="another method"):
        fed(machine, Auth(_R.RE_AUTHENTICATE, METHOD))


#: The reason codes that the standard allows in answers to packets, beside success.
ANSWERS = {0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99}
CONNECT_ANSWERS = {*range(0x80, 0x8B), 0x8C, 0x90, 0x95, 0x97, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9F}


def test_refusals_have_codes_of_their_packets() -> None:
    assert {int(code) for code in REASONS.values()} <= ANSWERS
    assert {int(code) for code in LOGIN_CODES.values()} <= CONNECT_ANSWERS


@pytest.mark.parametrize("code", [code for code in ReasonCode if code.is_error], ids=lambda code: code.name)
def test_connack_and_disconnect_have_codes_of_their_own(code: ReasonCode) -> None:
    machine = ConnectionMachine(MqttOptions())
    fed(machine, Connect())
    refusal = answer(machine, machine.close(code, ""))
    assert isinstance(refusal, ConnAck)
    assert refusal.code in CONNECT_ANSWERS
    machine = connected()
    ended = answer(machine, machine.close(code, ""))  # which has read the code
    assert isinstance(ended, Disconnect)
    assert ended.code in (code, ReasonCode.UNSPECIFIED_ERROR)


def test_nothing_follows_disconnect() -> None:
    machine = connected()
    assert answer(machine, machine.close(_R.ADMINISTRATIVE_ACTION, "so")) == Disconnect(
        _R.ADMINISTRATIVE_ACTION, {_P.REASON_STRING: "so"}
    )
    assert machine.close(_R.ADMINISTRATIVE_ACTION, "so") == b""
    assert fed(machine, Publish("a")) == []


def test_the_send_quota_is_what_the_client_allows() -> None:
    assert connected().send_quota == 65_535
    assert connected(properties={_P.RECEIVE_MAXIMUM: 3}).send_quota == 3
    with pytest.raises(MqttError, match="must not be 0"):
        connected(properties={_P.RECEIVE_MAXIMUM: 0})


def test_answers_have_the_packet_id_of_what_they_answer() -> None:
    machine = connected()
    for kind in (PacketType.PUBACK, PacketType.PUBREC, PacketType.PUBREL, PacketType.PUBCOMP):
        assert answer(machine, machine.acknowledge(kind, 77)) == MessageAnswer(kind, 77)
    subscribed = answer(machine, machine.answer(Subscribe(8, (SubscriptionRequest("a"),)), [_R.SUCCESS]))
    assert subscribed == SubAck(8, (0,))
    assert answer(machine, machine.answer(Unsubscribe(9, ("a",)), [_R.SUCCESS])) == UnsubAck(9, (0,))


def test_packets_may_come_in_pieces() -> None:
    machine = connected()
    reader = PacketReader()
    data = machine.pong() + machine.acknowledge(PacketType.PUBACK, 1)
    found = []
    for byte in data:
        reader.feed(bytes((byte,)))
        if (packet := reader.next_packet()) is not None:
            found.append(packet.type)
    assert found == [PacketType.PINGRESP, PacketType.PUBACK]
