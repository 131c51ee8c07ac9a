"""What a decoder remembers of objects: enough, and not more."""

from __future__ import annotations

import gc
import weakref
from uuid import UUID

import attrs
import pytest
from protocol.objects.decoding import KEY, block, known_names, objects, read, thing

from qmf.codec import (
    amqp010,
)
from qmf.errors import DecodeError
from qmf.protocol import (
    ObjectDecoder,
    ObjectId,
    ObjectsResponse,
)
from qmf.protocol.objects import known_shapes
from qmf.protocol.objects.decoder import MAX_LAYOUTS
from qmf.protocol.objects.general import block_to_map
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
        kept = sum(len(shapes) for class_ in known_names(reader).values() for shapes in class_.values())
        assert kept * known_shapes.SHAPE_SIZE <= 100_000
        assert len(reader.shapes.classes) <= 6
        most = max(most, kept)
    assert most > 10


def test_the_newest_shapes_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_shapes, "RELEARN_AFTER", 10)
    reader = ObjectDecoder()
    for number in range(3 * MAX_SHAPES):
        objects(reader, *[thing(1, values={f"n{number}": 1})] * 20)
    (shapes,) = known_names(reader).values()
    assert shapes == {1: [(f"n{number}",) for number in reversed(range(2 * MAX_SHAPES, 3 * MAX_SHAPES))]}
    assert reader.general < 3 * MAX_SHAPES * 12


def test_many_shapes_do_not_drive_each_other_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_shapes, "RELEARN_AFTER", 1000)
    reader = ObjectDecoder()
    many = [thing(1, values={f"n{number}": 1}) for number in range(MAX_SHAPES + 1)]
    for _ in range(6 * MAX_SHAPES):
        objects(reader, *many)
    before = known_names(reader)
    general = reader.general
    for _ in range(9):
        objects(reader, *many)
    assert reader.general == general + 9
    (one,), (other,) = before.values(), known_names(reader).values()
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
    (shapes,) = known_names(reader).values()
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
