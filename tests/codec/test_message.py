"""Messages: sections, their order and their fields."""

from __future__ import annotations

import math
from uuid import UUID

import attrs
import pytest
from hypothesis import given
from support import wire
from support.vectors import NAMES, Vector, agrees, is_cut, parametrized

from qmf.codec import EncodeError, Message, Section, amqp10, decode_message, encode_message
from qmf.codec.types import Described, Symbol, UInt64
from qmf.errors import DecodeError


def section(code: int, value: object) -> bytes:
    return amqp10.encode(Described(UInt64(code), value))


HEADER = section(0x70, [True])
ANNOTATIONS = section(0x72, {Symbol("x"): 1})
PROPERTIES = section(0x73, [None, None, "node"])
APPLICATION = section(0x74, {"a": 1})
DATA = section(0x75, b"abc")
SEQUENCE = section(0x76, [1, 2])
VALUE = section(0x77, "body")
FOOTER = section(0x78, {Symbol("y"): 2})


def test_all_sections_in_order() -> None:
    message = decode_message(HEADER + ANNOTATIONS + PROPERTIES + APPLICATION + VALUE + FOOTER)
    assert message == Message(
        durable=True,
        message_annotations={"x": 1},
        to="node",
        application_properties={"a": 1},
        section=Section.VALUE,
        body="body",
        footer={"y": 2},
    )


@pytest.mark.parametrize(
    ("data", "kind", "body"),
    [
        (b"", Section.NONE, None),
        (PROPERTIES, Section.NONE, None),
        (PROPERTIES + FOOTER, Section.NONE, None),
        (DATA, Section.DATA, b"abc"),
        (DATA + DATA, Section.DATA, b"abcabc"),
        (DATA + DATA + FOOTER, Section.DATA, b"abcabc"),
        (section(0x75, b""), Section.DATA, b""),
        (SEQUENCE + SEQUENCE, Section.SEQUENCE, [1, 2, 1, 2]),
        (section(0x77, None), Section.VALUE, None),
        (section(0x77, b"text"), Section.VALUE, "text"),
        (section(0x76, [b"text", b"\xff"]), Section.SEQUENCE, ["text", b"\xff"]),
    ],
)
def test_bodies(data: bytes, kind: Section, body: object) -> None:
    message = decode_message(data)
    assert (message.section, message.body) == (kind, body)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (PROPERTIES + HEADER, "header section at offset 14 after properties section"),
        (HEADER + HEADER, "header section at offset 7 after header"),
        (VALUE + VALUE, "amqp-value section at offset 9 after amqp-value"),
        (DATA + SEQUENCE, "amqp-sequence section at offset 8 after data"),
        (SEQUENCE + VALUE, "amqp-value section .* after amqp-sequence"),
        (DATA + VALUE, "after data"),
        (FOOTER + VALUE, "after footer"),
        (VALUE + APPLICATION, "after amqp-value"),
        (section(0x79, []), "unknown section '121' at offset 0"),
        (amqp10.encode(Described(Symbol("amqp:other:list"), [])), "unknown section 'amqp:other:list'"),
        (amqp10.encode(Described([], [])), "unknown section"),
        (b"AM2", "no section starts at offset 0"),
        (HEADER + b"\x41", "no section starts at offset 7"),
        (HEADER + b"\x00", "inside the value"),
        (HEADER + b"\x00\x53", "inside the value"),
        (HEADER + b"\x00\x53\x77", "inside the value"),
        (section(0x70, {}), "no list of at most 5 fields"),
        (section(0x70, [None] * 6), "no list of at most 5 fields"),
        (section(0x73, [None] * 14), "no list of at most 13 fields"),
        (section(0x70, [1]), "field durable"),
        (section(0x70, [None, True]), "field priority"),
        (section(0x70, [None, None, "x"]), "field ttl"),
        (section(0x73, [1.5]), "field message_id"),
        (section(0x73, [True]), "field message_id"),
        (section(0x73, [None, 5]), "field user_id"),
        (section(0x73, [None, None, None, 5]), "field subject"),
        (section(0x73, [None, None, None, b"\xff"]), "field subject"),
        (section(0x74, []), "application-properties section at offset 0 is no map"),
        (section(0x74, {1: 2}), "a key of the application-properties is no string"),
        (section(0x72, "x"), "message-annotations section at offset 0 is no map"),
        (section(0x75, "x"), "a data section holds no binary"),
        (section(0x76, "x"), "a sequence section holds no list"),
    ],
)
def test_messages_that_are_none(data: bytes, words: str) -> None:
    with pytest.raises(DecodeError, match=words):
        decode_message(data)


@pytest.mark.parametrize(
    ("descriptor", "value", "expected"),
    [
        ("amqp:header:list", [True], Message(durable=True)),
        ("amqp:properties:list", [None, None, "n"], Message(to="n")),
        ("amqp:application-properties:map", {"a": 1}, Message(application_properties={"a": 1})),
        ("amqp:data:binary", b"x", Message(section=Section.DATA, body=b"x")),
        ("amqp:amqp-value:*", 1, Message(section=Section.VALUE, body=1)),
        ("amqp:footer:map", {}, Message()),
    ],
)
def test_sections_may_be_named_in_words(descriptor: str, value: object, expected: Message) -> None:
    assert decode_message(amqp10.encode(Described(Symbol(descriptor), value))) == expected


