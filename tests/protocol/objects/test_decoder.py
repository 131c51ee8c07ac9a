"""`ObjectDecoder` reads what the general functions read, only later."""

from __future__ import annotations

import copy
import gc
import pickle
import struct
import weakref
from uuid import UUID

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.vectors import NAMES, Vector, parametrized

from qmf.codec import (
    Float32,
    Int8,
    Int16,
    Int32,
    Int64,
    Timestamp,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    amqp010,
)
from qmf.errors import DecodeError, ProtocolError
from qmf.protocol import (
    Content,
    Envelope,
    EventData,
    EventsIndication,
    ObjectBlock,
    ObjectData,
    ObjectDecoder,
    ObjectId,
    ObjectsIndication,
    ObjectsResponse,
    V1Message,
    decode,
    encode,
)
from qmf.protocol.objects import known_shapes
from qmf.protocol.objects.decoder import MAX_LAYOUTS
from qmf.protocol.objects.event_forms import COMPILE_AFTER, MAX_COUNTED, MAX_FUNCTIONS
from qmf.protocol.objects.general import ROW_FORM, block_to_map, object_to_map, objects_from_list
from qmf.protocol.objects.known_shapes import (
    LEARN_AFTER,
    MAX_CLASSES,
    MAX_ENVELOPES,
    MAX_KEY_SIZE,
    MAX_SHAPES,
    MAX_SHAPES_SIZE,
)
from qmf.protocol.objects.lazy_values import LazyValues
from qmf.protocol.objects.object_ids import MAX_FRAMES
from qmf.protocol.objects.row_objects import RowObjects
from qmf.schema import ClassKey, Kind

AGENT = "example.org:widgets:1"
KEY = ClassKey("org.example", "widget", Kind.DATA, UUID(int=7))
ALARM = ClassKey("org.example", "alarm", Kind.EVENT, UUID(int=8))


def thing(number: int, **fields: object) -> ObjectData:
    values = {"name": f"w{number}", "count": UInt32(number), "total": UInt64(number << 40), "map": {"k": number}}
    options: dict[str, object] = {
        "values": values,
        "object_id": ObjectId(f"org.example:widget:w{number}", AGENT, 3),
        "class_key": KEY,
        "update_ts": 1_795_000_000_000_000_000 + number,
        "create_ts": 1_794_000_000_000_000_000,
    }
    return ObjectData(**{**options, **fields})  # type: ignore[arg-type]


def alarm(number: int, **fields: object) -> EventData:
    values = {"level": UInt32(number), "name": f"w{number}"}
    options: dict[str, object] = {"values": values, "class_key": ALARM, "timestamp": number + 1, "severity": 3}
    return EventData(**{**options, **fields})  # type: ignore[arg-type]


def read(reader: ObjectDecoder, content: Content) -> Envelope:
    """Send and receive; the result is compared with that of the general functions."""
    data = encode(Envelope(content=content))
    envelope = decode(data, reader)
    assert isinstance(envelope, Envelope)
    assert envelope == decode(data)
    return envelope


def objects(reader: ObjectDecoder, *items: ObjectData) -> list[ObjectData]:
    content = read(reader, ObjectsIndication(items)).content
    assert isinstance(content, ObjectsIndication)
    return list(content.objects)


def events(reader: ObjectDecoder, *items: EventData) -> list[EventData]:
    content = read(reader, EventsIndication(items)).content
    assert isinstance(content, EventsIndication)
    return list(content.events)


def is_lazy(item: ObjectData | EventData) -> bool:
    return isinstance(item.values, LazyValues)


def test_the_third_object_is_read_when_it_is_looked_at() -> None:
    reader = ObjectDecoder()
    found = objects(reader, *map(thing, range(5)))
    assert [is_lazy(item) for item in found] == [False, False, True, True, True]
    assert found[4].values["total"] == 4 << 40
    assert found[3].class_key is found[4].class_key
    assert (reader.matched, reader.general) == (3, 2)
    content = read(reader, ObjectsResponse([thing(9)])).content
    assert isinstance(content, ObjectsResponse)
    assert is_lazy(content.objects[0])


