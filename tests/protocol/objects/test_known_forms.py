"""What a decoder remembers of objects and events: enough, and not more."""

from __future__ import annotations

import gc
import weakref
from uuid import UUID

import attrs
import pytest
from protocol.objects.decoding import KEY, alarm, block, events, known_names, objects, read, thing

from qmf.codec import (
    amqp010,
)
from qmf.errors import DecodeError
from qmf.protocol import (
    ObjectDecoder,
    ObjectId,
    ObjectsResponse,
)
from qmf.protocol.objects import known_forms
from qmf.protocol.objects.decoder import COMPILE_AFTER, LEARN_AFTER, MAX_LAYOUTS
from qmf.protocol.objects.general import block_to_map
from qmf.protocol.objects.known_forms import MAX_COUNTED, MAX_FORMS, MAX_KEY_SIZE, MAX_SIZE
from qmf.protocol.objects.lazy_values import LazyValues
from qmf.protocol.objects.object_ids import MAX_FRAMES


def test_long_class_keys_ids_and_columns_are_not_remembered() -> None:
    reader = ObjectDecoder()
    long = "x" * MAX_KEY_SIZE
    key = attrs.evolve(KEY, package=long)
    for _ in range(3):
        found = objects(reader, thing(1, class_key=key, object_id=ObjectId("n", long)))
        assert found[0].class_key == key
    assert reader.object_forms.functions == {}
    assert reader.object_ids.frames == []
    for columns in (("x" * 20_001,), ("x" * 20_000,)):
        read(reader, ObjectsResponse([], [block(columns, b"\x22", b"")]))
    assert reader.row_decoder.cache_info().currsize == 1


def test_layouts_that_cannot_be_are_not_remembered() -> None:
    reader = ObjectDecoder()
    columns = tuple(f"c{number}" for number in range(600))
    body = amqp010.encode_list([block_to_map(block(columns, b"\x95" * 600, b""))])
    with pytest.raises(DecodeError, match="rows of 600 columns"):
        reader.objects(body)
    assert reader.row_decoder.cache_info().currsize == 0


def test_all_forms_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_SIZE < 20_000_000
    monkeypatch.setattr(known_forms, "MAX_SIZE", 100_000)
    reader = ObjectDecoder()
    most = 0
    for number in range(300):
        key = attrs.evolve(KEY, hash=UUID(int=number // 40))
        values = {f"n{number}x{i}": 1 for i in range(number % 7)}
        objects(reader, *[thing(1, class_key=key, values=values)] * LEARN_AFTER)
        kept = sum(map(len, known_names(reader)))
        assert kept * known_forms.FORM_SIZE <= 100_000
        most = max(most, kept)
    assert most > 10


def test_the_newest_forms_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_forms, "RELEARN_AFTER", 10)
    reader = ObjectDecoder()
    for number in range(3 * MAX_FORMS):
        objects(reader, *[thing(1, values={f"n{number}": 1})] * 20)
    (forms,) = known_names(reader)
    assert forms == [(f"n{number}",) for number in reversed(range(2 * MAX_FORMS, 3 * MAX_FORMS))]
    assert reader.general < 3 * MAX_FORMS * 12


def test_many_forms_do_not_drive_each_other_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_forms, "RELEARN_AFTER", 1000)
    reader = ObjectDecoder()
    many = [thing(1, values={f"n{number}": 1}) for number in range(MAX_FORMS + 1)]
    for _ in range(6 * MAX_FORMS):
        objects(reader, *many)
    before = known_names(reader)
    general = reader.general
    for _ in range(9):
        objects(reader, *many)
    assert reader.general == general + 9
    (one,), (other,) = before, known_names(reader)
    assert set(one) == set(other)


def test_forgotten_forms_are_freed_with_the_decoder() -> None:
    reader = ObjectDecoder()
    gc.disable()
    try:
        first, _, item = objects(reader, *[thing(1, values={"map": {"k": 1}})] * 3)
        assert isinstance(item.values, LazyValues)
        shape = weakref.ref(item.values.layout)
        del reader
        assert dict(item.values) == dict(first.values) == {"map": {"k": 1}}
        assert shape() is not None
        del item, _
        assert shape() is None
    finally:
        gc.enable()


def test_a_shape_is_shared_whatever_is_around_it() -> None:
    reader = ObjectDecoder()
    layouts = set()
    for times in ({}, {"update_ts": 0}, {"create_ts": 0, "update_ts": 0}):
        for item in objects(reader, *[thing(number, **times) for number in range(4)])[2:]:
            assert isinstance(item.values, LazyValues)
            layouts.add(id(item.values.layout))
    assert len(layouts) == 1
    assert known_names(reader) == [[("name", "count", "total", "map")] * 2]


def test_classes_that_take_turns_are_known() -> None:
    reader = ObjectDecoder()
    many = [thing(number, class_key=attrs.evolve(KEY, hash=UUID(int=number % 20))) for number in range(60)]
    objects(reader, *many)
    general = reader.general
    assert objects(reader, *many) == many
    assert reader.general == general


def test_a_text_like_a_key_does_not_mislead() -> None:
    reader = ObjectDecoder()
    for text in ("\n_schema_id\x00", "\n_schema_id", "x"):
        for name in ("name", "map"):
            item = thing(1, values={name: text if name == "name" else {text: "\n_schema_id"}})
            assert objects(reader, *[item] * 4) == [item] * 4


def test_what_is_remembered_is_bounded() -> None:
    reader = ObjectDecoder()
    for number in range(2 * MAX_FRAMES):
        objects(reader, *[thing(2, object_id=ObjectId("x", f"a:b:{number}"))] * 3)
    for number in range(8 * MAX_FORMS):
        objects(reader, *[thing(1, values={f"n{number}": 1})] * LEARN_AFTER)
    assert 0 < len(reader.object_ids.frames) <= MAX_FRAMES
    assert max(map(len, known_names(reader))) <= MAX_FORMS


def test_kinds_that_are_counted_are_bounded() -> None:
    reader = ObjectDecoder()
    rare = alarm(1, values={"rare": 1})
    for number in range(2 * MAX_COUNTED):
        events(reader, alarm(1, values={f"n{number}": 1}))
        if number % 30 == 0:
            events(reader, rare)
    assert reader.event_forms.functions == {}, "counting began anew before there were enough"
    events(reader, *[rare] * COMPILE_AFTER)
    assert len(reader.event_forms.functions) == 1


def test_layouts_are_bounded() -> None:
    reader = ObjectDecoder()
    for number in range(MAX_LAYOUTS + 5):
        read(reader, ObjectsResponse([], [block((f"c{number}",), b"\x22", b"")]))
    assert reader.row_decoder.cache_info().currsize == MAX_LAYOUTS
