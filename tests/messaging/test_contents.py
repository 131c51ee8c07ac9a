"""Messages to and from their encoding."""

from __future__ import annotations

import datetime as dt
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.codec import amqp010
from qmf.codec.message import Message as AmqpMessage
from qmf.codec.message import Section, decode_message, encode_message
from qmf.codec.types import Timestamp
from qmf.messaging import Address, DecodeError, EncodeError, Message
from qmf.messaging.contents import APP_ID, decode, encode

simple = (
    st.text()
    | st.binary()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.uuids()
    | st.datetimes(timezones=st.just(dt.UTC)).map(
        lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000)
    )
    | st.none()
)
values = st.recursive(
    simple, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=10
)
decimals = st.decimals(allow_nan=False).filter(lambda number: len(number.as_tuple().digits) <= 34)
contents = simple | decimals | st.lists(decimals) | st.dictionaries(st.text(), values) | st.lists(values)


@given(contents, st.dictionaries(st.text(), values, max_size=5))
def test_contents_and_properties_round_trip(content: object, properties: dict[str, object]) -> None:
    properties.pop(APP_ID, None)
    message = decode(encode(Message(content, properties=properties)))
    assert message.content == content
    assert type(message.content) is type(content)
    assert message.properties == properties
    assert {name: type(value) for name, value in message.properties.items()} == {
        name: type(value) for name, value in properties.items()
    }


def test_times_that_python_has_not_are_numbers() -> None:
    data = encode_message(AmqpMessage(section=Section.VALUE, body=[Timestamp(2**62), Timestamp(0)]))
    assert decode(data).content == [2**62, dt.datetime(1970, 1, 1, tzinfo=dt.UTC)]


@pytest.mark.parametrize("id", ["text", UUID(int=7), 2**64 - 1, b"\x00\xff", None])
def test_ids_round_trip(id: object) -> None:
    message = decode(encode(Message("x", id=id, correlation_id=id)))
    assert (message.id, message.correlation_id) == (id, id)


def test_all_properties_round_trip() -> None:
    sent = Message(
        "x", subject="s", user_id="ann", reply_to="q/k", durable=True, priority=9, ttl=2.5, to="node", content_type=None
    )
    message = decode(encode(sent))
    assert (message.subject, message.user_id, message.to, message.priority) == ("s", "ann", "node", 9)
    assert (message.durable, message.ttl, message.redelivered) == (True, 2.5, False)
    assert message.reply_to == "q/k"


def test_defaults_of_the_sender_do_not_change_the_message() -> None:
    message = Message("x")
    received = decode(encode(message, subject="default", to="node"))
    assert (received.subject, received.to, received.priority) == ("default", "node", None)
    assert (message.subject, message.to) == (None, None)
    assert decode(encode(Message("x", subject="own", to="other"), subject="default", to="node")).subject == "own"


@pytest.mark.parametrize(
    ("message", "section", "content_type"),
    [
        (Message("text"), Section.VALUE, None),
        (Message("text", content_type="text/plain; charset=utf8"), Section.VALUE, "text/plain; charset=utf8"),
        (Message("{}", content_type="application/json"), Section.DATA, "application/json"),
        (Message(b"data"), Section.DATA, None),
        (Message(b"data", content_type="image/png"), Section.DATA, "image/png"),
        (Message({"a": 1}), Section.VALUE, None),
        (Message([1]), Section.VALUE, None),
        (Message({"a": 1}, properties={APP_ID: "qmf2"}), Section.DATA, "amqp/map"),
        (Message([1], properties={APP_ID: "qmf2"}), Section.DATA, "amqp/list"),
        (Message(None), Section.VALUE, None),
    ],
)
def test_sections(message: Message, section: Section, content_type: str | None) -> None:
    sent = decode_message(encode(message))
    assert (sent.section, sent.content_type) == (section, content_type)
    received = decode(encode(message))
    if message.content_type != "application/json":
        assert received.content == message.content