def test_a_single_object_is_not_learned() -> None:
    reader = ObjectDecoder()
    for number in range(5):
        key = attrs.evolve(KEY, hash=UUID(int=number))
        objects(reader, thing(1, class_key=key))
    assert looks(reader) == {}


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


# -- events of one look


def taught(*looks: EventData) -> ObjectDecoder:
    """A decoder that has seen so many events of each form that it reads them in one go."""
    reader = ObjectDecoder()
    for look in looks:
        events(reader, *[look] * COMPILE_AFTER)
    assert len(reader.event_forms.functions) == len(looks)
    return reader


#: An argument of each type.
EVERYTHING: dict[str, object] = {
    "none": None,
    "true": True,
    "false": False,
    "text": "wäit",
    "long": "x" * 300,
    "binary": b"\xff\xfe",
    "wide": b"\xff" * 70_000,
    "float": 0.25,
    "float32": Float32(0.5),
    "time": Timestamp(1_795_000_000_000),
    "uuid": UUID(int=5),
    "map": {"k": UInt32(1), "t": "x"},
    "nested": {"k": {"l": [1, 2]}},
    "empty": {},
    "list": [1, "x"],
    **{kind.__name__: kind(7) for kind in (Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64)},
}


def test_frequent_events_are_read_in_one_go() -> None:
    reader = taught(alarm(0))
    general, matched = reader.general, reader.matched
    found = events(reader, *map(alarm, range(5)))
    assert [type(item.values) for item in found] == [dict] * 5
    assert found == list(map(alarm, range(5)))
    assert all(item.class_key is found[0].class_key for item in found)
    assert (reader.general, reader.matched) == (general, matched + 5)


@pytest.mark.parametrize("name", EVERYTHING)
def test_arguments_of_each_type(name: str) -> None:
    value = EVERYTHING[name]
    before, behind = {"a": "b"}, {"z": UInt32(3), "y": "x"}
    one = alarm(1, values={**before, name: value, **behind})
    reader = taught(one)
    (found,) = events(reader, one)
    assert found.values[name] == value
    assert repr(found.values) == repr(events(ObjectDecoder(), one)[0].values)


def test_arguments_are_not_shared() -> None:
    one = alarm(1, values={"map": {"k": "v"}})
    first, second = events(taught(one), one, one)
    nested = first.values["map"]
    assert isinstance(nested, dict)
    nested["k"] = "w"
    assert second.values == one.values


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"values": {"level": UInt32(1)}}, id="another set of arguments"),
        pytest.param({"values": {"level": UInt32(1), "name": b"\xff"}}, id="another type"),
        pytest.param({"values": {"level": UInt32(1), "nama": "x"}}, id="another name"),
        pytest.param({"values": {"level": UInt32(1), "name": "\U0001f600" * 9000}}, id="a long text"),
        pytest.param({"values": {"name": "x", "level": UInt32(1)}}, id="another order"),
        pytest.param({"values": {}}, id="no arguments"),
        pytest.param({"severity": 7}, id="another severity"),
        pytest.param({"timestamp": 2**64 - 1}, id="a late time"),
        pytest.param({"class_key": None}, id="no class"),
        pytest.param({"class_key": attrs.evolve(ALARM, hash=None)}, id="no hash"),
        pytest.param({"class_key": attrs.evolve(ALARM, hash=UUID(int=9))}, id="another version"),
        pytest.param({"object_id": ObjectId("w", AGENT, 3)}, id="an object"),
    ],
)
def test_events_that_differ_from_frequent_ones(other: dict[str, object]) -> None:
    reader = taught(alarm(1))
    strange = alarm(2, **other)
    for _ in range(3):
        assert events(reader, alarm(1), strange, alarm(3), strange) == [alarm(1), strange, alarm(3), strange]


