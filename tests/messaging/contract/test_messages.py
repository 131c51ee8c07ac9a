"""Messages: contents, properties, order, requests and responses."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import pytest
from messaging.conftest import MakeQueue, Target

from qmf.messaging import (
    Address,
    Empty,
    EncodeError,
    Message,
    Session,
)


def test_a_message_is_sent_and_received(session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address)
    sender.send("hello")
    message = receiver.fetch(timeout=10)
    assert message.content == "hello"
    assert message.content_type == "text/plain"
    session.acknowledge()
    with pytest.raises(Empty):
        receiver.fetch(timeout=0)


@pytest.mark.parametrize(
    "content",
    ["text", "", "ä€😀", b"", b"\x00\xff", {"a": 1, "b": {"c": [1, 2.5, "x", None, True]}}, [1, "two", [3.0]], None],
    ids=repr,
)
def test_contents_round_trip(session: Session, queue: MakeQueue, content: object) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address)
    sender.send(Message(content))
    message = receiver.fetch(timeout=10)
    assert message.content == content
    assert type(message.content) is type(content)
    session.acknowledge()


@pytest.mark.only("embedded", "qpidd", "artemis")
@pytest.mark.parametrize(
    "content",
    [
        0,
        -(2**63),
        2**64 - 1,
        2.5,
        True,
        datetime(2026, 2, 3, 4, 5, 6, 789_000, tzinfo=UTC),
        Decimal("-12.340"),
        Decimal("1E+6000"),
        UUID(int=7),
        {"when": datetime(1969, 1, 1, tzinfo=UTC), "cost": [Decimal("9.99")], "id": UUID(int=9)},
    ],
    ids=repr,
)
def test_values_of_python_round_trip(broker: Target, session: Session, queue: MakeQueue, content: object) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address)
    if broker.name == "qpidd" and isinstance(content, Decimal):
        with pytest.raises(EncodeError, match="qpidd closes the connection"):
            sender.send(content)
        return
    sender.send(content)
    is_property = not isinstance(content, dict | Decimal)
    sender.send(Message("x", properties={"value": content if is_property else 1}))
    message = receiver.fetch(timeout=10)
    assert (message.content, message.content_type) == (content, "amqp/map" if isinstance(content, dict) else None)
    assert type(message.content) is type(content)
    if is_property:
        value = receiver.fetch(timeout=10).properties["value"]
        assert (value, type(value)) == (content, type(content))
    session.acknowledge()


def test_properties_round_trip(broker: Target, session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address)
    sent = Message(
        "x",
        id="id-1",
        subject="subject",
        reply_to="answers/key",
        correlation_id="corr-1",
        durable=True,
        priority=7,
        ttl=60.0,
        properties={"text": "ä", "yes": True, "int": -(2**40), "float": 2.5, "empty": ""},
    )
    sender.send(sent)
    message = receiver.fetch(timeout=10)
    session.acknowledge()
    assert (message.id, message.subject, message.correlation_id) == ("id-1", "subject", "corr-1")
    assert (message.durable, message.priority) == (True, 7)
    assert message.ttl is not None
    assert 0 < message.ttl <= 60
    assert isinstance(message.reply_to, Address)
    assert (message.reply_to.name, message.reply_to.subject) == ("answers", "key")
    for name, value in sent.properties.items():
        assert message.properties[name] == value
        assert type(message.properties[name]) is type(value)
    assert not message.redelivered


@pytest.mark.parametrize("content", ["text", {"a": 1}])
@pytest.mark.parametrize("later", [False, True])
def test_the_sender_says_whether_messages_are_durable_that_do_not(
    session: Session, queue: MakeQueue, later: bool, content: object
) -> None:
    address = queue()
    sender = session.sender(address, durable=None if later else True)
    if later:
        sender.send(Message(content))
        sender.durable = True
    assert sender.durable is True
    default = Message(content)
    for message in (default, Message(content, subject="s"), Message(content, durable=False)):
        sender.send(message)
    assert default.durable is None
    sender.durable = False
    sender.send(Message(content))
    sender.send(Message(content, durable=True))
    receiver = session.receiver(address, capacity=10)
    expected = [False] * later + [True, True, False, False, True]
    assert [bool(receiver.fetch(timeout=10).durable) for _ in expected] == expected
    session.acknowledge()


def test_messages_keep_their_order(session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address, capacity=50)
    for number in range(500):
        sender.send({"number": number}, sync=False)
    sender.sync(timeout=30)
    assert sender.unsettled() == 0
    assert [receiver.fetch(timeout=10).content["number"] for _ in range(500)] == list(range(500))
    session.acknowledge()
    assert receiver.unsettled() == 0


def test_request_and_response(broker: Target, queue: MakeQueue) -> None:
    address = queue()

    def serve() -> None:
        with broker.Connection.establish(broker.url, timeout=10) as connection:
            session = connection.session()
            request = session.receiver(address).fetch(timeout=20)
            assert request.reply_to is not None
            with session.sender(request.reply_to) as answers:
                answers.send(Message(request.content.upper(), correlation_id=request.correlation_id))
            session.acknowledge()

    thread = threading.Thread(target=serve)
    thread.start()
    with broker.Connection.establish(broker.url, timeout=10) as connection:
        session = connection.session()
        answers = session.receiver("#")
        session.sender(address).send(Message("hello", reply_to=answers.source, correlation_id="7"))
        answer = answers.fetch(timeout=20)
        assert (answer.content, answer.correlation_id) == ("HELLO", "7")
        session.acknowledge()
    thread.join()
