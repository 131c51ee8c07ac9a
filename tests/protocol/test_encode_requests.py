"""Encoding requests and answers again and again, and what requests say of rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.codec import EncodeError, UInt32, amqp010, decode_message
from qmf.codec.limits import MAX_DEPTH
from qmf.protocol import (
    Content,
    Envelope,
    ExceptionResponse,
    LocateRequest,
    MethodRequest,
    MethodResponse,
    ObjectId,
    ObjectsResponse,
    QueryRequest,
    SubscribeRequest,
    What,
    decode,
    encode,
    encode_correlated,
)
from qmf.protocol.encode import MAX_FRAMES

CONTENTS: list[Content] = [
    LocateRequest(),
    QueryRequest(what=What.OBJECT, object_id=ObjectId("x" * 300, "a:b:c"), row_form=1),
    MethodRequest(method="echo", object_id=ObjectId("n"), arguments={"sequence": UInt32(1), "body": "x"}),
    SubscribeRequest(interval=1.5, row_form=1),
    MethodRequest(method="echo"),
    MethodRequest(method="m" * 70_000, object_id=ObjectId("n", "a:b:c", 5), arguments={"text": "x" * 70_000}),
    MethodRequest(method="echo", arguments={"where": ObjectId("n", "a"), "map": {"list": [1, None]}}),
    MethodRequest(method="echo", object_id=ObjectId("n"), arguments={"a": 1}, subtypes={"a": "time"}),
    MethodResponse(arguments={"sequence": UInt32(1), "body": "x"}),
    ExceptionResponse(text="no", code=7),
    ObjectsResponse([]),
]

TEXTS = st.none() | st.text(st.characters(codec="utf-8"), max_size=300)


@pytest.mark.slow
@given(
    content=st.sampled_from(CONTENTS),
    to=TEXTS,
    subject=TEXTS,
    reply_to=TEXTS,
    agent=TEXTS,
    number=st.none() | st.integers(0, 2**64).map(str) | st.text(st.characters(codec="utf-8"), max_size=200),
    again=st.integers(0, 1000).map(str),
    ttl=st.none() | st.floats(0, 4e6),
)
def test_requests_and_answers_are_encoded_as_encode_does(
    content: Content,
    to: str | None,
    subject: str | None,
    reply_to: str | None,
    agent: str | None,
    number: str | None,
    again: str,
    ttl: float | None,
) -> None:
    for correlation_id in (number, again, number):
        envelope = Envelope(
            content=content,
            to=to,
            subject=subject,
            reply_to=reply_to,
            agent=agent,
            correlation_id=correlation_id,
            ttl=ttl,
        )
        assert encode_correlated(envelope) == encode(envelope)


@pytest.mark.parametrize(
    "others",
    [{"agent": "a"}, {"user_id": "u"}, {"partial": True}, {"ttl": 1.0}, {"sequence": 1}, {"suppressed": 2}],
)
def test_unusual_messages_are_encoded_too(others: dict[str, object]) -> None:
    envelope = Envelope(content=CONTENTS[2], to="x", correlation_id="1", **others)  # type: ignore[arg-type]
    assert encode_correlated(envelope) == encode(envelope)


def test_what_cannot_be_encoded_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(EncodeError):
            encode_correlated(Envelope(content=CONTENTS[2], to="\udcff", correlation_id="1"))


def test_requests_to_more_addresses_than_are_remembered() -> None:
    for number in range(MAX_FRAMES + 5):
        envelope = Envelope(content=CONTENTS[0], subject=str(number), correlation_id="1")
        assert encode_correlated(envelope) == encode(envelope)


@pytest.mark.parametrize("content", [QueryRequest(what=What.OBJECT, row_form=1), SubscribeRequest(row_form=1)])
def test_requests_say_that_rows_are_read(content: Content) -> None:
    envelope = decode(encode(Envelope(content=content)))
    assert isinstance(envelope, Envelope)
    assert envelope.content == content


@pytest.mark.parametrize(("sent", "understood"), [(1, 1), (7, 7), (0, 0), (-1, 0), ("x", 0), (None, 0), (True, 0)])
def test_a_strange_row_form_does_not_spoil_a_query(sent: object, understood: int) -> None:
    data = encode(
        Envelope(content=QueryRequest(what=What.OBJECT)),
        body=amqp010.encode_map({"_what": "OBJECT", "_row_form": sent}),
    )
    envelope = decode(data)
    assert isinstance(envelope, Envelope)
    assert envelope.content == QueryRequest(what=What.OBJECT, row_form=understood)


def test_a_query_without_rows_does_not_mention_them() -> None:
    body = decode_message(encode(Envelope(content=QueryRequest(what=What.OBJECT)))).body
    assert isinstance(body, bytes)
    assert amqp010.decode_map(body) == {"_what": "OBJECT"}


def test_a_body_that_is_encoded_already_is_sent_as_it_is() -> None:
    body = amqp010.encode_list([])
    assert encode(Envelope(content=ObjectsResponse(())), body=body) == encode(Envelope(content=ObjectsResponse(())))


def test_calls_of_several_methods_and_objects_do_not_mix() -> None:
    targets = [None, ObjectId("n"), ObjectId("n", "a"), ObjectId("n", "a", 1), ObjectId("o", "a", 1)]
    for number in range(3):
        for target in targets:
            for method in ("echo", "reset"):
                content = MethodRequest(method=method, object_id=target, arguments={"n": number})
                envelope = Envelope(content=content, to="x", correlation_id=str(number))
                assert encode_correlated(envelope) == encode(envelope)
                assert decode(encode_correlated(envelope)) == envelope


def test_arguments_that_cannot_be_encoded_are_refused_each_time() -> None:
    deep: object = 1
    for _ in range(MAX_DEPTH):
        deep = [deep]
    for _ in range(2):
        for value in (deep, 2**64, object()):
            envelope = Envelope(content=MethodRequest(method="echo", arguments={"x": value}), correlation_id="1")
            with pytest.raises(EncodeError) as expected:
                encode(envelope)
            with pytest.raises(EncodeError) as caught:
                encode_correlated(envelope)
            assert str(caught.value) == str(expected.value)


def test_values_as_deep_as_can_be_are_encoded_alike() -> None:
    deep: object = 1
    for _ in range(MAX_DEPTH - 3):
        deep = [deep]
    envelope = Envelope(content=MethodRequest(method="echo", arguments={"x": deep}), correlation_id="1")
    assert encode_correlated(envelope) == encode(envelope)


def test_calls_of_more_methods_than_are_remembered() -> None:
    for number in range(MAX_FRAMES + 5):
        envelope = Envelope(content=MethodRequest(method=f"m{number}"), correlation_id="1")
        assert encode_correlated(envelope) == encode(envelope)