def test_frequent_events_about_an_object() -> None:
    reader = taught(alarm(1, object_id=ObjectId("w", AGENT, 3)))
    others = [alarm(1, object_id=ObjectId(name, AGENT, 3)) for name in ("one", "ä", "x" * 300)]
    assert events(reader, *others) == others


def test_several_looks_are_frequent() -> None:
    looks = [alarm(1), alarm(2, values={"level": UInt32(1)}), alarm(3, class_key=None)]
    reader = taught(*looks)
    assert events(reader, *looks, *reversed(looks)) == [*looks, *reversed(looks)]


def test_severities_that_are_none_are_the_nearest() -> None:
    reader = taught(alarm(1))
    data = bytearray(encode(Envelope(content=EventsIndication([alarm(1)]))))
    data[data.index(b"_severity") + 10] = 200
    envelope = decode(bytes(data), reader)
    assert envelope == decode(bytes(data))
    assert isinstance(envelope, Envelope)
    assert isinstance(envelope.content, EventsIndication)
    assert envelope.content.events[0].severity == 7


def test_frequent_forms_are_bounded() -> None:
    reader = ObjectDecoder()

    def look(number: int) -> EventData:
        return alarm(1, values={f"n{number}": 1, **{f"more{i}": 1 for i in range(number // 8)}})

    for number in range(MAX_FUNCTIONS + 3):
        events(reader, *[look(number)] * (COMPILE_AFTER + 1))
    for number in range(MAX_COUNTED + 20):
        events(reader, alarm(1, values={f"n{number}": 1}))
    assert len(reader.event_forms.functions) == MAX_FUNCTIONS
    assert len(reader.event_forms.counts) <= MAX_COUNTED


def test_a_form_that_was_dropped_is_compiled_again() -> None:
    reader = taught(*[alarm(1, values={f"n{number}": 1}) for number in range(MAX_FUNCTIONS)])
    first = alarm(1, values={"n0": 2})
    events(reader, *[alarm(1, values={"other": 1})] * COMPILE_AFTER)
    general = reader.general
    assert events(reader, *[first] * (COMPILE_AFTER + 1)) == [first] * (COMPILE_AFTER + 1)
    assert reader.general == general + COMPILE_AFTER


@pytest.mark.slow
@settings(deadline=None, max_examples=400)
@given(
    everything=st.booleans(),
    changes=st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 255)), min_size=1, max_size=3),
)
def test_changed_bytes_of_frequent_events_are_read_the_same(everything: bool, changes: list[tuple[int, int]]) -> None:
    data = bytearray(FREQUENT[everything])
    for position, byte in changes:
        data[position % len(data)] = byte
    expected, found = outcome(bytes(data), None), outcome(bytes(data), SEEN)
    if isinstance(expected, type):
        assert isinstance(found, type)
    else:
        assert shown(found) == shown(expected)


EVERY = alarm(
    2, object_id=ObjectId("w", AGENT), values={name: EVERYTHING[name] for name in EVERYTHING if name != "wide"}
)
FREQUENT = [encode(Envelope(content=EventsIndication([item, item]))) for item in (alarm(1), EVERY)]
SEEN = taught(alarm(1), EVERY)


@parametrized(NAMES)
def test_captured_messages_are_read_the_same(name: str) -> None:
    data = Vector(name).data
    reader = ObjectDecoder()
    expected = outcome(data, None)
    for _ in range(3):
        assert outcome(data, reader) == expected


def outcome(data: bytes, reader: ObjectDecoder | None) -> Envelope | V1Message | type[Exception]:
    try:
        return decode(data, reader)
    except (DecodeError, ProtocolError) as error:
        return type(error)


def shown(found: object) -> str:
    """In full, and NaN is like NaN."""
    return repr(found).replace("mappingproxy({})", "{}")


TAUGHT = [
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
@settings(deadline=None, max_examples=400)
@given(
    index=st.integers(0, len(TAUGHT) - 1),
    changes=st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 255)), min_size=1, max_size=3),
)
def test_changed_bytes_are_read_the_same(index: int, changes: list[tuple[int, int]]) -> None:
    reader = ObjectDecoder()
    for message in TAUGHT * 3:
        decode(message, reader)
    data = bytearray(TAUGHT[index])
    for position, byte in changes:
        data[position % len(data)] = byte
    expected, found = outcome(bytes(data), None), outcome(bytes(data), reader)
    if isinstance(expected, type):
        assert isinstance(found, type)
    else:
        assert shown(found) == shown(expected)


