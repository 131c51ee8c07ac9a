"""A message of MQTT as clients of AMQP see it, and the reverse; nothing is lost that both have."""

from __future__ import annotations

import math
from typing import Any
from uuid import UUID

import pytest
from broker.protocols.mqtt.codec.packets_made import binaries, properties, topics
from broker.protocols.mqtt.wire_client import connect, mqtt_broker
from hypothesis import given
from hypothesis import strategies as st

from qmf.broker.nodes.message import Message, read_message
from qmf.broker.protocols.mqtt.codec.fields import PacketFields, encode_variable
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty, Properties, read_properties
from qmf.broker.protocols.mqtt.codec.values import PacketType, Version
from qmf.broker.protocols.mqtt.mapping import UnmappableError, read_content, to_message
from qmf.codec.message import Message as AmqpMessage
from qmf.codec.message import Section, decode_message, encode_message
from qmf.codec.types import Symbol, UInt8
from qmf.messaging import aio
from qmf.messaging.message import Message as ApiMessage

_P = PacketProperty
OWN = {_P.TOPIC_ALIAS, _P.SUBSCRIPTION_ID, _P.MESSAGE_EXPIRY}


def stored(
    topic: str = "a/b", payload: bytes = b"x", qos: int = 0, given: Properties | None = None, **more: Any
) -> Message:
    return to_message(
        topic, payload, qos, retain=False, properties=given or {}, exchange="mqtt", now=0.0, origin=None, **more
    )


def properties_of(encoded: bytes) -> Properties:
    return read_properties(PacketFields(encode_variable(len(encoded)) + encoded), PacketType.PUBLISH)


@pytest.mark.slow
@given(topics, binaries, st.integers(0, 2), properties(PacketType.PUBLISH, Version.V5), st.booleans())
def test_messages_come_back_as_they_were(
    topic: str, payload: bytes, qos: int, given: dict[PacketProperty, Any], retain: bool
) -> None:
    made = to_message(topic, payload, qos, retain=retain, properties=given, exchange="mqtt", now=100.0, origin=None)
    # The broker reads the same from its bytes, after a restart, say.
    read = read_message(made.data, 100.0)
    assert (read.subject, read.durable, read.correlated) == (made.subject, made.durable, made.correlated)
    content, body = read_content(read, "mqtt")
    assert (content.name, content.topic, body, content.qos, content.retain) == (
        topic,
        topic.encode(),
        payload,
        qos,
        retain,
    )
    expected = {kind: value for kind, value in given.items() if kind not in OWN}
    found = dict(properties_of(content.properties))
    assert {name: value for name, value in found.items() if name is not _P.RESPONSE_TOPIC} == {
        name: value for name, value in expected.items() if name is not _P.RESPONSE_TOPIC
    }
    if (expiry := given.get(_P.MESSAGE_EXPIRY)) is not None:
        assert made.expires_at is not None
        assert read.expires_at is not None
        assert made.expires_at == 100.0 + expiry
        assert math.isclose(read.expires_at, min(made.expires_at, 100.0 + (1 << 32) / 1000), abs_tol=0.01)


def test_a_message_of_mqtt_for_clients_of_amqp() -> None:
    given = {
        _P.CONTENT_TYPE: "text/plain",
        _P.RESPONSE_TOPIC: "answers/1",
        _P.CORRELATION_DATA: b"\1\2",
        _P.USER_PROPERTY: (("a", "1"), ("b", "2")),
        _P.MESSAGE_EXPIRY: 10,
        _P.PAYLOAD_FORMAT: 1,
    }
    assert decode_message(stored("a/b", b"text", 2, given).data, text=False) == AmqpMessage(
        durable=True,
        ttl=10.0,
        subject="a/b",
        reply_to="mqtt/answers/1",
        correlation_id=b"\1\2",
        content_type="text/plain",
        application_properties={"a": "1", "b": "2"},
        message_annotations={"x-opt-mqtt-qos": 2, "x-opt-mqtt-payload-format": 1},
        section=Section.DATA,
        body=b"text",
    )


