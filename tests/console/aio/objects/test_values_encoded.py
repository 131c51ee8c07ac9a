"""Objects whose values stay bytes: merged, compared and read as if they had been unpacked at once."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.scripted_agent import ALARM, WIDGET

from qmf.codec import UInt32, UInt64, amqp010
from qmf.console.aio import ClassFields, RemoteObject
from qmf.console.aio.indications import ObjectStore
from qmf.console.aio.objects.class_fields import MAX_GROUPS, difference, merge, value_groups
from qmf.console.aio.objects.remote_event import EventArguments, argument_types
from qmf.console.aio.objects.remote_object import remote_objects
from qmf.protocol import (
    Envelope,
    ObjectData,
    ObjectDecoder,
    ObjectId,
    ObjectsIndication,
    decode,
    encode,
)
from qmf.protocol.objects import Column, RowEncoder, as_dict, class_runs, compare_bytes, merge_values
from qmf.protocol.objects.lazy_values import LazyValues
from qmf.protocol.objects.merged_values import MergedValues
from qmf.protocol.objects.row_objects import RowObjects
from qmf.protocol.objects.rows import RowDecoder
from qmf.schema import TYPES

AGENT = "example.org:widgets:1"
FIELDS = ClassFields(WIDGET)
ID = ObjectId("w", AGENT)

NAMES = ["name", "size", "label", "turns", "load", "loadHigh", "strange"]
UPDATES = st.lists(st.dictionaries(st.sampled_from(NAMES), st.integers(0, 2), max_size=7), min_size=1, max_size=6)


def lazy(values: dict[str, object], reader: ObjectDecoder | None = None) -> ObjectData:
    """An object as it is received after others like it."""
    reader = ObjectDecoder() if reader is None else reader
    data = encode(Envelope(content=ObjectsIndication([ObjectData(values=values, object_id=ID, class_key=WIDGET.key)])))
    for _ in range(3):
        envelope = decode(data, reader)
    assert isinstance(envelope, Envelope)
    assert isinstance(envelope.content, ObjectsIndication)
    (found,) = envelope.content.objects
    return found


def remote(data: ObjectData, fields: ClassFields | None = FIELDS) -> RemoteObject:
    return RemoteObject(data, ID, AGENT, fields, None)


@pytest.mark.slow
@given(updates=UPDATES, known=st.booleans())
def test_merging_bytes_is_merging_values(updates: list[dict[str, object]], known: bool) -> None:
    fields = FIELDS if known else None
    eager, late = (ObjectData(values={}, object_id=ID) for _ in range(2))
    for update in updates:
        before_eager, before_late = eager, late
        eager = merge(eager, ObjectData(values=update, object_id=ID), fields)
        late = merge(late, lazy(update), fields)
        assert as_dict(late.values) == eager.values
        assert late.values == eager.values
        assert set(late.values) == set(eager.values)
        assert len(late.values) == len(eager.values)
        for name in NAMES:
            assert (name in late.values) is (name in eager.values)
            assert late.values.get(name, "none") == eager.values.get(name, "none")
        assert difference(before_late, late, fields) == difference(before_eager, eager, fields)


def test_updates_of_one_group_stay_two_layers() -> None:
    data = lazy({"name": "w", "size": 1, "turns": 1})
    for number in range(5):
        data = merge(data, lazy({"turns": UInt64(number)}), FIELDS)
        assert isinstance(data.values, MergedValues)
        assert isinstance(data.values.newer, LazyValues)
        assert isinstance(data.values.older, LazyValues)
    assert as_dict(data.values) == {"name": "w", "size": 1, "turns": 4}
    assert repr(data.values) == repr({"name": "w", "size": 1, "turns": 4})
    whole = merge(data, lazy({"name": "w", "size": 2, "turns": 9}), FIELDS)
    assert isinstance(whole.values, LazyValues)


def test_an_optional_property_that_is_left_out_is_hidden() -> None:
    data = merge(lazy({"name": "w", "label": "x", "turns": 1}), lazy({"name": "w"}), FIELDS)
    assert isinstance(data.values, MergedValues)
    assert "label" not in data.values
    with pytest.raises(KeyError):
        data.values["label"]
    assert dict(data.values) == {"name": "w", "turns": 1}


def test_an_update_that_is_no_bytes_is_laid_over_bytes() -> None:
    assert merge_values(lazy({"name": "w", "turns": 1}).values, {"turns": 2}, ["name"]) == {"turns": 2}


def test_what_is_kept_does_not_keep_its_message() -> None:
    store = ObjectStore()
    first = lazy({"name": "w" * 100, "turns": UInt32(1)})
    kept = store.update(remote(first)).data.values
    assert isinstance(kept, LazyValues)
    assert kept == first.values
    assert [item for item in gc.get_referents(kept) if isinstance(item, bytes)] == [kept.raw()]
    assert remote(attrs.evolve(first, values={"name": "w"})).without_message().data.values == {"name": "w"}


def test_groups_of_many_shapes_are_not_all_remembered() -> None:
    fields = ClassFields(WIDGET)
    for number in range(MAX_GROUPS + 5):
        assert value_groups(fields, lazy({"name": "w", f"n{number}": 1}).values) == (True, False)
    assert len(fields.groups) <= MAX_GROUPS
    assert value_groups(fields, lazy({"turns": 1}).values) == value_groups(fields, {"turns": 1}) == (False, True)
    assert value_groups(fields, {}) == (False, False)


def test_several_values_are_read_at_once() -> None:
    obj = remote(lazy({"name": "w", "turns": UInt64(7)}))
    assert obj.values_of(["turns", "name", "label"]) == [7, "w", None] == [obj["turns"], obj["name"], obj["label"]]
    values = obj.typed_values
    assert {name: values[name] for name in values} == {**obj.properties, **obj.statistics}
    assert "label" not in values
    assert values.get("label") is None
    assert len(values) == len(obj.data.values)
    assert obj.properties == {"name": "w"}
    assert obj.statistics == {"turns": 7}


def test_arguments_of_an_event_are_typed_when_they_are_read() -> None:
    names = [item.name for item in ALARM.arguments]
    values = {"strange": 1, **dict.fromkeys(reversed(names), 1)}
    arguments = EventArguments(values, argument_types(ALARM), AGENT)
    assert list(arguments) == [*names, "strange"]
    assert dict(arguments) == arguments.read() == {name: arguments[name] for name in arguments}
    assert len(arguments) == len(values)
    assert "strange" in arguments
    assert "nothing" not in arguments
    assert repr(arguments) == repr(arguments.read())
    with pytest.raises(KeyError):
        arguments["nothing"]
    assert EventArguments(values, argument_types(None), AGENT) == values


def test_lazy_values_equal_the_decoded_map() -> None:
    values = lazy({"name": "w", "size": 1}).values
    assert amqp010.decode_map(amqp010.encode_map(values)) == {"name": "w", "size": 1}


def rows(*values: dict[str, object], agent: str | None = AGENT) -> RowObjects:
    """Objects as our own agents send them."""
    columns = [Column("name", TYPES["sstr"]), Column("turns", TYPES["uint64"])]
    encoder = RowEncoder(WIDGET.key, ObjectId("", agent, 3), columns, 1)
    raw = [encoder.row(5, 4, 0, encoder.lead(f"id-{item['name']}", [item["name"]]), [item["turns"]]) for item in values]
    block = encoder.block(raw)
    return RowObjects(block, RowDecoder(block.columns, block.codes))


VALUES: list[dict[str, object]] = [{"name": "a", "turns": 1}, {"name": "b", "turns": 2}]


@pytest.mark.parametrize("agent", [AGENT, None, "broker"])
def test_remote_objects_are_what_they_would_be_one_by_one(agent: str | None) -> None:
    block = rows(*VALUES, agent=agent)
    found = remote_objects(block, AGENT, FIELDS, None)
    ids = [ObjectId("id-a", AGENT, 3), ObjectId("id-b", AGENT, 3)]
    expected = [RemoteObject(data, oid, AGENT, FIELDS, None) for data, oid in zip(block, ids, strict=True)]
    assert found == expected
    assert [obj.object_id for obj in remote_objects(block, AGENT, FIELDS, None)] == ids
    assert {*found} == {*expected}
    for obj, other, values in zip(found, expected, VALUES, strict=True):
        assert obj.data == other.data
        assert obj.data is obj.data
        assert obj.object_id is obj.object_id
        assert (obj["name"], obj.turns) == (values["name"], values["turns"])
        assert (obj.class_key, obj.agent) == (WIDGET.key, AGENT)
        assert obj.timestamps == other.timestamps
        assert repr(obj) == repr(other)
        assert obj.properties == other.properties
        assert obj.without_message() == obj.with_update(other.data) == other
    with pytest.raises(AttributeError):
        found[0].object_id = ids[1]  # type: ignore[misc]


class ReadObjects(list[ObjectData]):
    """Objects that note which of them are read."""

    def __init__(self, objects: Sequence[ObjectData]) -> None:
        super().__init__(objects)
        self.read: list[object] = []

    def __getitem__(self, index: Any) -> Any:
        self.read.append(index)
        return super().__getitem__(index)


def test_remote_objects_are_not_made_before_they_are_looked_at() -> None:
    objects = ReadObjects(rows(*VALUES))
    first, second = remote_objects(objects, AGENT, FIELDS, None)
    assert first["turns"] == 1
    assert objects.read == [0]
    assert second["turns"] == 2
    assert objects.read == [0, 1]


def test_runs_of_a_class() -> None:
    one, other = (ObjectData(values={}, class_key=key) for key in (WIDGET.key, None))
    assert class_runs([]) == []
    assert class_runs([one, one]) == [(WIDGET.key, [one, one])]
    twin = attrs.evolve(one, class_key=attrs.evolve(WIDGET.key))
    assert class_runs([one, twin]) == [(WIDGET.key, [one, twin])]
    assert class_runs([one, other, other, one]) == [(WIDGET.key, [one]), (None, [other, other]), (WIDGET.key, [one])]
    block = rows(*VALUES)
    assert class_runs(block) == [(WIDGET.key, block)]
    assert class_runs(rows()) == []


def test_updates_of_one_group_are_compared_by_their_bytes() -> None:
    reader = ObjectDecoder()
    state = lazy({"name": "w", "size": 1, "turns": 0, "load": 0}, reader)
    for turns in (1, 2, 3):
        before, state = state, merge(state, lazy({"turns": turns, "load": 0}, reader), FIELDS)
        if turns > 1:
            found = compare_bytes(before.values, state.values)
            assert found is not None
            assert (found[0], as_dict(found[1])["turns"]) == (False, turns)
        assert difference(before, state, FIELDS) == (False, True)