@pytest.mark.slow
@parametrized([name for name in NAMES if name.startswith("libqmf2-10-")])
@settings(deadline=None, max_examples=40)
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
        assert reader.matched
        try:
            general = objects_from_list(amqp010.decode_list(body, text=True))
        except DecodeError:
            assert not fits
            with pytest.raises(DecodeError):
                reader.objects(body)
        else:
            assert fits
            assert reader.objects(body) == general


# -- copies


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


# -- bounds


def looks(reader: ObjectDecoder) -> dict[bytes, dict[int, list[tuple[str, ...]]]]:
    """Names of the shapes known, by class and number."""
    return {
        raw: {number: [shape.names for shape in shapes] for number, shapes in found.shapes.items()}
        for raw, found in reader.shapes.classes.items()
        if found.shapes
    }


def test_long_class_keys_ids_and_columns_are_not_remembered() -> None:
    reader = ObjectDecoder()
    long = "x" * MAX_KEY_SIZE
    key = attrs.evolve(KEY, package=long)
    for _ in range(3):
        found = objects(reader, thing(1, class_key=key, object_id=ObjectId("n", long)))
        assert found[0].class_key == key
    assert reader.shapes.classes == {}
    assert reader.object_ids.frames == []
    for columns in (("x" * 20_001,), ("x" * 20_000,)):
        read(reader, ObjectsResponse([], [block(columns, b"\x22", b"")]))
    assert [columns for columns, _ in reader.row_decoders] == [columns]


def test_layouts_that_cannot_be_are_not_remembered() -> None:
    reader = ObjectDecoder()
    columns = tuple(f"c{number}" for number in range(600))
    body = amqp010.encode_list([block_to_map(block(columns, b"\x95" * 600, b""))])
    with pytest.raises(DecodeError, match="rows of 600 columns"):
        reader.objects(body)
    assert reader.row_decoders == {}


def test_all_shapes_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_SHAPES_SIZE < 20_000_000
    monkeypatch.setattr(known_shapes, "MAX_SHAPES_SIZE", 100_000)
    monkeypatch.setattr(known_shapes, "MAX_CLASSES", 6)
    reader = ObjectDecoder()
    most = 0
    for number in range(300):
        key = attrs.evolve(KEY, hash=UUID(int=number // 40))
        values = {f"n{number}x{i}": 1 for i in range(number % 7)}
        objects(reader, *[thing(1, class_key=key, values=values)] * LEARN_AFTER)
        kept = sum(len(shapes) for class_ in looks(reader).values() for shapes in class_.values())
        assert kept * known_shapes.SHAPE_SIZE <= 100_000
        assert len(reader.shapes.classes) <= 6
        most = max(most, kept)
    assert most > 10


def test_the_newest_shapes_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_shapes, "RELEARN_AFTER", 10)
    reader = ObjectDecoder()
    for number in range(3 * MAX_SHAPES):
        objects(reader, *[thing(1, values={f"n{number}": 1})] * 20)
    (shapes,) = looks(reader).values()
    assert shapes == {1: [(f"n{number}",) for number in reversed(range(2 * MAX_SHAPES, 3 * MAX_SHAPES))]}
    assert reader.general < 3 * MAX_SHAPES * 12


def test_many_shapes_do_not_drive_each_other_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_shapes, "RELEARN_AFTER", 1000)
    reader = ObjectDecoder()
    many = [thing(1, values={f"n{number}": 1}) for number in range(MAX_SHAPES + 1)]
    for _ in range(6 * MAX_SHAPES):
        objects(reader, *many)
    before = looks(reader)
    general = reader.general
    for _ in range(9):
        objects(reader, *many)
    assert reader.general == general + 9
    (one,), (other,) = before.values(), looks(reader).values()
    assert set(one[1]) == set(other[1])


