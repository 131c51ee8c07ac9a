"""Finding `to` and `subject` in encoded messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.vectors import NAMES, Vector

from qmf.bus.engine.destination import read_destination
from qmf.codec import Message, Section, decode_message, encode_message
from qmf.errors import DecodeError

TEXT = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(to=TEXT, subject=TEXT, durable=st.booleans(), annotated=st.booleans(), body=st.binary(max_size=400))
def test_as_the_codec_sees_it(to: str | None, subject: str | None, durable: bool, annotated: bool, body: bytes) -> None:
    annotations = {"x-opt-a": 1} if annotated else {}
    data = encode_message(
        Message(
            to=to,
            subject=subject,
            durable=durable,
            message_annotations=annotations,
            delivery_annotations=annotations,
            section=Section.DATA,
            body=body,
        )
    )
    assert read_destination(data) == (to, subject)


@pytest.mark.parametrize("name", NAMES)
def test_of_real_messages(name: str) -> None:
    data = Vector(name).data
    message = decode_message(data, body=False)
    assert read_destination(data) == (message.to, message.subject)


@pytest.mark.parametrize("data", [b"\x00", b"\x00\x53\x73\xd0\xff", b"\x41", b"garbage", b"\x00\x53\x73"])
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        read_destination(data)


@given(st.binary(max_size=80))
def test_any_bytes_give_an_answer_or_a_decode_error(data: bytes) -> None:
    try:
        to, subject = read_destination(data)
    except DecodeError:
        return
    assert to is None or isinstance(to, str)
    assert subject is None or isinstance(subject, str)
