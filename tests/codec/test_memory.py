"""Decoding many messages with remembered sections gives the same as decoding each by itself."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.vectors import NAMES, Vector, parametrized

from qmf.codec import Message, Section, decode_message, encode_message
from qmf.codec._message_decode import MAX_HEADS, MAX_SECTIONS
from qmf.codec.message import SectionMemory
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
@settings(deadline=None, max_examples=25)
@given(changes=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=3))
def test_changed_bytes(name: str, changes: list[tuple[int, int]]) -> None:
    memory = SectionMemory()
    data = bytearray(Vector(name).data)
    outcome(bytes(data), memory)
    for position, value in changes:
        data[position % len(data)] = value
    for _ in range(2):
        assert outcome(bytes(data), memory) == outcome(bytes(data), None)


def test_what_is_remembered_is_bounded() -> None:
    memory = SectionMemory()
    for number in range(MAX_SECTIONS + 5):
        decode_message(encode_message(Message(subject=str(number))), memory=memory)
    decode_message(encode_message(Message(subject="x" * 1000)), memory=memory)
    assert 0 < len(memory.values) <= MAX_SECTIONS
    assert all(len(raw) < 1000 for raw in memory.values)


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
