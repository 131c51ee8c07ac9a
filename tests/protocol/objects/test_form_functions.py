"""Frequent events are read in one go, and as the general functions read them."""

from __future__ import annotations

from uuid import UUID

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol.objects.decoding import AGENT, ALARM, alarm, events, outcome, shown
from support.examples import examples

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
)
from qmf.protocol import (
    Envelope,
    EventData,
    EventsIndication,
    ObjectDecoder,
    ObjectId,
    decode,
    encode,
)
from qmf.protocol.objects.decoder import COMPILE_AFTER
from qmf.protocol.objects.known_forms import MAX_FORMS, RELEARN_AFTER
from qmf.protocol.objects.lazy_values import LazyValues


def trained(*forms: EventData) -> ObjectDecoder:
    """A decoder that has seen so many events of each form that it reads them in one go."""
    reader = ObjectDecoder()
    for form in forms:
        events(reader, *[form] * COMPILE_AFTER)
    assert sum(map(len, reader.event_forms.functions.values())) == len(forms)
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
    reader = trained(alarm(0))
    general = reader.general
    found = events(reader, *map(alarm, range(5)))
    assert all(isinstance(item.values, dict | LazyValues) for item in found)
    assert found == list(map(alarm, range(5)))
    assert all(item.class_key is found[0].class_key for item in found)
    assert reader.general == general


@pytest.mark.parametrize("name", EVERYTHING)
def test_arguments_of_each_type(name: str) -> None:
    value = EVERYTHING[name]
    before, behind = {"a": "b"}, {"z": UInt32(3), "y": "x"}
    one = alarm(1, values={**before, name: value, **behind})
    reader = trained(one)
    (found,) = events(reader, one)
    assert found.values[name] == value
    assert repr(found.values) == repr(events(ObjectDecoder(), one)[0].values)


def test_arguments_are_not_shared() -> None:
    one = alarm(1, values={"map": {"k": "v"}})
    first, second = events(trained(one), one, one)
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
    reader = trained(alarm(1))
    strange = alarm(2, **other)
    for _ in range(3):
        assert events(reader, alarm(1), strange, alarm(3), strange) == [alarm(1), strange, alarm(3), strange]


def test_frequent_events_about_an_object() -> None:
    reader = trained(alarm(1, object_id=ObjectId("w", AGENT, 3)))
    others = [alarm(1, object_id=ObjectId(name, AGENT, 3)) for name in ("one", "ä", "x" * 300)]
    assert events(reader, *others) == others


def test_several_forms_are_frequent() -> None:
    forms = [alarm(1), alarm(2, values={"level": UInt32(1)}), alarm(3, class_key=None)]
    reader = trained(*forms)
    assert events(reader, *forms, *reversed(forms)) == [*forms, *reversed(forms)]


def test_severities_that_are_none_are_the_nearest() -> None:
    reader = trained(alarm(1))
    data = bytearray(encode(Envelope(content=EventsIndication([alarm(1)]))))
    data[data.index(b"_severity") + 10] = 200
    envelope = decode(bytes(data), reader)
    assert envelope == decode(bytes(data))
    assert isinstance(envelope, Envelope)
    assert isinstance(envelope.content, EventsIndication)
    assert envelope.content.events[0].severity == 7


def test_a_form_that_was_dropped_is_compiled_again() -> None:
    reader = trained(*[alarm(1, values={f"n{number}": 1}) for number in range(MAX_FORMS)])
    first = alarm(1, values={"n0": 2})
    events(reader, *[alarm(1, values={"other": 1})] * RELEARN_AFTER)
    general = reader.general
    assert events(reader, *[first] * (RELEARN_AFTER + 1)) == [first] * (RELEARN_AFTER + 1)
    assert COMPILE_AFTER < reader.general - general <= RELEARN_AFTER


@pytest.mark.slow
@examples(250)
@given(
    which=st.integers(0, 2),
    changes=st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 255)), min_size=1, max_size=3),
)
def test_changed_bytes_of_frequent_events_are_read_the_same(which: int, changes: list[tuple[int, int]]) -> None:
    data = bytearray(FREQUENT[which])
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
#: Where compiled functions are installed, they read all but the last.
KINDS = (alarm(1), attrs.evolve(EVERY, object_id=None), EVERY)
FREQUENT = [encode(Envelope(content=EventsIndication([item, item]))) for item in KINDS]
SEEN = trained(*KINDS)
