"""What routing reads of a message."""

from __future__ import annotations

import contextlib

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.broker.nodes.message import read_message
from qmf.codec import Message as CodecMessage
from qmf.codec import Section, Symbol, UInt8, UInt64, decode_message, encode_message
from qmf.codec.amqp10 import encode
from qmf.errors import DecodeError

FIELDS = st.one_of(st.none(), st.text(max_size=300))


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """Encoded messages with what routing looks at, and what stands around it."""
    headers = draw(st.dictionaries(st.text(max_size=5), st.integers(0, 9) | st.text(max_size=5), max_size=3))
    return encode_message(
        CodecMessage(
            ttl=draw(st.none() | st.integers(0, 2**32 - 1).map(lambda ms: ms / 1000)),
            durable=draw(st.booleans()),
            priority=draw(st.sampled_from([4, 9])),
            message_id=draw(st.one_of(FIELDS, st.integers(0, 2**64 - 1), st.uuids(), st.binary(max_size=9))),
            user_id=draw(st.none() | st.binary(max_size=9)),
            to=draw(FIELDS),
            subject=draw(FIELDS),
            reply_to=draw(FIELDS),
            correlation_id=draw(st.one_of(FIELDS, st.integers(0, 2**64 - 1), st.uuids(), st.binary(max_size=9))),
            application_properties=headers,
            section=Section.DATA,
            body=b"body",
        )
        if draw(st.booleans())
        else CodecMessage(
            to=draw(FIELDS), subject=draw(FIELDS), message_annotations={"x": 1}, section=Section.VALUE, body=1
        )
    )


def read(data: bytes) -> tuple[object, ...]:
    it = read_message(data, 100.0)
    return it.to, it.subject, it.expires_at, it.headers, it.correlated


def expected(whole: CodecMessage) -> tuple[object, ...]:
    expires = None if whole.ttl is None else 100.0 + whole.ttl
    correlated = whole.correlation_id is not None
    return whole.to, whole.subject or "", expires, whole.application_properties, correlated


def test_reading_a_message() -> None:
    data = encode_message(
        CodecMessage(
            to="x", subject="key", ttl=2.5, application_properties={"a": 1}, section=Section.DATA, body=b"body"
        )
    )
    it = read_message(data, 100.0)
    assert (it.data, it.to, it.subject, it.headers, it.expires_at) == (data, "x", "key", {"a": 1}, 102.5)
    bare = read_message(encode_message(CodecMessage()), 100.0)
    assert (bare.to, bare.subject, bare.expires_at) == (None, "", None)
    with pytest.raises(DecodeError):
        read_message(b"garbage", 0.0)


@given(messages())
def test_a_message_is_read_as_the_codec_reads_it(data: bytes) -> None:
    whole = decode_message(data, body=False)
    assert read(data) == expected(whole)


@given(messages(), st.data())
def test_a_damaged_message_is_refused_or_read_as_the_codec_reads_it(data: bytes, damage: st.DataObject) -> None:
    damaged = bytearray(data)
    damaged[damage.draw(st.integers(0, len(data) - 1))] = damage.draw(st.integers(0, 255))
    try:
        whole = decode_message(bytes(damaged), body=False)
    except DecodeError:
        # What routing does not need is not looked at, unless a headers exchange asks for it.
        with contextlib.suppress(DecodeError):
            read_message(bytes(damaged), 100.0)
        return
    assert read(bytes(damaged)) == expected(whole)


@pytest.mark.parametrize("descriptor", [UInt64(0x70), Symbol("amqp:header:list")])
def test_annotations_are_put_behind_a_header_however_its_descriptor_is_written(descriptor: object) -> None:
    body = b"\x00\x53\x75\xa0\x04body"
    wide = b"\x00\x80" + (0x70).to_bytes(8) if isinstance(descriptor, int) else b"\x00" + encode(descriptor)
    header = wide + encode([True, UInt8(7)])
    merged = read_message(header + body, 100.0).with_annotations(encode({Symbol("x-a"): 1, UInt64(5): "five"}))
    assert merged.data.startswith(header)
    assert merged.data.endswith(body)
    again = merged.with_annotations(encode({Symbol("x-a"): None}))
    assert decode_message(again.data).message_annotations["x-a"] is None
    assert decode_message(again.data).priority == 7


@pytest.mark.parametrize("annotations", [encode("text"), encode([1]), encode({1.5: 1})])
def test_annotations_that_are_no_map_with_keys_are_refused(annotations: bytes) -> None:
    it = read_message(encode_message(CodecMessage()), 100.0)
    with pytest.raises(DecodeError):
        it.with_annotations(annotations)


@pytest.mark.parametrize(
    "header", [b"", b"\x00\x53\x70\x45", b"\x00\x53\x70\xc0\x02\x01\x41", b"\x00\x53\x70\xd0\0\0\0\x05\0\0\0\x01\x41"]
)
def test_a_message_that_may_have_been_delivered_counts_one_delivery(header: bytes) -> None:
    body = b"\x00\x53\x75\xa0\x01x"
    before = read_message(header + body, 0.0)
    after = before.after_restart()
    assert (before.delivery_count, after.delivery_count) == (0, 1)
    assert after.after_restart() is after
    assert after.after_failure().delivery_count == 2
    assert after.durable == read_message(after.data, 0.0).durable == before.durable
    assert after.data.endswith(body)


@given(messages(), st.floats(0, 2**33))
def test_what_is_sent_later_has_what_is_left_of_the_time_to_live(data: bytes, waited: float) -> None:
    message = read_message(data, 100.0)
    sent, before = decode_message(message.data_to_send(100.0 + waited)), decode_message(data)
    if before.ttl is None or waited < 0.009:
        assert message.data_to_send(100.0 + waited) == data
    else:
        assert sent.ttl is not None
        assert abs(sent.ttl - max(0.001, before.ttl - waited)) <= 0.01
    assert attrs.evolve(sent, ttl=None) == attrs.evolve(before, ttl=None)


def test_failed_deliveries_and_the_time_to_live_are_both_in_the_header() -> None:
    message = read_message(encode_message(CodecMessage(ttl=5.0, section=Section.DATA, body=b"body")), 100.0)
    failed = read_message(message.after_failure().data_to_send(102.0), 102.0)
    assert (failed.delivery_count, failed.expires_at) == (1, 105.0)


@pytest.mark.parametrize("count", [b"\x80" + b"\x01" * 8, b"\xff"], ids=["too large", "no type"])
def test_a_message_whose_delivery_count_is_none_is_sent_as_it_came(count: bytes) -> None:
    fields = b"\x42\x40\x70\x00\x00\x10\x00\x40" + count
    message = read_message(b"\x00\x53\x70\xc0" + bytes((len(fields) + 1, 5)) + fields + b"\x00\x53\x77\xa1\x01x", 100.0)
    assert message.expires_at == 104.096
    assert message.data_to_send(102.0) == message.data
