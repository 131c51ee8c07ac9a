"""`ObjectDecoder` reads what the general functions read, only later."""

from __future__ import annotations

import copy
import pickle
import struct
from uuid import UUID

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol.objects.decoding import (
    AGENT,
    CODES,
    COLUMNS,
    KEY,
    ROWS,
    alarm,
    block,
    is_lazy,
    known_names,
    objects,
    outcome,
    read,
    shown,
    thing,
)
from support.examples import examples
from support.vectors import NAMES, Vector, parametrized

from qmf.codec import (
    Int64,
    UInt32,
    amqp010,
)
from qmf.errors import DecodeError, ProtocolError
from qmf.protocol import (
    Envelope,
    EventsIndication,
    ObjectBlock,
    ObjectData,
    ObjectDecoder,
    ObjectId,
    ObjectsIndication,
    ObjectsResponse,
    decode,
    encode,
)
from qmf.protocol.objects.general import block_to_map, object_to_map, objects_from_list
from qmf.protocol.objects.row_objects import RowObjects


def test_the_third_object_is_read_when_it_is_looked_at() -> None:
    reader = ObjectDecoder()
    found = objects(reader, *map(thing, range(5)))
    assert [is_lazy(item) for item in found] == [False, False, True, True, True]
    assert found[4].values["total"] == 4 << 40
    assert found[3].class_key is found[4].class_key
    assert reader.general == 2
    content = read(reader, ObjectsResponse([thing(9)])).content
    assert isinstance(content, ObjectsResponse)
    assert is_lazy(content.objects[0])


def test_a_single_object_is_not_learned() -> None:
    reader = ObjectDecoder()
    for number in range(5):
        key = attrs.evolve(KEY, hash=UUID(int=number))
        objects(reader, thing(1, class_key=key))
    assert known_names(reader) == []


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"values": {"count": UInt32(1)}}, id="another set of values"),
        pytest.param({"values": {}}, id="no values"),
        pytest.param({"object_id": None}, id="no id"),
        pytest.param({"object_id": ObjectId("name")}, id="an id without agent"),
        pytest.param({"object_id": ObjectId("nämé" * 20, AGENT, 3)}, id="a name that is not ASCII"),
        pytest.param({"object_id": ObjectId("x" * 70_000, AGENT, 3)}, id="a name longer than a str16"),
        pytest.param({"object_id": ObjectId("x\udcff", AGENT, 3)}, id="a name that is not UTF-8"),
        pytest.param({"object_id": ObjectId("name", "another:agent:2", 3)}, id="another agent"),
        pytest.param({"object_id": ObjectId("name", AGENT, 2**40)}, id="a wide epoch"),
        pytest.param({"class_key": None}, id="no class"),
        pytest.param({"class_key": attrs.evolve(KEY, hash=None)}, id="no hash"),
        pytest.param({"update_ts": 0, "create_ts": 0}, id="no times"),
        pytest.param({"delete_ts": 5}, id="deleted"),
        pytest.param({"subtypes": {"map": "x"}}, id="subtypes"),
        pytest.param({"left": True}, id="left"),
    ],
)
def test_whatever_differs_is_read_all_the_same(other: dict[str, object]) -> None:
    reader = ObjectDecoder()
    strange = thing(2, **other)
    for _ in range(4):
        found = objects(reader, thing(1), strange, thing(3), strange, strange)
        assert len(found) == 5
    assert is_lazy(found[0])


@parametrized(NAMES)
def test_captured_messages_are_read_the_same(name: str) -> None:
    data = Vector(name).data
    reader = ObjectDecoder()
    expected = outcome(data, None)
    for _ in range(3):
        assert outcome(data, reader) == expected


LEARNED = [
    encode(Envelope(content=content))
    for content in (
        ObjectsIndication([thing(1), thing(2, values={"count": UInt32(1), "delta": Int64(-1)}), thing(3)]),
        EventsIndication([alarm(1), alarm(2)]),
        ObjectsResponse(
            [thing(1)],
            [
                ObjectBlock(class_key=KEY, columns=("count",), codes=b"\x22", rows=b""),
            ],
        ),
    )
]


@pytest.mark.slow
@examples(250)
@given(
    index=st.integers(0, len(LEARNED) - 1),
    changes=st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 255)), min_size=1, max_size=3),
)
def test_changed_bytes_are_read_the_same(index: int, changes: list[tuple[int, int]]) -> None:
    reader = ObjectDecoder()
    for message in LEARNED * 3:
        decode(message, reader)
    data = bytearray(LEARNED[index])
    for position, byte in changes:
        data[position % len(data)] = byte
    expected, found = outcome(bytes(data), None), outcome(bytes(data), reader)
    if isinstance(expected, type):
        assert isinstance(found, type)
    else:
        assert shown(found) == shown(expected)


