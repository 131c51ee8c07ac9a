"""QMFv1 frames: captured ones, invented ones, broken ones."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.vectors import NAMES, Vector, parametrized

from qmf.codec import EncodeError, decode_message
from qmf.codec.amqp010 import Reader
from qmf.errors import DecodeError, ProtocolError
from qmf.protocol import (
    BrokerRequest,
    BrokerResponse,
    ClassesRequest,
    ClassResponse,
    CommandComplete,
    Frame,
    OpaqueFrame,
    PackageResponse,
    PackagesRequest,
    SchemaRequest,
    SchemaResponse,
    UnknownOpcode,
    V1Message,
    decode,
    decode_frames,
    encode,
    encode_frames,
)
from qmf.schema.model import ClassKey, EventSchema, Kind

HASH = UUID("802ee42d-b3fa-6b91-c0b8-1374380eec4d")
V1 = [name for name in NAMES if "-v1" in name]


def frames_json(frame: Frame) -> dict[str, Any]:
    """A frame as the JSON beside the captured messages has it, without schemas."""
    out: dict[str, Any] = {"sequence": frame.sequence}
    match frame:
        case BrokerRequest():
            out |= {"opcode": "B", "rest_hex": ""}
        case BrokerResponse():
            out |= {"opcode": "b", "broker_id": str(frame.broker_id)}
        case PackageResponse():
            out |= {"opcode": "p", "package": frame.package}
        case ClassResponse():
            out |= {"opcode": "q", "kind": 1 if frame.key.kind is Kind.DATA else 2, **key_json(frame.key)}
        case SchemaRequest():
            out |= {"opcode": "S", **key_json(frame.key)}
        case CommandComplete():
            out |= {"opcode": "z", "code": frame.code, "text": frame.text}
        case OpaqueFrame():
            out |= {"opcode": frame.opcode}
    return out


def key_json(key: ClassKey) -> dict[str, Any]:
    return {"package": key.package, "class": key.name, "hash": str(key.hash)}


def raw_schema(body: bytes) -> dict[str, Any]:
    """The maps of an `s` frame as they are, in the shape of the JSON."""
    reader = Reader(body, 8)
    out: dict[str, Any] = {
        "kind": reader.uint8(),
        "package": reader.str8(),
        "class": reader.str8(),
        "hash": str(reader.uuid()),
    }
    if out["kind"] == 2:
        out["argument_count"] = reader.uint16()
        out["arguments"] = [reader.map() for _ in range(out["argument_count"])]
    else:
        for name in ("property_count", "statistic_count", "method_count"):
            out[name] = reader.uint16()
        out["properties"] = [reader.map() for _ in range(out["property_count"])]
        out["statistics"] = [reader.map() for _ in range(out["statistic_count"])]
        out["methods"] = []
        for _ in range(out["method_count"]):
            method = reader.map()
            count = method["argCount"]
            assert isinstance(count, int)
            out["methods"].append({"method": method, "args": [reader.map() for _ in range(count)]})
    reader.expect_end()
    return out


def body_of(data: bytes) -> bytes:
    body = decode_message(data).body
    assert isinstance(body, bytes)
    return body


@parametrized(V1)
def test_captured_frames_mean_what_the_capture_says(name: str) -> None:
    vector = Vector(name)
    message = decode(vector.data)
    assert isinstance(message, V1Message)
    properties = vector.sections["properties"]
    assert (message.to, message.subject) == (properties.get("to"), properties.get("subject"))
    assert message.reply_to == properties.get("reply-to")
    assert message.user_id == (properties.get("user-id") or None)
    assert message.agent == vector.sections.get("application-properties", {}).get("qmf.agent")
    first = vector.json["v1_messages"][0]
    for frame, expected in zip(message.frames, vector.json["v1_messages"], strict=False):
        if isinstance(frame, SchemaResponse):
            assert frame.sequence == expected["sequence"]
            assert key_json(frame.schema.key) == {key: expected["schema"][key] for key in ("package", "class", "hash")}
        elif isinstance(frame, OpaqueFrame):
            assert frames_json(frame) == {key: expected[key] for key in ("opcode", "sequence")}
        else:
            assert frames_json(frame) == expected
    if not isinstance(message.frames[0], OpaqueFrame):
        assert len(message.frames) == len(vector.json["v1_messages"])
    assert first["opcode"] in vector.json["opcode"]


@parametrized(V1)
def test_captured_frames_come_back(name: str) -> None:
    data = Vector(name).data
    message = decode(data)
    assert isinstance(message, V1Message)
    encoded = encode(message)
    assert decode(encoded) == message
    assert "x-amqp-0-10.app-id" not in decode_message(encoded).application_properties
    if not isinstance(message.frames[0], SchemaResponse):
        assert body_of(encoded) == body_of(data)


@parametrized([name for name in V1 if "-v1-s" in name])
def test_schemas_keep_every_key(name: str) -> None:
    # What we write of it holds the same maps as what was captured: nothing was lost, joined or renamed.
    vector = Vector(name)
    (expected,) = vector.json["v1_messages"]
    message = decode(vector.data)
    assert isinstance(message, V1Message)
    assert raw_schema(body_of(vector.data)) == expected["schema"]
    assert raw_schema(encode_frames(message.frames)) == expected["schema"]


@parametrized(["qpidd-v1-s-queue"] if NAMES else [])
def test_statistics_of_a_captured_schema_are_whole_again(name: str) -> None:
    message = decode(Vector(name).data)
    assert isinstance(message, V1Message)
    (frame,) = message.frames
    assert isinstance(frame, SchemaResponse)
    assert not isinstance(frame.schema, EventSchema)
    types = {item.name: item.type.name for item in frame.schema.statistics}
    assert types["bindingCount"] == "hilo32"
    assert types["messageLatency"] == "mmaTime"
    assert types["byteDepth"] == "uint64"
    latency = frame.schema.statistic("messageLatency")
    assert latency is not None
    assert (latency.desc, latency.unit) == ("Deprecated", "nanosecond")
    assert [entry.name for entry in latency.entries] == [
        f"messageLatency{end}" for end in ("Count", "Min", "Max", "Avg")
    ]
    filter = frame.schema.method("purge")
    assert filter is not None
    assert [(item.name, item.type.name) for item in filter.arguments] == [("request", "uint32"), ("filter", "map")]


SEQUENCES = st.integers(0, 2**32 - 1)
SHORT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
KEYS = st.builds(ClassKey, SHORT, SHORT, st.just(Kind.DATA), st.uuids())
FRAMES: st.SearchStrategy[Frame] = st.one_of(
    st.builds(BrokerRequest, SEQUENCES),
    st.builds(BrokerResponse, st.uuids(), SEQUENCES),
    st.builds(PackagesRequest, SEQUENCES),
    st.builds(PackageResponse, SHORT, SEQUENCES),
    st.builds(ClassesRequest, SHORT, SEQUENCES),
    st.builds(ClassResponse, st.builds(ClassKey, SHORT, SHORT, st.sampled_from(Kind), st.uuids()), SEQUENCES),
    st.builds(SchemaRequest, KEYS, SEQUENCES),
    st.builds(CommandComplete, SEQUENCES, SHORT, SEQUENCES),
)


@given(frames=st.lists(FRAMES, min_size=1, max_size=5), last=st.binary(max_size=20))
def test_frames_come_back(frames: list[Frame], last: bytes) -> None:
    assert decode_frames(encode_frames(frames)) == tuple(frames)
    with_object = [*frames, OpaqueFrame("c", last, 7)]
    assert decode_frames(encode_frames(with_object)) == tuple(with_object)


def test_text_that_is_no_utf8_comes_back() -> None:
    data = b"AM2z" + bytes((0, 0, 0, 1, 0, 0, 0, 2, 1)) + b"\xff"
    (frame,) = decode_frames(data)
    assert frame == CommandComplete(2, "\udcff", 1)
    assert encode_frames([frame]) == data


def frame(opcode: str, fields: str) -> bytes:
    return b"AM2" + opcode.encode() + b"\0\0\0\0" + bytes.fromhex(fields)


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (b"", DecodeError, "3 bytes wanted at offset 0"),
        (b"AM", DecodeError, "3 bytes wanted"),
        (b"AM1B\0\0\0\0", DecodeError, "no QMFv1 frame starts at offset 0"),
        (b"AM2B\0\0", DecodeError, "4 bytes wanted at offset 4"),
        (frame("B", "") + b"xyz", DecodeError, "no QMFv1 frame starts at offset 8"),
        (frame("b", "00"), DecodeError, "16 bytes wanted"),
        (frame("p", "05"), DecodeError, "5 bytes wanted"),
        (frame("?", ""), UnknownOpcode, "QMFv1 '\\?': unknown opcode"),
        (frame("q", "03"), ProtocolError, "kind of class is 3"),
        (frame("s", "03"), ProtocolError, "kind of class is 3"),
        (frame("s", "01" + "00" * 18 + "ffffffffffff"), DecodeError, "inside the map"),
        (frame("s", "02" + "00" * 18 + "ffff"), DecodeError, "inside the map"),
        (frame("s", "02" + "00" * 18 + "0001" + "0000000400000000"), ProtocolError, "name is missing"),
        (
            frame(
                "s", "02" + "00" * 18 + "0001" + "00000014" + "00000002" + "046e616d65950001" + "61" + "04747970650205"
            ),
            ProtocolError,
            "type of a is 5",
        ),
    ],
)
def test_broken_frames_say_what_and_where(data: bytes, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        decode_frames(data)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (SchemaRequest(ClassKey("p", "c")), "p:c has none"),
        (SchemaResponse(EventSchema(package="p", name="e")), "p:e has none"),
        (PackageResponse("a" * 256), "longer than 255 bytes"),
        (BrokerRequest(2**32), "uint32"),
    ],
)
def test_frames_that_cannot_be_written(frame: Frame, words: str) -> None:
    with pytest.raises(EncodeError, match=words):
        encode_frames([frame])
