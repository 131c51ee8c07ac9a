"""Traces in messages: of which broker they come, added without a change of anything else."""

from __future__ import annotations

import contextlib
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.broker.nodes import message, traces
from qmf.broker.nodes.message import read_message
from qmf.broker.nodes.traces import TRACE, add_to_trace, end_of_trace, read_trace
from qmf.codec import Message, Section, Symbol, decode_message, encode_message
from qmf.codec.amqp10 import encode
from qmf.errors import DecodeError

IDS = st.text(st.characters(exclude_characters=", ", exclude_categories=("Z", "C")), min_size=1, max_size=300)
BODY = b"\x00\x53\x75\xa0\x04body"
#: Message annotations as others write them: in a short map.
SHORT = b"\x00\x53\x72\xc1"


def annotated(**annotations: Any) -> bytes:
    return encode_message(
        Message(
            subject="s",
            message_annotations={Symbol(key): value for key, value in annotations.items()},
            section=Section.DATA,
            body=b"body",
        )
    )


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """Messages with and without the sections before and behind their annotations."""
    return encode_message(
        Message(
            durable=draw(st.booleans()),
            ttl=draw(st.none() | st.just(5.0)),
            subject=draw(st.none() | st.text(max_size=300)),
            message_id=draw(st.none() | st.integers(0, 9)),
            correlation_id=draw(st.none() | st.text(max_size=5)),
            message_annotations={Symbol(key): 5 for key in draw(st.sets(st.sampled_from("abc")))},
            application_properties=draw(st.dictionaries(st.text(max_size=5), st.integers(0, 9), max_size=2)),
            section=Section.DATA,
            body=b"body",
        )
    )


@given(messages(), st.lists(IDS, max_size=4))
def test_ids_are_added_and_read(data: bytes, ids: list[str]) -> None:
    traced = data
    for count, id in enumerate(ids):
        assert read_trace(traced) == tuple(ids[:count])
        traced = add_to_trace(traced, id)
    assert read_trace(traced) == tuple(ids)
    before, after = decode_message(data), decode_message(traced)
    assert after.message_annotations == {**before.message_annotations, **({TRACE: ",".join(ids)} if ids else {})}
    assert attrs.evolve(after, message_annotations=before.message_annotations) == before


@given(messages(), IDS)
def test_a_message_with_a_trace_is_read_as_one_without(data: bytes, id: str) -> None:
    before, after = read_message(data, 100.0), read_message(data, 100.0).after_broker(id)
    again = read_message(after.data, 100.0)
    for it in (after, again):
        for name in ("to", "subject", "expires_at", "correlated", "durable", "priority", "deliver_at"):
            assert getattr(it, name) == getattr(before, name), name
        assert it.headers == before.headers
    assert again.user_id == before.user_id


@pytest.mark.parametrize("header", [b"", b"\x00\x53\x70\x45", b"\x00\x53\x70\xc0\x02\x01\x41"])
def test_a_trace_alone_is_found_without_decoding(header: bytes) -> None:
    traced = add_to_trace(header + BODY, "one")
    end = end_of_trace(traced, len(header))
    assert traced[:end].startswith(header)
    assert traced[end:] == BODY
    for size in range(len(header) + 1, end):
        assert end_of_trace(traced[:size], len(header)) in (0, end)


@pytest.mark.parametrize("header", [b"", b"\x00\x53\x70\xc0\x02\x01\x41"])
def test_messages_without_other_annotations_are_not_decoded(header: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr(message, "decode_message", refuse)
    monkeypatch.setattr(traces, "read_annotation", refuse)
    once = read_message(header + BODY, 0.0).after_broker("one")
    twice = read_message(once.data, 0.0).after_broker("two")
    assert read_message(twice.data, 0.0).durable is bool(header)
    assert [read_trace(data) for data in (header + BODY, once.data, twice.data)] == [(), ("one",), ("one", "two")]


@pytest.mark.parametrize(
    "trace",
    ["one,two", b"one,two", "one, two", ",one,,two,", Symbol("one,two")],
    ids=["text", "binary", "blanks", "gaps", "symbol"],
)
def test_traces_as_others_write_them(trace: object) -> None:
    pairs = encode(Symbol(TRACE)) + encode(trace)
    data = SHORT + bytes((len(pairs) + 1, 2)) + pairs + BODY
    assert read_trace(data) == ("one", "two")
    assert decode_message(add_to_trace(data, "three")).message_annotations == {TRACE: "one,two,three"}
    wide = b"\x00\x80" + (0x70).to_bytes(8) + encode([True])
    assert read_trace(wide + data) == ("one", "two")
    delivery = b"\x00\x53\x71" + encode({Symbol("x-opt-a"): 1})
    assert read_trace(delivery + data) == ("one", "two")
    assert read_trace(delivery + BODY) == ()


def test_other_annotations_are_kept() -> None:
    data = add_to_trace(annotated(a=1), "one")
    assert decode_message(data).message_annotations == {"a": 1, TRACE: "one"}
    assert read_trace(data) == ("one",)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (annotated(**{TRACE: 5}), "message annotation x-qpid.trace: must be a text, not 5"),
        (annotated(**{TRACE: b"\xff"}), "message annotation x-qpid.trace: must be a text, not b'\\xff'"),
        (
            add_to_trace(BODY, "a").replace(b"\xa1\x01a", b"\xa1\x01\xff"),
            "message annotation x-qpid.trace: is not UTF-8",
        ),
        (add_to_trace(BODY, "a" * 16_385), "message annotation x-qpid.trace: is longer than 16384 bytes"),
        (annotated(**{TRACE: "a" * 16_385}), "message annotation x-qpid.trace: is longer than 16384 bytes"),
        (b"\x00\x53\x72\xc1\x01", "a section that ends before its first value"),
        (b"\x00\x53\x72" + encode([1]) + BODY, "a section that must be a map is none"),
        (b"\x00\x53\x72" + encode({1.5: 1}) + BODY, "a key that is neither a text nor a number"),
    ],
    ids=["number", "binary", "text", "long", "long-text", "cut", "list", "key"],
)
def test_traces_that_cannot_be_read(data: bytes, error: str) -> None:
    with pytest.raises(DecodeError) as caught:
        read_trace(data)
    assert str(caught.value) == error
    with pytest.raises(DecodeError):
        add_to_trace(data, "id")


@given(st.binary(max_size=40), st.sampled_from([b"", b"\x00\x53\x70\xc0", b"\x00\x53\x72", b"\x00\x53\x72\xd1"]))
def test_damaged_messages(data: bytes, beginning: bytes) -> None:
    with contextlib.suppress(DecodeError):
        assert isinstance(read_trace(beginning + data), tuple)
        assert len(add_to_trace(beginning + data, "id")) > len(data)


def test_messages_of_a_format_that_the_broker_cannot_read_have_no_trace() -> None:
    opaque = read_message(b"\x01\x02", 0.0, 7)
    assert opaque.after_broker("one") is opaque
