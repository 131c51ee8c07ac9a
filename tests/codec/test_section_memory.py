"""Decoding many messages with remembered sections gives the same as decoding each by itself."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.vectors import NAMES, Vector, parametrized

from qmf.codec import EncodeError, Message, Section, UInt64, decode_message, encode_message
from qmf.codec.message import MAX_HEADS, SectionMemory
from qmf.errors import DecodeError


def outcome(data: bytes, memory: SectionMemory | None) -> str:
    try:
        return repr(decode_message(data, memory=memory))
    except DecodeError:
        return "broken"


@parametrized(NAMES)
def test_captured_messages(name: str) -> None:
    data, memory = Vector(name).data, SectionMemory()
    for _ in range(2):
        assert outcome(data, memory) == outcome(data, None)
    for end in range(0, min(len(data), 400), 11):
        assert outcome(data[:end], memory) == outcome(data[:end], None)


@pytest.mark.slow
@parametrized(NAMES[::8])
@examples(15)
@given(changes=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=3))
def test_changed_bytes(name: str, changes: list[tuple[int, int]]) -> None:
    memory = SectionMemory()
    data = bytearray(Vector(name).data)
    outcome(bytes(data), memory)
    for position, value in changes:
        data[position % len(data)] = value
    for _ in range(2):
        assert outcome(bytes(data), memory) == outcome(bytes(data), None)


@pytest.mark.parametrize("size", [0, 1, 255, 256, 70_000])
def test_messages_that_differ_in_their_body_only(size: int) -> None:
    memory = SectionMemory()
    for body in (b"first", b"x" * size):
        data = encode_message(Message(subject="a", application_properties={"k": "v"}, body=body, section=Section.DATA))
        for tail in (b"\x00\x53\x78\xc1\x01\x00", b"\x00\x53\x75\xa0\x01y", b"\x00", b""):
            assert outcome(data + tail, memory) == outcome(data + tail, None)
            assert outcome(data[:-1], memory) == outcome(data[:-1], None)
    assert len(memory.heads) == 1
    for number in range(MAX_HEADS + 5):
        decode_message(encode_message(Message(subject=str(number), body=b"", section=Section.DATA)), memory=memory)
    assert len(memory.heads) == MAX_HEADS


def answer(number: object, body: bytes = b"body", **others: object) -> bytes:
    properties = {"qmf.opcode": "_method_response"}
    return encode_message(
        Message(
            to="to",
            subject="subject",
            correlation_id=number,
            content_type="amqp/map",
            application_properties=properties,
            section=Section.DATA,
            body=body,
            **others,  # type: ignore[arg-type]
        )
    )


def test_answers_that_differ_in_body_and_correlation_id_only() -> None:
    memory = SectionMemory()
    for number in (*range(1, 120), 1000, 12345, 99, 100):
        for body in (b"", b"x", b"x" * number):
            data = answer(str(number), body)
            assert outcome(data, memory) == outcome(data, None)
            for broken in (
                data[:-1],
                data + b"\x00",
                data + b"\x00\x53\x75\xa0\x01y",
                data + b"\x00\x53\x78\xc1\x01\x00",
            ):
                assert outcome(broken, memory) == outcome(broken, None)
    assert sorted(head.size for head in memory.heads) == [1, 2, 3, 4, 5]
    before = memory.heads[:]
    decode_message(answer("54321"), memory=memory)
    assert set(memory.heads) == set(before), "an answer like earlier ones is not learned again"


@pytest.mark.parametrize(
    "number", ["", "5", "5" * 255, "5" * 256, "é", "to", "subject", "\udcff", b"\xff", b"ab", 5, 2**63, UUID(int=5)]
)
def test_correlation_ids_of_all_kinds(number: object) -> None:
    memory = SectionMemory()
    for data in (answer(number), answer("12"), answer(number, b"other"), answer("ab"), answer(number, message_id="m")):
        assert outcome(data, memory) == outcome(data, None)


def test_an_id_that_is_no_text_is_refused_however_much_the_rest_is_known() -> None:
    memory = SectionMemory()
    decode_message(answer("12"), memory=memory)
    data = answer("12").replace(b"\xa1\x0212", b"\xa1\x02\xff\xff")
    assert data != answer("12")
    assert outcome(data, memory) == outcome(data, None) == "broken"


@given(
    number=st.text(max_size=20), again=st.text(max_size=20), body=st.binary(max_size=300), subject=st.text(max_size=5)
)
def test_any_two_answers(number: str, again: str, body: bytes, subject: str) -> None:
    memory = SectionMemory()
    for correlation_id in (number, again, number):
        message = Message(subject=subject, correlation_id=correlation_id, section=Section.DATA, body=body)
        try:
            data = encode_message(message)
        except EncodeError:
            return
        assert outcome(data, memory) == outcome(data, None)


def test_answers_remembered_are_bounded() -> None:
    memory = SectionMemory()
    for number in range(MAX_HEADS + 5):
        decode_message(answer("1" * number), memory=memory)
    assert len(memory.heads) == MAX_HEADS


def published(sequence: int, events: int | None = None, body: bytes = b"body", **others: object) -> bytes:
    properties: dict[str, object] = {"qmf.agent": "a", "sequence": UInt64(sequence), "behind": "x"}
    if events is not None:
        properties["events"] = UInt64(events)
    fields = {"to": "to", "subject": "subject", **others}
    return encode_message(
        Message(application_properties=properties, section=Section.DATA, body=body, **fields)  # type: ignore[arg-type]
    )


def test_messages_that_differ_in_body_and_numbers_among_their_properties() -> None:
    memory = SectionMemory()
    for number in (2**63, 2**63 + 1, 2**64 - 1):
        for body in (b"", b"x", b"x" * 300):
            for data in (published(number, body=body), published(number, number - 1, body)):
                assert outcome(data, memory) == outcome(data, None)
                for broken in (data[:-1], data + b"\x00", data + b"\x00\x53\x75\xa0\x01y"):
                    assert outcome(broken, memory) == outcome(broken, None)
    assert ([len(head.numbers) for head in memory.numbered], memory.heads) == ([2, 1], [])
    found = decode_message(published(2**63 + 5, 2**63 + 4), memory=memory)
    assert found.application_properties == {"qmf.agent": "a", "sequence": 2**63 + 5, "behind": "x", "events": 2**63 + 4}
    assert len(memory.numbered) == 2, "a message like earlier ones is not learned again"


@pytest.mark.parametrize(
    "properties",
    [
        {"short": UInt64(5)},
        {"negative": -(2**40)},
        {"flag": True, "long": UInt64(2**63)},
        {"twice": UInt64(2**63), "holds": b"\xa1\x05twice\x80\x80" + bytes(7)},
        {"x" * 256: UInt64(2**63)},
    ],
    ids=["short", "negative", "flag", "twice", "name"],
)
def test_numbers_of_all_kinds(properties: dict[str, object]) -> None:
    memory = SectionMemory()
    for body in (b"a", b"b", b"a"):
        data = encode_message(Message(application_properties=properties, section=Section.DATA, body=body))
        assert outcome(data, memory) == outcome(data, None)


def test_senders_that_take_turns_do_not_drive_each_other_out() -> None:
    memory = SectionMemory()
    for turn in range(3):
        for sender in range(MAX_HEADS + 4):
            decode_message(published(2**63 + turn, subject=str(sender)), memory=memory)
    kept = memory.numbered[:]
    assert len(kept) == MAX_HEADS
    for turn in range(200):
        decode_message(published(2**63 + turn, subject="often"), memory=memory)
    assert memory.numbered[0].fields["subject"] == "often"
    assert len(memory.numbered) == MAX_HEADS


@examples(60)
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.binary(max_size=300), st.text(max_size=5))
def test_any_two_numbered_messages(first: int, second: int, body: bytes, subject: str) -> None:
    memory = SectionMemory()
    for sequence, events in ((first, second), (second, first), (2**63, 2**63), (first, second)):
        data = published(sequence, events, body, subject=subject)
        assert outcome(data, memory) == outcome(data, None)


def test_messages_that_no_other_is_like_are_not_remembered() -> None:
    memory = SectionMemory()
    for message in (
        Message(message_id="m", body=b"", section=Section.DATA),
        Message(application_properties={"sequence": 5}, body=b"", section=Section.DATA),
        Message(subject="x" * 1000, body=b"", section=Section.DATA),
        Message(correlation_id=5, body=b"", section=Section.DATA),
        Message(subject="a", body="text", section=Section.VALUE),
    ):
        decode_message(encode_message(message), memory=memory)
    assert (memory.heads, memory.numbered) == ([], [])
