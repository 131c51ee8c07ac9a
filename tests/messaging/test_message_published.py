"""Messages, as programs for the published API use them: what is sent compares equal to what arrives."""

from __future__ import annotations

import pytest
from messaging.conftest import MakeQueue

from qmf.codec.message import decode_message
from qmf.messaging import Connection, EncodeError, Message, Session
from qmf.messaging.contents import decode, encode

ATTRIBUTES = (
    "id",
    "subject",
    "user_id",
    "reply_to",
    "correlation_id",
    "durable",
    "priority",
    "ttl",
    "redelivered",
    "content_type",
    "content",
    "properties",
)


def attributes(message: Message) -> dict[str, object]:
    return {name: getattr(message, name) for name in ATTRIBUTES}


@pytest.mark.parametrize(
    "message",
    [
        Message(),
        Message("x"),
        Message(b"x"),
        Message({"a": [1, {"b": None}]}),
        Message([]),
        Message("x", content_type="text/html"),
        Message(content_type="of-nobody"),
        Message("x", durable=True),
        Message("x", durable=False),
        Message("x", priority=4),
        Message("x", priority=7, subject="s", correlation_id=b"\x00\xff", reply_to="answers"),
        Message("x", properties={"list": ["x", 2, [True]], "map": {"a": {"b": [None]}}, "empty": []}),
    ],
    ids=repr,
)
@pytest.mark.parametrize("durable", [None, False])
@pytest.mark.only("embedded")
def test_what_was_sent_equals_what_arrives(
    session: Session, queue: MakeQueue, message: Message, durable: bool | None
) -> None:
    address = queue()
    sender, receiver = session.sender(address, durable=durable), session.receiver(address)
    expected = attributes(message)
    for _ in range(3):  # those after the first are read by what is remembered of it
        sender.send(message)
        assert attributes(receiver.fetch(timeout=10)) == expected
    assert attributes(message) == expected
    session.acknowledge()


@pytest.mark.only("embedded", "qpidd")
def test_properties_may_be_nested(session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address)
    properties = {"list": ["x", 2], "map": {"a": [1.5]}}
    for _ in range(3):
        sender.send(Message("x", properties=properties))
        received = receiver.fetch(timeout=10)
        received.properties.pop("x-amqp-first-acquirer", None)  # which qpidd states in every message
        assert received.properties == properties
        received.properties["list"].append("changed")  # concerns this message alone
    session.acknowledge()


PARTS = {
    "x-amqp-first-acquirer": True,
    "x-amqp-delivery-count": 3,
    "x-amqp-delivery-annotations": {"x-opt-a": 1},
    "x-amqp-message-annotations": {"x-opt-b": "two", "x-opt-c": [3]},
    "x-amqp-content-encoding": "gzip",
    "x-amqp-absolute-expiry-time": 4_000_000_000_000,
    "x-amqp-creation-time": 1_700_000_000_000,
    "x-amqp-group-id": "group",
    "x-amqp-group-sequence": 12,
    "x-amqp-reply-to-group-id": "other",
}


def test_parts_of_a_message_without_an_attribute_are_properties() -> None:
    data = encode(Message("x", properties={**PARTS, "own": 1}))
    for _ in range(3):
        message = decode(data)
        assert message.properties == {**PARTS, "own": 1}
        assert message.redelivered
        message.properties["x-amqp-message-annotations"]["x-opt-c"].append(4)
    parts = decode_message(data)
    assert (parts.first_acquirer, parts.delivery_count, parts.group_id) == (True, 3, "group")
    assert dict(parts.application_properties) == {"own": 1}


def test_the_destination_can_be_given_as_a_property() -> None:
    message = decode(encode(Message("x", to="a", properties={"x-amqp-to": "b"}), to="c"))
    assert (message.to, message.properties) == ("b", {})


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("x-amqp-message-annotations", [1], "must be a map with names or numbers as keys, not [1]"),
        ("x-amqp-message-annotations", {1.5: 1}, "must be a map with names or numbers as keys, not {1.5: 1}"),
        ("x-amqp-first-acquirer", 1, "must be True or False, not 1"),
        ("x-amqp-delivery-count", -1, "must be a number, not -1"),
        ("x-amqp-creation-time", True, "must be a number, not True"),
        ("x-amqp-group-id", 1, "must be text, not 1"),
    ],
)
def test_a_part_of_a_wrong_type_is_named(name: str, value: object, reason: str) -> None:
    with pytest.raises(EncodeError) as caught:
        encode(Message("x", properties={name: value}))
    assert f"property {name!r} {reason}" in str(caught.value)


def test_the_subject_can_be_given_as_a_property_as_in_amqp_0_10() -> None:
    message = decode(encode(Message("x", properties={"qpid.subject": "s"})))
    assert (message.subject, message.properties) == ("s", {"qpid.subject": "s"})
    assert decode(encode(Message("x", subject="own", properties={"qpid.subject": "s"}))).subject == "own"
    assert decode(encode(Message("x", properties={"qpid.subject": "s"}), subject="of the sender")).subject != "s"


@pytest.mark.only("embedded")
def test_content_that_does_not_match_its_type_leaves_the_session_usable(
    connection: Connection, queue: MakeQueue
) -> None:
    session = connection.session()
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address)
    with pytest.raises(EncodeError):
        sender.send(Message(["x"], content_type="amqp/map"))
    sender.send("x")
    assert receiver.fetch(timeout=10).content == "x"
    session.acknowledge()