@pytest.mark.slow
@parametrized([name for name in NAMES if name.startswith("libqmf2-10-")])
@examples(25)
@given(changes=st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 255)), min_size=1, max_size=3))
def test_captured_messages_with_changed_bytes(name: str, changes: list[tuple[int, int]]) -> None:
    original = Vector(name).data
    reader = ObjectDecoder()
    for _ in range(3):
        outcome(original, reader)
    data = bytearray(original)
    for position, byte in changes:
        data[position % len(data)] = byte
    expected, found = outcome(bytes(data), None), outcome(bytes(data), reader)
    if isinstance(expected, type):
        assert isinstance(found, type)
    else:
        assert shown(found) == shown(expected)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"\x00\x00\x00\x04\x00\x00\x00\x01", id="an item that is not there"),
        pytest.param(b"\x00\x00\x00\x09\x00\x00\x00\x01\xa8\x00\x00\x00\x00", id="a map without count"),
        pytest.param(b"\x00\x00\x00\x05\x00\x00\x00\x00\x00", id="a byte too many"),
        pytest.param(b"\x00\x00\x00\x09\x00\x00\x00\x00", id="a byte too few"),
        pytest.param(b"\x00", id="no size"),
        pytest.param(amqp010.encode_list([1, 2]), id="numbers"),
        pytest.param(amqp010.encode_list([{}, "x"]), id="a text behind a map"),
    ],
)
def test_bodies_that_hold_no_objects(body: bytes) -> None:
    with pytest.raises((DecodeError, ProtocolError)):
        ObjectDecoder().objects(body)
    with pytest.raises((DecodeError, ProtocolError)):
        ObjectDecoder().events(body)


def test_an_id_that_ends_before_its_name() -> None:
    reader = ObjectDecoder()
    bare = {"class_key": None, "update_ts": 0, "create_ts": 0}
    objects(reader, *[thing(number, **bare) for number in range(4)])
    head = reader.object_ids.frames[0].head
    values = amqp010.encode_map(dict(thing(1).values))
    object_id = len(head).to_bytes(4, "big") + head
    items = b"\x07_values\xa8" + values + b"\x0a_object_id\xa8" + object_id
    body = (len(items) + 4).to_bytes(4, "big") + (2).to_bytes(4, "big") + items
    body = (len(body) + 5).to_bytes(4, "big") + (1).to_bytes(4, "big") + b"\xa8" + body
    data = encode(Envelope(content=ObjectsIndication(())), body=body)
    for memory in (None, reader):
        with pytest.raises(DecodeError):
            decode(data, memory)


def body_of(items: bytes, count: int) -> bytes:
    """A list of one map with these items."""
    inner = (len(items) + 4).to_bytes(4, "big") + count.to_bytes(4, "big") + items
    return (len(inner) + 5).to_bytes(4, "big") + (1).to_bytes(4, "big") + b"\xa8" + inner


def test_values_without_a_count_at_the_end() -> None:
    good = amqp010.encode_list([{"_values": {"a": 1}}])
    bad = body_of(b"\x07_values\xa8" + bytes(4), 1)
    reader = ObjectDecoder()
    for read_body in (reader.objects, reader.events):
        read_body(good)
        read_body(good)
        with pytest.raises(DecodeError):
            read_body(bad)


@pytest.mark.parametrize("name", ["_object_id", "_schema_id"])
def test_what_is_too_deep_is_too_deep_for_all(name: str) -> None:
    plain = {"_object_name": "n", "_package_name": "p", "_class_name": "c"}
    for levels, fits in ((28, True), (29, True), (30, False), (31, False)):
        deep: object = 1
        for _ in range(levels):
            deep = {"x": deep}
        inner = amqp010.encode_map({**plain, "z": deep})
        values = amqp010.encode_map({"a": 1})
        body = body_of(b"\x07_values\xa8" + values + bytes((len(name),)) + name.encode() + b"\xa8" + inner, 2)
        reader = ObjectDecoder()
        reader.objects(amqp010.encode_list([{"_values": {"a": 1}, name: plain}] * 3))
        assert reader.general == 2
        try:
            general = objects_from_list(amqp010.decode_list(body, text=True))
        except DecodeError:
            assert not fits
            with pytest.raises(DecodeError):
                reader.objects(body)
        else:
            assert fits
            assert reader.objects(body) == general


def test_objects_can_be_copied() -> None:
    values: dict[str, object] = {"ratio": float("nan"), "map": {"k": 1}}
    rows = block(COLUMNS, CODES, ROWS)
    reader = ObjectDecoder()
    lazy = objects(reader, *[thing(1, values={"map": {"k": 1}})] * 3)[2]
    content = read(reader, ObjectsResponse([], [rows])).content
    assert isinstance(content, ObjectsResponse)
    assert is_lazy(lazy)
    for item in (lazy, content.objects, content.objects[1]):
        for found in (copy.deepcopy(item), pickle.loads(pickle.dumps(item))):
            assert found == item
            assert type(found) is (list if item is content.objects else ObjectData)
    body = amqp010.encode_list([object_to_map(thing(1, values=values))] * 3)
    odd = reader.objects(body)[2]
    same = odd
    assert is_lazy(odd)
    assert odd == same
    assert repr(copy.deepcopy(odd)) == repr(odd)


def test_blocks_with_a_nan_equal_themselves() -> None:
    fixed = struct.pack(">1sqqqdI", b"\x01", 3, 2, 1, float("nan"), 1)
    rows = block(("ratio",), b"\x33", (len(fixed) + 1).to_bytes(4, "big") + fixed + b"n")
    found = ObjectDecoder().objects(amqp010.encode_list([block_to_map(rows)]))
    same = found
    assert isinstance(found, RowObjects)
    assert found == same
