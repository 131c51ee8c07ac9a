"""Messages of STOMP as the stored form, and back."""

from __future__ import annotations

import time
import uuid

import pytest

from qmf.broker.nodes.message import read_message
from qmf.broker.protocols.stomp.frames import Frame
from qmf.broker.protocols.stomp.mapping import InvalidHeader, encode_stored, read_stored
from qmf.codec.message import Message as AmqpMessage
from qmf.codec.message import Section, decode_message, encode_message


def stored(body: bytes = b"", /, key: str = "", **headers: str) -> AmqpMessage:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return decode_message(encode_stored(Frame("SEND", {"destination": "/queue/a", **named}, body), key, "back"))


def frame_of(message: AmqpMessage, *, with_type: bool = True) -> tuple[dict[str, str], bytes]:
    headers, body = read_stored(read_message(encode_message(message), time.monotonic()), with_type=with_type)
    assert len(dict(headers)) == len(headers)
    return dict(headers), body


def test_headers_that_amqp_has() -> None:
    message = stored(
        b"x",
        content_type="text/plain",
        correlation_id="7",
        type="order",
        priority="12",
        persistent="true",
        timestamp="1000",
        JMSXGroupID="g",
        receipt="r",
        transaction="t",
        color="red",
    )
    assert (message.content_type, message.correlation_id, message.reply_to) == ("text/plain", "7", "back")
    assert (message.subject, message.priority, message.durable) == ("order", 9, True)
    assert (message.creation_time, message.group_id) == (1000, "g")
    assert message.application_properties == {"color": "red"}


def test_the_key_is_the_subject() -> None:
    assert stored(key="a.b", type="order").subject == "a.b"
    assert stored().subject is None


@pytest.mark.parametrize(
    ("headers", "section", "body"),
    [
        ({}, Section.VALUE, "é"),
        ({"content_length": "2"}, Section.DATA, "é".encode()),
        ({"content_type": "text/html", "content_length": "2"}, Section.VALUE, "é"),
        ({"content_type": "application/json"}, Section.DATA, "é".encode()),
    ],
)
def test_what_is_text(headers: dict[str, str], section: Section, body: object) -> None:
    message = stored("é".encode(), **headers)
    assert (message.section, message.body) == (section, body)


def test_bytes_that_are_no_text() -> None:
    assert stored(b"\xff").body == b"\xff"


def test_the_time_to_live_and_the_time_of_delivery() -> None:
    assert stored(ttl="1500").ttl == 1.5
    assert stored(expires="0").ttl is None
    assert stored(expires="1").ttl == 0.001
    left = stored(expires=str(round(time.time() * 1000) + 60_000)).ttl
    assert left is not None
    assert 30 < left <= 60


def test_scheduled_delivery() -> None:
    frame = Frame("SEND", {"AMQ_SCHEDULED_DELAY": "5000"}, b"")
    assert decode_message(encode_stored(frame, "", None)).message_annotations == {"x-opt-delivery-delay": 5000}
    frame = Frame("SEND", {"AMQ_SCHEDULED_TIME": "7"}, b"")
    assert decode_message(encode_stored(frame, "", None)).message_annotations == {"x-opt-delivery-time": 7}


@pytest.mark.parametrize("name", ["priority", "expires", "ttl", "timestamp"])
@pytest.mark.parametrize("value", ["", "-1", "1.5", "x", "9" * 19])
def test_numbers_that_are_none(name: str, value: str) -> None:
    with pytest.raises(InvalidHeader, match=f"{name} is no number"):
        stored(**{name: value})


def test_a_content_type_that_is_not_ascii() -> None:
    with pytest.raises(InvalidHeader, match="content-type is not ASCII"):
        stored(content_type="téxt")


def test_messages_of_amqp() -> None:
    headers, body = frame_of(
        AmqpMessage(
            durable=True,
            priority=7,
            subject="order",
            reply_to="back",
            correlation_id=uuid.UUID(int=1),
            content_type="text/plain",
            application_properties={"n": 1, "b": True, "bytes": b"x", "none": None, "type": "other", "ack": "x"},
            section=Section.VALUE,
            body="é",
        )
    )
    assert body == "é".encode()
    assert headers == {
        "content-type": "text/plain",
        "correlation-id": "00000000-0000-0000-0000-000000000001",
        "reply-to": "back",
        "type": "order",
        "persistent": "true",
        "priority": "7",
        "n": "1",
        "b": "true",
        "bytes": "x",
        "none": "",
    }


@pytest.mark.parametrize(
    ("section", "content", "headers", "body"),
    [
        (Section.VALUE, "a", {"content-type": "text/plain"}, b"a"),
        (Section.VALUE, "a\0", {"content-type": "text/plain", "content-length": "2"}, b"a\0"),
        (Section.DATA, b"a", {"content-length": "1"}, b"a"),
        (Section.NONE, None, {"content-length": "0"}, b""),
        (Section.VALUE, {"a": [1, b"x", uuid.UUID(int=1)]}, {"content-type": "application/json"}, b'{"a": [1, "x", '),
        (Section.SEQUENCE, [1, None], {"content-type": "application/json", "content-length": "9"}, b"[1, null]"),
    ],
)
def test_bodies_of_amqp(section: Section, content: object, headers: dict[str, str], body: bytes) -> None:
    found, found_body = frame_of(AmqpMessage(section=section, body=content, subject="key"), with_type=False)
    assert found.items() >= headers.items()
    assert "type" not in found
    assert found_body.startswith(body)


def test_a_message_that_expires() -> None:
    headers, _ = frame_of(AmqpMessage(ttl=60))
    assert 0 < int(headers["expires"]) - time.time() * 1000 <= 60_001
