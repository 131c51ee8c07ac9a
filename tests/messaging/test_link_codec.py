"""Messages of one link to and from their encoding: the same as that of each by itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qmf.codec.message import Message as AmqpMessage
from qmf.codec.message import Section, encode_message
from qmf.messaging import DecodeError, EncodeError, Message
from qmf.messaging.arrivals import arrival_functions
from qmf.messaging.contents import decode, encode
from qmf.messaging.link_codec import MessageDecoder, MessageEncoder

texts = st.text(st.characters(), max_size=300)  # lone surrogates too
ids = st.none() | st.text("ab\u20ac\ud800", max_size=3) | st.integers(150, 300).map("i".__mul__)
contents = (
    texts | st.binary(max_size=300) | st.none() | st.just(["a"]) | st.just({"a": 1}) | st.integers(250, 300).map(bytes)
)
properties: dict[str, st.SearchStrategy[Any]] = {
    "id": ids | st.integers(0, 9) | st.just(b"id"),
    "subject": st.none() | st.sampled_from(["", "s", "other"]),
    "to": st.none() | st.sampled_from(["", "node"]),
    "user_id": st.none() | st.just("ann"),
    "reply_to": st.none() | st.just("q/k"),
    "correlation_id": ids | st.sampled_from([0, "c"]),
    "durable": st.sampled_from([None, False, True]),
    "priority": st.none() | st.sampled_from([0, 4, True]),
    "ttl": st.none() | st.sampled_from([0, 2.5]),
    "properties": st.sampled_from([{}, {"a": "b"}]),
}
#: Messages that have content alone, or little more, are the most frequent ones.
messages = st.builds(Message, contents) | st.builds(
    Message, contents, content_type=st.sampled_from([None, "text/plain", "amqp/map", "x/y"])
)
messages |= st.builds(Message, contents, **properties)


def _attributes(message: Message) -> dict[str, object]:
    values = {name: value for name, value in vars(message).items() if name != "delivery"}
    return {name: (type(value), value) for name, value in values.items()}


def _encoded(encode: Callable[[], bytes]) -> bytes | str:
    """The encoded message, or the error."""
    try:
        return encode()
    except EncodeError as error:
        return str(error)


def _decoded(decode: Callable[[], Message]) -> dict[str, object] | str:
    """The attributes of the message, or the error."""
    try:
        return _attributes(decode())
    except DecodeError as error:
        return str(error)


@given(
    st.lists(messages, max_size=5),
    st.none() | st.sampled_from(["s", "\ud800"]),
    st.none() | st.just("node"),
    st.sampled_from([None, False, True]),
    st.booleans(),
)
def test_encoding_is_that_of_each_message(
    sent: list[Message], subject: str | None, to: str | None, durable: bool | None, lists_as_data: bool
) -> None:
    encoder = MessageEncoder(subject, to)
    encoder.lists_as_data = lists_as_data
    for count, message in enumerate(sent + sent):
        if count == len(sent) // 2:
            encoder.durable = durable
        known = durable if count >= len(sent) // 2 else None
        expected = _encoded(partial(encode, message, subject, to, durable=known, lists_as_data=lists_as_data))
        assert _encoded(partial(encoder.encode, message)) == expected


def _amqp(message: AmqpMessage) -> bytes:
    return encode_message(message)


kinds = st.none() | st.sampled_from(["text/plain", "text/xml; charset=utf8", "amqp/map", "amqp/list", "x/y"])
bodies = (
    st.binary(max_size=300) | st.integers(250, 300).map(bytes) | st.sampled_from([b"\xff", b"\x00\x53\x75\xa0\x00"])
)
foreign = st.one_of(
    st.builds(
        AmqpMessage, content_type=kinds, subject=st.sampled_from(["a", "b"]), section=st.just(Section.DATA), body=bodies
    ),
    st.builds(
        AmqpMessage, content_type=kinds, section=st.just(Section.VALUE), body=bodies | st.text() | st.just({"a": 1})
    ),
    st.builds(AmqpMessage, section=st.just(Section.DATA), body=bodies, footer=st.just({"x-f": 1})),
    st.builds(AmqpMessage, delivery_count=st.integers(0, 2), section=st.just(Section.DATA), body=bodies),
).map(_amqp)
own = messages.map(lambda message: _encoded(partial(encode, message))).filter(lambda data: isinstance(data, bytes))


@pytest.mark.parametrize("compiled", [True, False])
@given(received=st.lists(own | foreign | st.binary(max_size=20), max_size=6), cut=st.integers(0, 400))
@example(
    received=[
        _amqp(AmqpMessage(content_type="text/plain", section=Section.DATA, body=body)) for body in (b"\xff", b"a")
    ],
    cut=0,
)
def test_decoding_is_that_of_each_message(received: list[bytes], cut: int, compiled: bool) -> None:
    if compiled and arrival_functions() is None:
        pytest.skip("not compiled (scripts/c_extensions.py)")
    with pytest.MonkeyPatch.context() as patch:
        if not compiled:
            patch.setattr("qmf.messaging.link_codec.arrival_functions", lambda: None)
        decoder = MessageDecoder()
    for data in received:
        # What follows messages that are alike, cut or longer ones too.
        for each in (data, data, data, data[:cut], data[:-1], data + b"\x00", data):
            assert _decoded(partial(decoder.decode, each, None)) == _decoded(partial(decode, each))


def test_a_message_keeps_its_delivery() -> None:
    decoder, data, delivery = MessageDecoder(), encode(Message(b"x")), object()
    assert all(decoder.decode(data, delivery).delivery is delivery for _ in range(3))


def test_messages_that_are_alike_share_nothing_that_can_be_changed() -> None:
    encoder, decoder = MessageEncoder(None, "q"), MessageDecoder()
    data = encoder.encode(Message(b"x", properties={"a": 1}))
    first, second, third = (decoder.decode(data, None) for _ in range(3))
    second.properties["b"] = 2
    second.subject = "changed"
    for other in (first, third, decoder.decode(data, None)):
        assert (other.properties, other.subject) == ({"a": 1}, None)


def test_properties_that_are_no_map_are_refused() -> None:
    message: Any = Message(b"x")
    message.properties = None
    with pytest.raises(EncodeError, match="message cannot be encoded"):
        MessageEncoder(None, None).encode(message)
