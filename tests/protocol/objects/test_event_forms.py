"""The compiled functions for events: the same events as without them, and values that are read when somebody asks."""

from __future__ import annotations

import copy
import pickle
from uuid import UUID

import pytest
from protocol.objects.decoding import ALARM, alarm, events

from qmf.codec import Float32, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64
from qmf.errors import DecodeError
from qmf.protocol import ObjectDecoder
from qmf.protocol.objects import as_dict, encode_event, event_forms, list_body
from qmf.protocol.objects.decoder import COMPILE_AFTER
from qmf.protocol.objects.lazy_values import LazyValues

needs_module = pytest.mark.skipif(event_forms.compiled_module() is None, reason="the module is not compiled")

#: An argument of each kind, with the least and the greatest of numbers.
VALUES: dict[str, object] = {
    "int8": Int8(-128),
    "uint8": UInt8(255),
    "int16": Int16(-(2**15)),
    "uint16": UInt16(2**16 - 1),
    "int32": Int32(-(2**31)),
    "uint32": UInt32(2**32 - 1),
    "int64": Int64(-(2**63)),
    "uint64": UInt64(2**64 - 1),
    "float": Float32(-0.5),
    "double": 1e300,
    "true": True,
    "false": False,
    "none": None,
    "uuid": UUID(int=5),
    "text": "wäit",
    "binary": b"\xff",
    "map": {"k": {"l": [1]}},
    "list": [1, "x"],
}


@pytest.fixture(params=["compiled", "plain"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ObjectDecoder:
    """A decoder that reads events by compiled functions, and one without them."""
    if request.param == "plain":
        monkeypatch.setattr(event_forms, "compiled_module", lambda: None)
    elif event_forms.compiled_module() is None:
        pytest.skip("the module is not compiled")
    return ObjectDecoder()


def test_values_of_each_kind(reader: ObjectDecoder) -> None:
    one = alarm(1, values=VALUES)
    for _ in range(COMPILE_AFTER):
        events(reader, one)
    general = reader.general
    (found,) = events(reader, one)
    assert reader.general == general
    assert found == one
    assert {name: found.values[name] for name in VALUES} == VALUES
    assert [type(value) for value in as_dict(found.values).values()] == [
        type(value) for value in as_dict(events(ObjectDecoder(), one)[0].values).values()
    ]


def test_what_is_around_the_values(reader: ObjectDecoder) -> None:
    bare = alarm(0, class_key=None, values={"level": UInt32(1)})
    for _ in range(COMPILE_AFTER + 1):
        (found,) = events(reader, bare)
    assert (found.class_key, found.timestamp, found.severity, found.object_id) == (None, 1, 3, None)
    for number in range(COMPILE_AFTER + 1):
        (found,) = events(reader, alarm(number, severity=number % 8))
        assert (found.class_key, found.timestamp, found.severity) == (ALARM, number + 1, number % 8)


@pytest.mark.parametrize("strange", range(6))
def test_runs_end_where_an_event_is_different(reader: ObjectDecoder, strange: int) -> None:
    for _ in range(COMPILE_AFTER):
        events(reader, alarm(1))
    mixed = [alarm(number) for number in range(6)]
    mixed[strange] = alarm(9, values={"other": "x"})
    for _ in range(2):
        assert events(reader, *mixed) == mixed


@pytest.mark.parametrize("count", [0, 1, 2, 3, 2**32 - 1])
def test_runs_that_are_shorter_or_longer_than_they_say(reader: ObjectDecoder, count: int) -> None:
    for _ in range(COMPILE_AFTER):
        events(reader, alarm(1))
    body = list_body([encode_event(alarm(1)), encode_event(alarm(2))])
    changed = body[:4] + count.to_bytes(4, "big") + body[8:]
    if count == 2:
        assert reader.events(changed) == [alarm(1), alarm(2)]
    else:
        with pytest.raises(DecodeError):
            reader.events(changed)
    for end in range(8, len(body)):
        broken = (end - 4).to_bytes(4, "big") + body[4:end]
        with pytest.raises(DecodeError):
            reader.events(broken)


@pytest.fixture
def values() -> LazyValues:
    """Values of a compiled form."""
    reader = ObjectDecoder()
    for _ in range(COMPILE_AFTER + 1):
        (found,) = events(reader, alarm(5))
    assert isinstance(found.values, LazyValues)
    return found.values


@needs_module
def test_values_are_a_mapping(values: LazyValues) -> None:
    assert values == {"level": 5, "name": "w5"}
    assert (list(values), len(values), "level" in values, "other" in values) == (["level", "name"], 2, True, False)
    assert values.unpack() == dict(values) == copy.copy(values) == pickle.loads(pickle.dumps(values))
    assert values.get("other", 3) == 3
    with pytest.raises(KeyError, match="other"):
        values["other"]
    with pytest.raises(TypeError, match="unhashable"):
        values[[]]  # type: ignore[index]
    assert values.detach() is values
    assert values.raw() == values.detach().raw()


@needs_module
def test_bytes_of_another_event_are_refused(values: LazyValues) -> None:
    raw = values.raw()
    for end in range(raw.index(b"w5") + 2):
        other = LazyValues(values.layout, raw[:end], None)
        with pytest.raises(ValueError, match="the bytes are those of another event"):
            other.unpack()
    with pytest.raises(TypeError, match="bytes, a place"):
        values.layout.get("text", None, "name")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="bytes, a place"):
        values.layout.unpack(raw)  # type: ignore[call-arg]


@needs_module
@pytest.mark.parametrize(
    ("steps", "indexes", "error", "message"),
    [
        ([(event_forms.LEAVE,)], {}, ValueError, "do not fit together"),
        ([(event_forms.ENTER,)] * 3, {}, ValueError, "do not fit together"),
        ([(event_forms.CONSTANT, None)] * 401, {}, ValueError, "too many"),
        ([(event_forms.CONSTANT, None)], {"a": 1}, ValueError, "no value with such a number"),
        ([(event_forms.CONSTANT, None)], {"a": -1}, ValueError, "no value with such a number"),
        ([(99,)], {}, TypeError, "begins with its kind"),
        ([()], {}, TypeError, "begins with its kind"),
        ([(event_forms.BYTES, "text")], {}, TypeError, "bytes"),
    ],
    ids=["left", "deep", "many", "index", "negative", "kind", "empty", "text"],
)
def test_forms_that_fit_nothing_are_refused(
    steps: list[tuple[object, ...]], indexes: dict[str, int], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        event_forms.compiled_module().form(tuple(steps), ("a",), indexes, -1, -1, None, None, None, None, 5)
