"""Content types: objects of programs as the content of messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, assert_type

import attrs
import msgspec
import pydantic
import pytest

from qmf.messaging import (
    JSON,
    Connection,
    ConnectionError,
    ContentError,
    ContentType,
    ContentTypes,
    DecodeError,
    Empty,
    EncodeError,
    Message,
    ReceivedMessage,
    Receiver,
    Sender,
    Session,
    aio,
)


class Order(pydantic.BaseModel):
    item: str
    number: int


class Rush(Order):
    until: int = 0


@attrs.frozen
class Point:
    x: int
    y: int


#: As a program with pydantic writes it, and one with attrs.
ORDER = ContentType(
    "application/vnd.shop.order+json", lambda order: order.model_dump_json().encode(), Order.model_validate_json, Order
)
POINT = ContentType(
    "application/json", lambda point: json.dumps(attrs.asdict(point)).encode(), lambda data: Point(**json.loads(data))
)


@pytest.fixture
def connection(embedded: str) -> Iterator[Connection]:
    with Connection.establish(embedded, timeout=10, content_types=[ORDER, JSON]) as connection:
        yield connection


@pytest.fixture
def session(connection: Connection) -> Session:
    return connection.session()


ADDRESS = "#"


def pair(session: Session, content: Any = None, received: Any = None) -> tuple[Sender, Receiver]:
    receiver = session.receiver(ADDRESS, content=received)
    return session.sender(receiver.source, content=content), receiver


def test_a_class_of_the_connection_types_sender_and_receiver(session: Session) -> None:
    receiver = session.receiver(ADDRESS, content=Order)
    sender = session.sender(receiver.source, content=Order)
    assert_type(receiver, Receiver[Order])
    assert_type(sender, Sender[Order])
    sender.send(Order(item="tea", number=3))
    sender.send(Message(Order(item="pot", number=1), subject="s"))
    message = receiver.fetch(timeout=10)
    assert_type(message, ReceivedMessage[Order])
    assert_type(message.content, Order)
    assert (message.content, message.content_type) == (Order(item="tea", number=3), ORDER.name)
    assert next(receiver).content.number == 1
    session.acknowledge()


def test_a_content_type_types_them_without_the_connection(session: Session) -> None:
    receiver = session.receiver(ADDRESS, content=POINT)
    sender = session.sender(receiver.source, content=POINT)
    assert_type(receiver, Receiver[Point])
    sender.send(Point(1, 2))
    assert receiver.fetch(timeout=10).content == Point(1, 2)
    session.acknowledge()


class Reading(msgspec.Struct):
    place: str
    value: float


def test_a_class_of_msgspec(session: Session) -> None:
    decoder = msgspec.msgpack.Decoder(Reading)
    reading = ContentType("application/msgpack", msgspec.msgpack.encode, decoder.decode, Reading)
    sender, receiver = pair(session, reading, reading)
    assert_type(receiver, Receiver[Any])
    sender.send(Reading("kitchen", 21.5))
    message = receiver.fetch(timeout=10)
    assert (message.content, message.content_type) == (Reading("kitchen", 21.5), "application/msgpack")
    session.acknowledge()


@pytest.mark.parametrize(
    ("message", "content", "content_type"),
    [
        (Message(Order(item="tea", number=3)), Order(item="tea", number=3), ORDER.name),
        (Message(Rush(item="tea", number=3)), Order(item="tea", number=3), ORDER.name),
        (Message({"a": [1, None, "ä"]}, content_type="application/json"), {"a": [1, None, "ä"]}, "application/json"),
        (Message([1], content_type="Application/JSON; v=1"), [1], "Application/JSON; v=1"),
        (Message(5, content_type="application/json"), 5, "application/json"),
        (Message('{"a":1}', content_type="application/json"), {"a": 1}, "application/json"),
        (Message(b'{"a":1}', content_type="application/json"), {"a": 1}, "application/json"),
        (Message({"a": 1}), {"a": 1}, "amqp/map"),
        (Message("text"), "text", "text/plain"),
        (Message(b"x", content_type="image/png"), b"x", "image/png"),
        (Message(None), None, None),
    ],
    ids=repr,
)
def test_those_of_the_connection_apply_by_class_and_by_name(
    session: Session, message: Message, content: object, content_type: str | None
) -> None:
    sender, receiver = pair(session)
    before = (message.content, message.content_type)
    sender.send(message)
    received = receiver.fetch(timeout=10)
    assert (received.content, received.content_type) == (content, content_type)
    assert (message.content, message.content_type) == before
    session.acknowledge()


def test_they_are_bytes_for_others(session: Session, embedded: str) -> None:
    receiver = session.receiver("typed-bytes; {create: always}")
    session.sender("typed-bytes").send(Order(item="tea", number=3))
    receiver.close()
    with Connection.establish(embedded, timeout=10) as other:
        message = other.session().receiver("typed-bytes").fetch(timeout=10)
        assert (message.content, message.content_type) == (b'{"item":"tea","number":3}', ORDER.name)
        message.accept()


@pytest.mark.parametrize("content", [dict, str, int, float, bool, datetime])
def test_classes_of_amqp_need_no_content_type(session: Session, content: type) -> None:
    sender, receiver = pair(session, content, content)
    value = datetime(2026, 1, 1, tzinfo=UTC) if content is datetime else content()
    sender.send(value)
    message = receiver.fetch(timeout=10)
    assert (message.content, type(message.content)) == (value, content)
    sender.send(b"other")
    with pytest.raises(DecodeError, match=f"content of bytes, where {content.__name__} is expected"):
        receiver.fetch(timeout=10)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (Message(b'{"item": "tea"}'), "content cannot be decoded as 'application/vnd.shop.order[+]json': 1 validation"),
        (Message(b"{}", content_type="image/png"), "content type 'image/png', where 'application/vnd.shop.order"),
        (Message({"item": "tea", "number": 1}), "content of dict, where 'application/vnd.shop.order"),
    ],
    ids=repr,
)
def test_what_cannot_be_decoded_is_left_to_the_program(session: Session, message: Message, text: str) -> None:
    receiver = session.receiver(ADDRESS, content=Order)
    sender = session.sender(receiver.source)
    sender.send(message)
    sender.send(b'{"item": "tea", "number": 2}')
    with pytest.raises(DecodeError, match=text) as failed:
        receiver.fetch(timeout=10)
    assert receiver.fetch(timeout=10).content.number == 2
    session.acknowledge()
    undecoded = failed.value.message
    assert isinstance(undecoded, ReceivedMessage)
    assert undecoded.content == message.content
    undecoded.release()
    with pytest.raises(DecodeError) as failed:
        next(receiver)
    failed.value.message.reject()
    with pytest.raises(Empty):
        receiver.fetch(timeout=0)
    assert receiver.unsettled() == 0


def test_bytes_without_a_name_and_text_are_decoded(session: Session) -> None:
    receiver = session.receiver(ADDRESS, content=Order)
    sender = session.sender(receiver.source)
    text = '{"item": "tea", "number": 2}'
    for message in (Message(text), Message(text.encode()), Message(text.encode(), "application/octet-stream")):
        sender.send(message)
        assert receiver.fetch(timeout=10).content == Order(item="tea", number=2)
    session.acknowledge()


def test_the_senders_own_type_applies_to_text(session: Session) -> None:
    receiver = session.receiver(ADDRESS, content=JSON)
    sender = session.sender(receiver.source, content=JSON)
    for value in ("text", {"a": 1}, None, 2.5, True):
        sender.send(value)
        message = receiver.fetch(timeout=10)
        assert (message.content, message.content_type) == (value, "application/json")
    session.acknowledge()


def test_what_cannot_be_encoded_is_an_error(session: Session) -> None:
    sender, _ = pair(session, JSON)
    with pytest.raises(EncodeError, match="content of float cannot be encoded as 'application/json': Out of range"):
        sender.send(float("nan"))
    with pytest.raises(EncodeError, match="content of dict does not match content type 'application/other'"):
        sender.send(Message({}, content_type="application/other"))
    sender, _ = pair(session)
    with pytest.raises(EncodeError, match=r"content must be .*, not Point"):
        sender.send(Point(1, 2))


def test_classes_without_a_content_type_are_refused(session: Session) -> None:
    for open_link in (session.sender, session.receiver):
        with pytest.raises(ContentError, match="no content type is for Point: give a ContentType, or"):
            open_link(ADDRESS, content=Point)
        with pytest.raises(ContentError, match="content must be a ContentType or a class, not 5"):
            open_link(ADDRESS, content=5)  # type: ignore[call-overload]


def test_a_registry_has_each_name_and_class_once() -> None:
    with pytest.raises(ContentError, match="two content types have the name 'APPLICATION/json'"):
        ContentTypes([JSON, attrs.evolve(JSON, name="APPLICATION/json")])
    with pytest.raises(ContentError, match="two content types are for Order"):
        ContentTypes([ORDER, attrs.evolve(ORDER, name="a/b")])
    with pytest.raises(ContentError, match="must be of class ContentType, not 5"):
        ContentTypes([5])  # type: ignore[list-item]
    with pytest.raises(ContentError, match="has a name such as 'application/json', not 'json'"):
        attrs.evolve(JSON, name="json")
    with pytest.raises(ContentError, match="content of str is a value of AMQP"):
        ContentType("a/b", str.encode, bytes.decode, str)
    with pytest.raises(ConnectionError, match="option content_types: two content types"):
        Connection("localhost", content_types=[JSON, JSON])
    types = ContentTypes([ORDER])
    assert Connection("localhost", content_types=types).options.content_types is types
    assert (types.of(Rush), types.of(Point), types.find("x/y")) == (ORDER, None, None)


def test_with_asyncio(embedded: str) -> None:
    async def check() -> None:
        async with aio.Connection(embedded, content_types=ContentTypes([ORDER])) as connection:
            session = await connection.session()
            receiver = await session.receiver(ADDRESS, content=Order)
            assert_type(receiver, aio.Receiver[Order])
            async with session.sender(receiver.source, content=ORDER) as sender:
                assert_type(sender, aio.Sender[Order])
                await sender.send(Order(item="tea", number=3))
                await sender.send(Message(b"{}", content_type=ORDER.name))  # type: ignore[arg-type]
            async for message in receiver:
                assert_type(message, aio.ReceivedMessage[Order])
                assert message.content.item == "tea"
                break
            with pytest.raises(DecodeError) as failed:
                await receiver.fetch(timeout=10)
            await failed.value.message.reject()
            await message.accept()
            assert receiver.unsettled() == 0

    asyncio.run(check())
