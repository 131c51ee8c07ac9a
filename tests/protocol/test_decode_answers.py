"""Answers of methods that are taken apart without envelope: the same as by `decode`, or left to it."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.codec import amqp010
from qmf.codec.message import MAX_HEADS
from qmf.protocol import (
    Envelope,
    ExceptionResponse,
    MethodResponse,
    ObjectDecoder,
    decode,
    decode_answers,
    encode,
)

VALUES = st.one_of(st.integers(-(2**63), 2**64 - 1), st.text(max_size=300), st.booleans(), st.floats(allow_nan=False))
ARGUMENTS = st.dictionaries(st.text(max_size=20), VALUES, max_size=5)
AGENTS = ["a:b:c", "d:e:f", None]
ITEMS = st.lists(st.tuples(st.sampled_from("1234"), ARGUMENTS, st.sampled_from(AGENTS)), min_size=2)


@pytest.fixture(params=["compiled", "in Python"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in Python":
        monkeypatch.setattr(sys.modules["qmf.protocol.decode"], "_PLAIN", None)


def answer(number: str, arguments: dict[str, Any], agent: str | None = "a:b:c", **others: Any) -> bytes:
    response = MethodResponse(arguments=arguments)
    return encode(Envelope(content=response, subject="key", correlation_id=number, agent=agent, **others))


def one(data: bytes, decoder: ObjectDecoder) -> object:
    (found,) = decode_answers([data], decoder)
    return found


@given(ITEMS)
def test_answers_are_the_same_as_by_the_general_way(items: list[tuple[str, dict[str, Any], str | None]]) -> None:
    decoder = ObjectDecoder()
    for agent in AGENTS:
        decode(answer("1", {}, agent), decoder)
    messages = [answer(*item) for item in items]
    for _ in range(2):  # what was learned is used the second time
        found = decode_answers(messages, decoder)
        for data, each in zip(messages, found, strict=True):
            envelope = decode(data, decoder)
            assert isinstance(envelope, Envelope)
            assert isinstance(envelope.content, MethodResponse)
            assert each == (int(envelope.correlation_id or ""), envelope.content.arguments, envelope.agent)


@pytest.mark.usefixtures("way")
def test_the_first_answer_of_a_kind_is_left_to_the_general_way() -> None:
    decoder = ObjectDecoder()
    first, second = answer("1", {"a": 1}), answer("2", {"a": 2})
    assert one(first, decoder) == first
    decode(first, decoder)
    assert decode_answers([second, first], decoder) == [(2, {"a": 2}, "a:b:c"), (1, {"a": 1}, "a:b:c")]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    "data",
    [
        answer("1", {}, partial=True),
        answer("x", {}),
        answer("", {}),
        encode(Envelope(content=ExceptionResponse(text="no"), correlation_id="1")),
        encode(Envelope(content=MethodResponse(), correlation_id="1"), body=b""),
        encode(Envelope(content=MethodResponse(), correlation_id="1"), body=b"\x00\x00\x00\x04"),
        encode(
            Envelope(content=MethodResponse(), correlation_id="1"), body=amqp010.encode_map({"_arguments": "no map"})
        ),
        encode(Envelope(content=MethodResponse(arguments={}, subtypes={"a": "b"}), correlation_id="1")),
        b"",
        b"\x00\x53",
        answer("1", {"a": 1})[:-1],
        answer("1", {"a": 1}) + b"\x00",
    ],
    ids=[
        "partial", "no number", "no id", "exception", "no body", "body cut", "no map", "subtypes", "nothing", "start",
        "cut", "more",
    ],
)  # fmt: skip
def test_other_messages_are_left_to_the_general_way(data: bytes) -> None:
    decoder = ObjectDecoder()
    for number in "12":
        for agent in ("a:b:c", None):
            decode(answer(number, {"a": 1}, agent), decoder)
            one(answer(number, {"a": 1}, agent), decoder)
        if b"no" in data:
            decode(encode(Envelope(content=ExceptionResponse(text="no"), correlation_id="1")), decoder)
    assert one(data, decoder) == data


@pytest.mark.usefixtures("way")
def test_a_correlation_id_that_is_no_text_is_left_to_the_general_way() -> None:
    decoder = ObjectDecoder()
    data = answer("7", {})
    decode(data, decoder)
    assert one(data, decoder) == (7, {}, "a:b:c")
    wrong = data.replace(b"\xa1\x017", b"\xa1\x01\xff")
    assert one(wrong, decoder) == wrong


@pytest.mark.usefixtures("way")
def test_large_bodies_are_taken_apart_too() -> None:
    decoder = ObjectDecoder()
    data = answer("7", {"text": "x" * 1000})
    decode(data, decoder)
    for _ in range(2):
        assert one(data, decoder) == (7, {"text": "x" * 1000}, "a:b:c")


def test_few_heads_are_remembered_each_once() -> None:
    decoder = ObjectDecoder()
    for _ in range(2):
        for number in range(2 * MAX_HEADS):
            data = answer("7", {}, f"agent{number}")
            decode(data, decoder)
            one(data, decoder)
    assert len(decoder.answer_heads) == len(set(decoder.answer_heads)) == MAX_HEADS