@pytest.mark.parametrize(
    ("fields", "qos", "payload", "expected"),
    [
        ({}, 0, b"", {}),
        ({"durable": True, "section": Section.DATA, "body": b"x"}, 1, b"x", {}),
        ({"section": Section.VALUE, "body": "text"}, 0, b"text", {_P.PAYLOAD_FORMAT: 1}),
        ({"section": Section.VALUE, "body": b"bin"}, 0, b"bin", {}),
        (
            {"section": Section.VALUE, "body": {"a": 1, "b": [True, None, UUID(int=1)]}},
            0,
            b'{"a": 1, "b": [true, null, "00000000-0000-0000-0000-000000000001"]}',
            {_P.PAYLOAD_FORMAT: 1, _P.CONTENT_TYPE: "application/json"},
        ),
        (
            {"section": Section.SEQUENCE, "body": [1, "x"]},
            0,
            b'[1, "x"]',
            {_P.PAYLOAD_FORMAT: 1, _P.CONTENT_TYPE: "application/json"},
        ),
        ({"message_annotations": {"x-opt-mqtt-qos": UInt8(2)}}, 2, b"", {}),
        ({"correlation_id": "text"}, 0, b"", {_P.CORRELATION_DATA: b"text"}),
        ({"correlation_id": 7}, 0, b"", {_P.CORRELATION_DATA: b"7"}),
        ({"reply_to": "mqtt/x/y"}, 0, b"", {_P.RESPONSE_TOPIC: "x/y"}),
        ({"reply_to": "some-queue"}, 0, b"", {}),
        ({"content_type": "text/plain"}, 0, b"", {_P.CONTENT_TYPE: "text/plain"}),
        (
            {
                "content_type": "text/x",
                "message_annotations": {"x-opt-mqtt-payload-format": UInt8(0)},
                "section": Section.VALUE,
                "body": [1],
            },
            0,
            b"[1]",
            {_P.PAYLOAD_FORMAT: 0, _P.CONTENT_TYPE: "text/x"},
        ),
        (
            {"content_type": "", "message_annotations": {"x-opt-mqtt-content-type": "ü"}},
            0,
            b"",
            {_P.CONTENT_TYPE: "ü"},
        ),
        ({"message_annotations": {"x-opt-mqtt-payload-format": "text"}}, 0, b"", {}),
        (
            {"application_properties": {"n": 1, "t": True, "none": None, "b": b"\xff", "s": Symbol("x")}},
            0,
            b"",
            {_P.USER_PROPERTY: (("n", "1"), ("t", "true"), ("none", ""), ("b", "\ufffd"), ("s", "x"))},
        ),
    ],
)
def test_a_message_of_amqp_for_clients_of_mqtt(
    fields: dict[str, Any], qos: int, payload: bytes, expected: Properties
) -> None:
    message = read_message(encode_message(AmqpMessage(subject="a", **fields)), 0.0)
    content, body = read_content(message, "mqtt")
    assert (content.name, content.qos, body, properties_of(content.properties)) == ("a", qos, payload, expected)


@pytest.mark.parametrize("subject", [None, "a/#", "+", "a\0"])
def test_a_subject_that_is_no_topic(subject: str | None) -> None:
    message = read_message(encode_message(AmqpMessage(subject=subject, section=Section.DATA, body=b"")), 0.0)
    with pytest.raises(UnmappableError, match="is no topic"):
        read_content(message, "mqtt")


def test_a_property_that_is_too_long() -> None:
    fields = AmqpMessage(subject="a", application_properties={"long": "x" * 70_000}, section=Section.DATA, body=b"")
    with pytest.raises(UnmappableError, match="too long"):
        read_content(read_message(encode_message(fields), 0.0), "mqtt")


@pytest.mark.asyncio
async def test_messages_pass_between_both_protocols() -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker)
        await client.subscribe("from/amqp/#", qos=1)
        connection = aio.Connection(broker.url)
        await connection.open()
        session = await connection.session()
        receiver = await session.receiver("mqtt/from/mqtt/+")
        sender = await session.sender("mqtt")
        await sender.send(ApiMessage("hello", subject="from/amqp/1", durable=True, properties={"n": 1}))
        message = await client.publication()
        assert (message.topic, message.payload, message.qos) == ("from/amqp/1", b"hello", 1)
        assert message.properties[_P.USER_PROPERTY] == (("n", "1"),)
        given = {_P.RESPONSE_TOPIC: "from/amqp/answers", _P.CORRELATION_DATA: b"7", _P.USER_PROPERTY: (("a", "b"),)}
        await client.publish("from/mqtt/1", b"question", 1, properties=given)
        request = await receiver.fetch(timeout=30)
        assert (request.subject, request.content, request.properties["a"]) == ("from/mqtt/1", b"question", "b")
        answer = ApiMessage(b"answer", correlation_id=request.correlation_id)
        assert request.reply_to is not None
        answering = await session.sender(str(request.reply_to))
        await answering.send(answer)
        found = await client.publication()
        assert (found.topic, found.payload) == ("from/amqp/answers", b"answer")
        assert found.properties[_P.CORRELATION_DATA] == b"7"
        await connection.close()


@pytest.mark.asyncio
async def test_a_message_that_cannot_be_one_of_mqtt_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    async with mqtt_broker() as broker:
        client = await connect(broker)
        await client.subscribe("#")
        connection = aio.Connection(broker.url)
        await connection.open()
        session = await connection.session()
        sender = await session.sender("mqtt")
        for number in range(2):
            await sender.send(ApiMessage("x", subject="a", properties={"long": "x" * 70_000, "n": number}))
        await sender.send(ApiMessage("y", subject="a"))
        assert await client.payloads(1) == [b"y"]
        assert sum("cannot be one of MQTT" in record.message for record in caplog.records) == 1
        queue = broker.registry.queue("mqtt/client")
        assert queue is not None
        assert queue.contents.depth.count == 0
        await connection.close()


@pytest.mark.parametrize(
    "given",
    [
        {_P.CONTENT_TYPE: ""},
        {_P.CONTENT_TYPE: "ü", _P.USER_PROPERTY: (("content-type", "a"),)},
        {_P.PAYLOAD_FORMAT: 0},
        {_P.CORRELATION_DATA: b""},
        {_P.USER_PROPERTY: (("", ""), ("x-opt-mqtt-qos", "2"))},
    ],
    ids=["an empty content type", "one that is not ASCII", "no text", "empty correlation data", "odd names"],
)
def test_properties_are_sent_as_they_came(given: dict[PacketProperty, Any]) -> None:
    content, _ = read_content(stored(given=given), "mqtt")
    assert properties_of(content.properties) == given
