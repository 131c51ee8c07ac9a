"""Plain maps and lists by the compiled functions: the same as by those in Python, which do all that is left to them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.codec import amqp010
from qmf.codec.limits import MAX_DEPTH
from qmf.codec.plain_maps import PlainMaps, plain_maps
from qmf.codec.types import (
    Char,
    Float32,
    Int8,
    Int16,
    Int32,
    Int64,
    Symbol,
    Timestamp,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
)
from qmf.errors import DecodeError

pytestmark = pytest.mark.skipif(plain_maps() is None, reason="not compiled (scripts/c_extensions.py)")

INTEGERS = st.integers(-(2**65), 2**65)
SIZED = st.builds(
    lambda kind, number: kind(number),
    st.sampled_from([Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Timestamp]),
    st.integers(-(2**33), 2**65) | st.integers(-300, 300),
)
TEXTS = st.text(max_size=20) | st.text(st.characters(codec="utf-8"), min_size=250, max_size=260)
SCALARS = st.one_of(INTEGERS, SIZED, TEXTS, st.binary(max_size=20), st.booleans(), st.none(), st.floats())
OTHERS = st.sampled_from([UUID(int=7), Symbol("s"), Char("c"), Float32(0.5), "\udc80", ("tuple",), object()])
VALUES = st.recursive(
    SCALARS | OTHERS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS | st.just(7), inner, max_size=4),
    max_leaves=12,
)
MAPS = st.dictionaries(TEXTS, VALUES, max_size=6)


@pytest.fixture
def compiled() -> PlainMaps:
    found = plain_maps()
    assert found is not None
    return found


def in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the functions in Python alone."""
    monkeypatch.setattr("qmf.codec._amqp010_encode._PLAIN", None)
    monkeypatch.setattr("qmf.codec.amqp010._PLAIN", None)


def outcome(function: Callable[..., object], *arguments: object, **more: object) -> tuple[object, object]:
    """Result or error; numbers compared with their types, so that 1 is not True, and NaN equals itself."""
    try:
        return "result", repr(function(*arguments, **more))
    except Exception as error:  # noqa: BLE001 - both ways must raise the same
        return type(error), str(error)


@pytest.mark.slow
@given(MAPS)
def test_maps_are_encoded_alike(value: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        found = outcome(amqp010.encode_map, value)
        listed = outcome(amqp010.encode_list, [value, value])
        in_python(monkeypatch)
        assert found == outcome(amqp010.encode_map, value)
        assert listed == outcome(amqp010.encode_list, [value, value])


@pytest.mark.slow
@given(MAPS, st.booleans(), st.data())
def test_maps_are_decoded_alike_whole_cut_and_changed(value: dict[str, Any], text: bool, data: st.DataObject) -> None:
    try:
        encoded = amqp010.encode_map(value)
    except (ValueError, TypeError):
        return
    place = data.draw(st.integers(0, len(encoded) - 1))
    changed = encoded[:place] + bytes([data.draw(st.integers(0, 255))]) + encoded[place + 1 :]
    variants = [encoded, encoded[:place], encoded + b"\0", changed]
    found = [outcome(amqp010.decode_map, each, text=text) for each in variants]
    listed = [outcome(amqp010.decode_list, each, text=text) for each in variants]
    with pytest.MonkeyPatch.context() as monkeypatch:
        in_python(monkeypatch)
        assert found == [outcome(amqp010.decode_map, each, text=text) for each in variants]
        assert listed == [outcome(amqp010.decode_list, each, text=text) for each in variants]


@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_decoded_alike(body: bytes) -> None:
    encoded = struct.pack(">I", len(body)) + body
    found = [outcome(read, encoded, text=True) for read in (amqp010.decode_map, amqp010.decode_list)]
    with pytest.MonkeyPatch.context() as monkeypatch:
        in_python(monkeypatch)
        assert found == [outcome(read, encoded, text=True) for read in (amqp010.decode_map, amqp010.decode_list)]


def test_what_bodies_of_calls_hold_is_plain(compiled: PlainMaps) -> None:
    call = {"_method_name": "echo", "_arguments": {"sequence": UInt32(5), "body": "é" * 300, "on": True, "no": None}}
    encoded = compiled.encode(call, 0)
    assert encoded is not None
    assert compiled.decode(encoded, True, True) == call
    assert compiled.decode(compiled.encode([call, [b"\xff", -1, 0.5]], 0) or b"", True, False) == [
        call,
        [b"\xff", -1, 0.5],
    ]


def test_all_of_the_others_are_left_to_python(compiled: PlainMaps) -> None:
    for value in (UUID(int=1), Symbol("s"), Char("c"), Float32(1), (1,), 2**64, Int8(200), UInt16(-1), object()):
        assert compiled.encode({"a": value}, 0) is None
        assert compiled.encode([value], 0) is None
    assert compiled.encode({"a" * 256: 1}, 0) is None
    assert compiled.encode({1: 1}, 0) is None
    assert compiled.encode((), 0) is None
    assert compiled.decode(amqp010.encode_map({"a": UUID(int=1)}), False, True) is None


def test_levels_have_the_same_limit(compiled: PlainMaps) -> None:
    deep: object = 1
    for _ in range(MAX_DEPTH - 1):
        deep = [deep]
    assert compiled.encode({"a": deep}, 0) == amqp010.encode_map({"a": deep})
    assert compiled.encode({"a": [deep]}, 0) is None
    assert compiled.encode({"a": deep}, 1) is None
    encoded = amqp010.encode_map({"a": deep})
    assert amqp010.decode_map(encoded) == {"a": deep}
    deeper = struct.pack(">IIBB", len(encoded) + 10 - 4 - 1 + 3, 1, 0, 0xA8) + encoded
    with pytest.raises(DecodeError):
        amqp010.decode_map(deeper)


def test_wrong_arguments_are_errors(compiled: PlainMaps) -> None:
    calls: list[Callable[[], object]] = [
        lambda: compiled.decode(bytearray(), True, True),  # type: ignore[arg-type]
        lambda: compiled.decode(b""),  # type: ignore[call-arg]
        lambda: compiled.encode({}),  # type: ignore[call-arg]
        lambda: compiled.encode({}, "x"),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(TypeError):
            call()
