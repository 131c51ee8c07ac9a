"""Bytes of strangers: the reader of packets gives packets or raises `MqttError`, and nothing else."""

from __future__ import annotations

import contextlib
from functools import partial

import pytest
from support.fuzzing import FEW, MANY, try_all

from qmf.broker.protocols.mqtt.codec.packets import (
    Auth,
    Connect,
    Disconnect,
    MessageAnswer,
    Packet,
    Ping,
    Publish,
    Subscribe,
    SubscriptionRequest,
    Unsubscribe,
    Will,
)
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty
from qmf.broker.protocols.mqtt.codec.values import MqttError, PacketType, Version
from qmf.broker.protocols.mqtt.codec.writing import encode_packet
from qmf.broker.protocols.mqtt.machine import ConnectionMachine
from qmf.broker.protocols.mqtt.options import MqttOptions

_P = PacketProperty
USER = {_P.USER_PROPERTY: (("a", "1"), ("b", "2"))}
PACKETS: list[Packet] = [
    Publish("a/b", b"payload", 2, packet_id=7, properties={_P.TOPIC_ALIAS: 1, _P.CORRELATION_DATA: b"x", **USER}),
    Publish("a", b"x" * 200),
    MessageAnswer(PacketType.PUBREC, 7, 0x10, USER),
    MessageAnswer(PacketType.PUBREL, 7),
    Subscribe(1, (SubscriptionRequest("a/+/#", 2), SubscriptionRequest("$share/g/a", 1)), {_P.SUBSCRIPTION_ID: 300}),
    Unsubscribe(2, ("a/+/#", "b"), USER),
    Ping(),
    Auth(0x18, {_P.AUTHENTICATION_METHOD: "SCRAM-SHA-256", _P.AUTHENTICATION_DATA: b"x"}),
    Disconnect(4, {_P.REASON_STRING: "so"}),
]


def connect(version: Version) -> bytes:
    five = version is Version.V5
    properties = {_P.SESSION_EXPIRY: 10, _P.RECEIVE_MAXIMUM: 5, **USER} if five else {}
    will = Will("w", b"x", 1, True, {_P.WILL_DELAY: 1} if five else {})
    return encode_packet(Connect(version, "me", False, 10, will, "ann", b"secret", properties), version)


VALID = [connect(Version.V5), connect(Version.V3)]
LATER = [encode_packet(packet, Version.V5) for packet in PACKETS]


def read(before: bytes, data: bytes) -> None:
    """Give bytes to the machine of a connection, behind others that are right."""
    machine = ConnectionMachine(MqttOptions())
    machine.feed(before)
    with contextlib.suppress(MqttError):
        if before:
            machine.next_packet()
            machine.accept(session_present=False, properties={})
        machine.feed(data)
        while machine.next_packet() is not None:
            pass


@pytest.mark.parametrize("before", [b"", *VALID], ids=["nothing", "5", "3.1.1"])
def test_changed_packets(before: bytes) -> None:
    assert try_all(partial(read, before), LATER if before else VALID, FEW) == FEW


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("before", [b"", *VALID], ids=["nothing", "5", "3.1.1"])
def test_many_changed_packets(before: bytes) -> None:
    assert try_all(partial(read, before), LATER if before else VALID, MANY) == MANY
