"""Whatever arrives, `decode` returns a message or raises an error of the peer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import wire
from support.examples import examples
from support.vectors import NAMES, Vector, parametrized

from qmf.codec import EncodeError, Message, Section, encode_message
from qmf.errors import DecodeError, ProtocolError
from qmf.protocol import (
    ContentError,
    Envelope,
    V1Message,
    decode,
    decode_frames,
    encode,
    schema_from_map,
    schema_to_map,
)


def _comes_again(message: Envelope | V1Message) -> bool:
    """Whether a message can be decoded once more; but AMQP 0-10's decimals are read, and not written."""
    try:
        data = encode(message)
    except EncodeError as error:
        return "cannot encode a Decimal in AMQP 0-10" in str(error)
    return decode(data) is not None


OPCODES = [
    "_agent_locate_request",
    "_agent_locate_response",
    "_agent_heartbeat_indication",
    "_query_request",
    "_query_response",
    "_method_request",
    "_method_response",
    "_exception",
    "_data_indication",
]
KEYS = st.sampled_from(
    [
        "_what",
        "_schema_id",
        "_object_id",
        "_where",
        "_select",
        "_values",
        "_object_name",
        "_agent_name",
        "_agent_epoch",
        "_package_name",
        "_class_name",
        "_type",
        "_hash",
        "_method_name",
        "_arguments",
        "_subtypes",
        "_update_ts",
        "_timestamp",
        "_severity",
        "_name",
        "_vendor",
        "_epoch",
        "epoch",
        "error_text",
        "error_code",
        "_properties",
        "_methods",
        "_desc",
        "_dir",
        "_access",
        "_min",
        "_maxlen",
        "_references",
        "_default",
        "_group",
        "_qmf_name",
        "_qmf_type",
        "_default_severity",
        "_index",
        "_unit",
        "_assign",
        "_heartbeat_interval",
    ]
)
SCALARS = wire.SCALARS | st.sampled_from(
    [
        "OBJECT",
        "SCHEMA",
        "_data",
        "_event",
        "TYPE_INT",
        "TYPE_MAP",
        "reference",
        "statistic",
        "mma32",
        "uint8",
        "x",
        1,
        0,
    ]
)
BODIES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6), max_leaves=20
)


@pytest.mark.slow
@pytest.mark.parametrize("opcode", OPCODES)
@examples(95)
@given(kind=st.sampled_from([None, "_data", "_event", "_schema", "_schema_id"]), body=BODIES)
def test_bodies_of_any_shape(opcode: str, kind: str | None, body: object) -> None:
    properties = {"qmf.opcode": opcode} | ({} if kind is None else {"qmf.content": kind})
    data = encode_message(Message(application_properties=properties, section=Section.VALUE, body=body))
    try:
        message = decode(data)
    except ContentError:
        return
    # What can be read can be sent on.
    assert _comes_again(message)


@pytest.mark.slow
@examples(190)
@given(st.dictionaries(KEYS, BODIES, max_size=8))
def test_schemas_of_any_shape(item: dict[str, object]) -> None:
    try:
        schema = schema_from_map({"_schema_id": {"_class_name": "c"}} | item)
    except ProtocolError:
        return
    assert schema_from_map(schema_to_map(schema)) is not None


@pytest.mark.slow
@parametrized(NAMES)
@examples(20)
@given(changes=st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 255)), min_size=1, max_size=3))
def test_captured_messages_with_changed_bytes(name: str, changes: list[tuple[int, int]]) -> None:
    data = bytearray(Vector(name).data)
    for position, value in changes:
        data[position % len(data)] = value
    try:
        message = decode(bytes(data))
    except (DecodeError, ProtocolError):
        return
    assert _comes_again(message)


@pytest.mark.slow
@examples(190)
@given(opcode=st.sampled_from("BbPpQqSszgcieh"), fields=st.binary(max_size=60))
def test_frames_of_any_content(opcode: str, fields: bytes) -> None:
    try:
        frames = decode_frames(b"AM2" + opcode.encode() + fields)
    except (DecodeError, ProtocolError):
        return
    assert frames


@parametrized([name for name in NAMES if "-v1" in name])
def test_captured_frames_cut_anywhere(name: str) -> None:
    vector = Vector(name)
    body = vector.data[vector.data.index(b"AM2") :]
    for end in range(0, len(body), max(1, len(body) // 300)):
        try:
            frames = decode_frames(body[:end])
        except (DecodeError, ProtocolError):
            continue
        assert frames
