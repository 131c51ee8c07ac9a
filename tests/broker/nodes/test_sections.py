"""Messages with another address and another user: what else they have stays as it was, byte by byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.broker.nodes.message import read_message
from qmf.broker.nodes.sections import with_sender
from qmf.codec import Described, Message, Section, Symbol, UInt64, decode_message, encode_message
from qmf.codec.amqp10 import encode
from qmf.errors import DecodeError

TEXTS = st.text(max_size=20)
NAMES = st.text(min_size=1, max_size=20)


@given(
    user=TEXTS,
    to=NAMES,
    message=st.builds(
        Message,
        body=TEXTS,
        section=st.just(Section.VALUE),
        durable=st.booleans(),
        message_id=st.none() | NAMES,
        to=st.none() | NAMES,
        subject=st.none() | NAMES,
        reply_to=st.none() | NAMES,
        application_properties=st.dictionaries(NAMES, TEXTS, max_size=3),
        message_annotations=st.dictionaries(st.sampled_from(["a", "b"]), TEXTS, max_size=2),
    ),
)
def test_the_rest_of_a_message_stays(user: str, to: str, message: Message) -> None:
    before = decode_message(encode_message(message))
    after = decode_message(with_sender(encode_message(message), user, to))
    assert after.to == to
    assert (after.user_id or b"") == user.encode()
    for name in (
        "message_id",
        "subject",
        "reply_to",
        "application_properties",
        "body",
        "durable",
        "message_annotations",
    ):
        assert getattr(after, name) == getattr(before, name)


def test_a_message_without_properties_gets_some() -> None:
    data = encode(Described(UInt64(0x77), "x"))
    read = read_message(with_sender(data, "alice", "orders"), 0.0)
    assert (read.to, read.user_id) == ("orders", b"alice")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (encode(Described(Symbol("amqp:amqp-value:*"), "x")), "a section without a short descriptor"),
        (encode(Described(UInt64(0x73), "x")), "properties that are no list"),
    ],
    ids=["long descriptor", "no list"],
)
def test_what_cannot_be_read_is_named(data: bytes, text: str) -> None:
    with pytest.raises(DecodeError, match=text):
        with_sender(data, "alice", "orders")