@pytest.mark.parametrize(
    ("kind", "body", "content"),
    [
        ("amqp/map", amqp010.encode_map({"a": 1}), {"a": 1}),
        ("amqp/list", amqp010.encode_list([1, "x"]), [1, "x"]),
        ("text/plain", "ä".encode(), "ä"),
        ("text/plain", b"\xff", b"\xff"),
        (None, b"raw", b"raw"),
    ],
)
def test_data_is_read_by_its_content_type(kind: str | None, body: bytes, content: object) -> None:
    data = encode_message(AmqpMessage(content_type=kind, section=Section.DATA, body=body))
    assert decode(data).content == content


@pytest.mark.parametrize(
    ("text", "address"),
    [("queue", "queue"), ("exchange/key", "exchange/key"), ("/queue/x", "'/queue/x'"), ("a b", "'a b'")],
)
def test_reply_addresses_of_other_clients(text: str, address: str) -> None:
    data = encode_message(AmqpMessage(reply_to=text, section=Section.DATA, body=b""))
    reply_to = decode(data).reply_to
    assert isinstance(reply_to, Address)
    assert reply_to == address


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        (Message("\ud800", content_type="x/y"), "content cannot be encoded: 'utf-8' codec can't encode"),
        (
            Message(object(), content_type=None),
            "content must be str, bytes, dict, list, int, float, bool, datetime, Decimal, UUID or None, not object",
        ),
        (Message({"a": object()}), "cannot encode"),
        (Message({"a": 1}, content_type="text/plain"), "content of dict does not match content type 'text/plain'"),
        (Message("x", priority=256), "priority must be 0 to 255, not 256"),
        (Message("x", id=-1), "id must be str, UUID, bytes or an unsigned 64-bit int, not -1"),
        (Message("x", correlation_id=1.5), "correlation_id must be"),
        (Message("x", properties={"a": object()}), "property 'a' cannot be of type object"),
        (Message("x", properties={1: "a"}), "the name of a property must be str, not 1"),  # type: ignore[dict-item]
        (Message("x", ttl=-1), "ttl"),
        (Message({"a": 2**70}), "encoded"),
    ],
)
def test_what_cannot_be_encoded_is_named(message: Message, fault: str) -> None:
    with pytest.raises(EncodeError) as caught:
        encode(message)
    assert fault in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        b"garbage",
        encode_message(AmqpMessage(content_type="amqp/map", section=Section.DATA, body=b"no map")),
        encode_message(AmqpMessage(content_type="amqp/list", section=Section.DATA, body=b"no list")),
    ],
)
def test_what_cannot_be_decoded(data: bytes) -> None:
    with pytest.raises(DecodeError, match="message cannot be decoded"):
        decode(data)


@given(st.binary())
def test_garbage_is_a_message_or_an_error(data: bytes) -> None:
    try:
        message = decode(data)
    except DecodeError:
        return
    assert isinstance(message, Message)


@pytest.mark.parametrize("size", [0, 10, 300, 70_000])
@pytest.mark.parametrize("content", ["text", b"data", {"a": 1}, ["x", 2], None])
def test_a_message_in_the_common_layout_is_read_like_any_other(content: object, size: int) -> None:
    message = Message(content, subject="s" * size, id="one", properties={"n": 5, "name": "value"}, durable=True, ttl=3)
    data = encode(message)
    common, other = decode(data), decode(data + b"\x00\x53\x78\xc1\x01\x00")  # with an empty footer
    for found in (common, other):
        assert vars(found) | {"delivery": None} == vars(decode(data)) | {"delivery": None}
    assert (common.content, common.subject, common.properties) == (content, "s" * size, {"n": 5, "name": "value"})


def test_what_is_read_does_not_share_its_properties() -> None:
    data = encode(Message("text", properties={"name": "value"}))
    first, second = decode(data), decode(data)
    first.properties["name"] = "changed"
    assert second.properties == {"name": "value"} == decode(data).properties


@pytest.mark.parametrize("cut", range(1, 30))
def test_a_message_that_is_cut_off_is_malformed(cut: int) -> None:
    data = encode(Message("some text that is long enough", subject="subject", to="node"))
    with pytest.raises(DecodeError):
        decode(data[:-cut])