def test_forgotten_shapes_are_freed_at_once() -> None:
    reader = ObjectDecoder()
    gc.disable()
    try:
        first, _, item = objects(reader, *[thing(1, values={"map": {"k": 1}})] * 3)
        assert isinstance(item.values, LazyValues)
        shape = weakref.ref(item.values.layout)
        reader.shapes.classes.clear()
        assert dict(item.values) == dict(first.values) == {"map": {"k": 1}}
        assert shape() is not None
        del item, _
        assert shape() is None
    finally:
        gc.enable()


def test_a_shape_is_known_once_whatever_is_around_it() -> None:
    reader = ObjectDecoder()
    for times in ({}, {"update_ts": 0}, {"delete_ts": 5}, {"create_ts": 0}):
        objects(reader, thing(1, **times), thing(2, **times))
    (shapes,) = looks(reader).values()
    assert shapes == {4: [("name", "count", "total", "map")]}


def test_what_is_remembered_is_bounded() -> None:
    reader = ObjectDecoder()
    for number in range(MAX_CLASSES + 5):
        key = attrs.evolve(KEY, hash=UUID(int=number))
        pair = thing(1, class_key=key), thing(2, class_key=key, object_id=ObjectId("x", f"a:b:{number}"))
        objects(reader, *pair)
        if number < 2 * MAX_FRAMES:
            objects(reader, *pair)
    for number in range(8 * MAX_SHAPES):
        objects(reader, thing(1, values={f"n{number}": 1}))
    for number in range(2 * MAX_ENVELOPES):
        fields = {"_values": {}, **{f"_{name}_ts": number for name in ("update", "create", "delete")[: number % 4]}}
        reader.objects(amqp010.encode_list([dict(reversed(fields.items())) if number % 2 else fields]))
    assert 0 < len(reader.shapes.classes) <= MAX_CLASSES
    assert 0 < len(reader.object_ids.frames) <= MAX_FRAMES
    assert 0 < len(reader.shapes.envelopes) <= MAX_ENVELOPES
    counts = [shapes for item in reader.shapes.classes.values() for shapes in item.shapes.values()]
    assert max(map(len, counts)) <= MAX_SHAPES


def test_layouts_are_bounded() -> None:
    reader = ObjectDecoder()
    for number in range(MAX_LAYOUTS + 5):
        read(reader, ObjectsResponse([], [block((f"c{number}",), b"\x22", b"")]))
    assert len(reader.row_decoders) <= MAX_LAYOUTS


# -- blocks


def block(columns: tuple[str, ...], codes: bytes, rows: bytes) -> ObjectBlock:
    return ObjectBlock(class_key=KEY, agent_name=AGENT, agent_epoch=3, columns=columns, codes=codes, rows=rows)


def row(name: bytes, number: int, text: bytes) -> bytes:
    fixed = struct.pack(">1sqqqIII", b"\x03", 3, 2, 1, number, len(name), len(text))
    return (len(fixed) + len(name) + len(text)).to_bytes(4, "big") + fixed + name + text


COLUMNS, CODES = ("count", "name"), b"\x22\x95"
ROWS = b"".join(row(b"w%d" % number, number, b"text") for number in range(3))