def test_sections_may_have_long_descriptors() -> None:
    assert decode_message(bytes.fromhex("0080000000000000007741")).body is True


def test_without_body_only_what_routing_needs_is_decoded() -> None:
    whole = HEADER + PROPERTIES + APPLICATION
    routed = decode_message(whole + b"\x00\x53\x75\xb0\xff\xff\xff\xff", body=False)
    assert routed == decode_message(whole)


def test_binary_stays_binary_when_asked() -> None:
    data = section(0x73, [b"id", b"user"]) + section(0x74, {"a": b"b"}) + section(0x77, b"c")
    assert decode_message(data, text=False) == Message(
        message_id=b"id", user_id=b"user", application_properties={"a": b"b"}, section=Section.VALUE, body=b"c"
    )
    assert decode_message(data) == Message(
        message_id="id", user_id=b"user", application_properties={"a": "b"}, section=Section.VALUE, body="c"
    )


@pytest.mark.parametrize(
    ("message", "encoded"),
    [
        (Message(), b""),
        (Message(application_properties={}), b""),
        (Message(ttl=4.0), "005370c0080340407000000fa0"),
        (Message(to="a"), "005373c006034040a10161"),
        (Message(correlation_id=5), "005373c00806404040404053" + "05"),
        (Message(content_type="a/b"), "005373c00c0740404040404" + "0a303612f62"),
        (Message(section=Section.DATA, body=b""), "005375a000"),
        (Message(section=Section.VALUE), "00537740"),
        (Message(section=Section.SEQUENCE, body=[]), "00537645"),
        (Message(footer={"k": 1}), "005378c10602a3016b5501"),
    ],
)
def test_only_what_says_something_is_written(message: Message, encoded: str | bytes) -> None:
    expected = encoded if isinstance(encoded, bytes) else bytes.fromhex(encoded)
    assert encode_message(message) == expected
    assert decode_message(expected) == message


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (Message(section=Section.DATA, body="text"), "a data section holds bytes, not str"),
        (Message(section=Section.SEQUENCE, body={}), "a sequence section holds a list, not dict"),
        (Message(body=1), "a body without a kind of section"),
        (Message(ttl=-1), "uint"),
        (Message(ttl=math.nan), "ttl of nan"),
        (Message(ttl=math.inf), "ttl of inf"),
        (Message(ttl=1e9), "uint"),
        (Message(priority=256), "ubyte"),
        (Message(correlation_id=-1), "ulong"),
        (Message(content_type="é"), "ASCII"),
        (Message(subject="\udcff"), "address or key with a lone surrogate"),
        (Message(group_id="\ud800"), "surrogate"),
        (Message(application_properties={"a": object()}), "cannot encode"),
    ],
)
def test_messages_that_cannot_be_written(message: Message, words: str) -> None:
    with pytest.raises(EncodeError, match=words):
        encode_message(message)


@pytest.mark.slow
@given(wire.messages())
def test_what_is_encoded_comes_back(message: Message) -> None:
    data = encode_message(message)
    assert decode_message(data, text=False) == message
    routed = attrs.evolve(message, section=Section.NONE, body=None, footer={})
    if message.section is not Section.NONE:
        assert decode_message(data, body=False, text=False) == routed


# -- captured messages -------------------------------------------------------------------------------------------------

FIELDS = {
    "header": {
        "durable": "durable",
        "priority": "priority",
        "ttl": "ttl",
        "first-acquirer": "first_acquirer",
        "delivery-count": "delivery_count",
    },
    "properties": {
        name: name.replace("-", "_")
        for name in ("message-id", "user-id", "to", "subject", "reply-to", "correlation-id", "content-type")
    },
}


@parametrized(NAMES)
def test_captured_messages_have_the_sections_that_the_capture_says(name: str) -> None:
    vector = Vector(name)
    message = decode_message(vector.data)
    sections = vector.sections
    for title, fields in FIELDS.items():
        given_fields = sections.get(title, {})
        assert given_fields.keys() <= fields.keys()
        for field, attribute in fields.items():
            if field not in given_fields:
                assert getattr(message, attribute) == getattr(Message(), attribute), field
                continue
            expected = given_fields[field]
            if field == "ttl":
                expected = expected / 1000
            elif field == "user-id":
                expected = expected.encode()
            assert getattr(message, attribute) == expected, field
    assert message.application_properties == sections.get("application-properties", {})
    if "data" in sections:
        assert message.section is Section.DATA
        assert sections["data"] == f"binary, {len(message.body)} bytes"  # type: ignore[arg-type]
    elif "amqp-value" in sections:
        assert message.section is Section.VALUE
        expected = sections["amqp-value"]
        cut = isinstance(expected, list) and any(map(is_cut, expected))
        assert cut or message.body == expected
        assert agrees(message.body, vector.json["body"])
    else:
        assert message.section is Section.NONE


@parametrized(NAMES)
def test_captured_messages_come_back(name: str) -> None:
    message = decode_message(Vector(name).data)
    assert decode_message(encode_message(message)) == message


def test_ids_of_every_type_come_back() -> None:
    for value in ("text", 5, UUID(int=5)):
        assert decode_message(encode_message(Message(correlation_id=value))).correlation_id == value