@pytest.mark.parametrize("reader", [None, ObjectDecoder()], ids=["general", "reader"])
@pytest.mark.parametrize("kind", [ObjectsResponse, ObjectsIndication])
def test_a_block_becomes_objects(
    kind: type[ObjectsResponse] | type[ObjectsIndication], reader: ObjectDecoder | None
) -> None:
    envelope = decode(encode(Envelope(content=kind([thing(7)], [block(COLUMNS, CODES, ROWS)]))), reader)
    assert isinstance(envelope, Envelope)
    content = envelope.content
    assert isinstance(content, kind)
    assert not content.blocks
    first, *others = content.objects
    assert first == thing(7)
    assert others == [
        ObjectData(
            values={"count": number, "name": "text"},
            object_id=ObjectId(f"w{number}", AGENT, 3),
            class_key=KEY,
            update_ts=3,
            create_ts=2,
            delete_ts=1,
        )
        for number in range(3)
    ]


def test_objects_of_a_block_alone_are_made_when_they_are_asked_for() -> None:
    content = read(ObjectDecoder(), ObjectsResponse([], [block(COLUMNS, CODES, ROWS)])).content
    assert isinstance(content, ObjectsResponse)
    found = content.objects
    assert isinstance(found, RowObjects)
    assert len(found) == 3
    assert found.class_key == KEY
    assert [item.values["count"] for item in found] == [0, 1, 2]
    assert found[1] == found[1:][0] == list(found)[1]
    assert found[-1].object_id == ObjectId("w2", AGENT, 3)
    assert found == list(found)
    assert found != list(found)[1:]
    assert found != 5
    assert repr(found) == repr(list(found))
    with pytest.raises(IndexError):
        found[3]
    with pytest.raises(TypeError):
        hash(found)


def test_blocks_and_objects_keep_their_order() -> None:
    rows = block(COLUMNS, CODES, ROWS)
    items = [block_to_map(rows), object_to_map(thing(7)), block_to_map(rows), block_to_map(rows)]
    data = encode(Envelope(content=ObjectsResponse(())), body=amqp010.encode_list(items))
    reader = ObjectDecoder()
    for _ in range(2):
        envelope = decode(data, reader)
        assert envelope == decode(data)
        assert isinstance(envelope, Envelope)
        assert isinstance(envelope.content, ObjectsResponse)
        names = [item.object_id.object_name[-2:] for item in envelope.content.objects if item.object_id]
        assert names == ["w0", "w1", "w2", "w7", "w0", "w1", "w2", "w0", "w1", "w2"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"_row_form": ROW_FORM + 1}, "_row_form is 2, not 1"),
        ({"_row_form": "x"}, "_row_form"),
        ({"_schema_id": {}}, "_schema_id"),
        ({"_columns": ["count"]}, "2 type codes for 1 columns"),
        ({"_columns": [1, 2]}, "_columns"),
        ({"_codes": 5}, "_codes"),
        ({"_rows": None}, "_rows is missing"),
        ({"_rows": ROWS[:-1]}, "row at offset"),
        ({"_rows": ROWS + b"\x00"}, "row at offset"),
    ],
)
def test_broken_blocks_are_refused(changes: dict[str, object], words: str) -> None:
    fields = {**block_to_map(block(COLUMNS, CODES, ROWS)), **changes}
    data = encode(Envelope(content=ObjectsResponse(())), body=amqp010.encode_list([fields]))
    for reader in (None, ObjectDecoder()):
        with pytest.raises((DecodeError, ProtocolError), match=words):
            decode(data, reader)


def test_rows_that_happen_to_be_text_are_bytes_again() -> None:
    fixed = struct.pack(">1sqqq?I", b"\x01", 1, 2, 0, True, 1)
    rows = (len(fixed) + 1).to_bytes(4, "big") + fixed + b"n"
    assert rows.isascii()
    content = read(ObjectDecoder(), ObjectsResponse([], [block(("flag",), b"\x08", rows)])).content
    assert isinstance(content, ObjectsResponse)
    assert content.objects[0].values == {"flag": True}
