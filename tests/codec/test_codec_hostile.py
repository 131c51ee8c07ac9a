"""Whatever bytes arrive, decoders return or raise `DecodeError`, and use memory in proportion to the bytes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.examples import examples
from support.vectors import NAMES, Vector, parametrized

from qmf.codec import Described, amqp010, amqp10, decode_message
from qmf.errors import DecodeError

DECODERS: dict[str, Callable[[bytes], object]] = {
    "amqp10": amqp10.decode,
    "amqp10 text": lambda data: amqp10.decode(data, text=True),
    "map": amqp010.decode_map,
    "list": amqp010.decode_list,
    "message": decode_message,
    "routing": lambda data: decode_message(data, body=False, text=False),
}


def survives(decode: Callable[[bytes], object], data: bytes) -> bool:
    """Decode; True when it went well. Any error but `DecodeError` fails the test."""
    try:
        decode(data)
    except DecodeError:
        return False
    except Exception as error:
        raise AssertionError(f"{data!r}: {error!r}") from error
    return True


@pytest.mark.slow
@pytest.mark.parametrize("decoder", DECODERS)
@given(data=st.binary(max_size=200))
@example(data=b"")
@example(data=b"\x00" * 2000)
@example(data=b"\xc0" * 2000)
def test_random_bytes(decoder: str, data: bytes) -> None:
    survives(DECODERS[decoder], data)


# Bytes that look like AMQP more often than chance makes them.
CODES_10 = [0x00, 0x40, 0x41, 0x45, 0x50, 0x53, 0x55, 0x56, 0x73, 0x98, 0xA0, 0xA1, 0xA3, 0xB1, 0xC0, 0xC1, 0xD0, 0xD1]
CODES_010 = [0x02, 0x08, 0x31, 0x48, 0x80, 0x84, 0x90, 0x95, 0xA8, 0xA9, 0xAA, 0xAB, 0xC8, 0xD8, 0xE0, 0xF0, 0xF1]
LIKELY = st.lists(
    st.sampled_from([*CODES_10, *CODES_010, 0xE0, 0xF0, 0x70, 0x74, 0x75, 0x77, 1, 2, 3, 4, 5, 8, 0x61]), max_size=60
).map(bytes)


@pytest.mark.slow
@pytest.mark.parametrize("decoder", DECODERS)
@examples(190)
@given(data=LIKELY, size=st.integers(0, 70))
def test_likely_bytes(decoder: str, data: bytes, size: int) -> None:
    survives(DECODERS[decoder], data)
    survives(DECODERS[decoder], bytes((0, 0, 0, size, 0, 0, 0, 1)) + data)


@parametrized(NAMES)
def test_captured_messages_cut_anywhere(name: str) -> None:
    data = Vector(name).data
    step = max(1, len(data) // 200)
    whole = [end for end in range(0, len(data), step) if survives(decode_message, data[:end])]
    # Only where a section ends does a shorter message stand.
    assert len(whole) <= 5
    assert survives(decode_message, data)


@pytest.mark.slow
@parametrized(NAMES)
@examples(15)
@given(changes=st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 255)), min_size=1, max_size=4))
def test_captured_messages_with_changed_bytes(name: str, changes: list[tuple[int, int]]) -> None:
    data = bytearray(Vector(name).data[:3000])
    for position, value in changes:
        data[position % len(data)] = value
    survives(decode_message, bytes(data))


def u32(number: int) -> bytes:
    return number.to_bytes(4, "big")


def array32(count: int, element: bytes) -> bytes:
    return b"\xf0" + u32(4 + len(element)) + u32(count) + element


BOMBS_10 = {
    "array of nulls": array32(2**32 - 1, b"\x40"),
    "array of empty lists": array32(2**32 - 1, b"\x45"),
    "array of zeros": array32(2**31, b"\x43"),
    "array of bytes": array32(2**32 - 1, b"\x50"),
    "list": b"\xd0" + u32(4) + u32(2**32 - 1),
    "map": b"\xd1" + u32(4) + u32(2**32 - 2),
    "string": b"\xb1" + u32(2**32 - 1) + b"a",
    "many small arrays": b"\xd0" + u32(4 + 4 * 1000) + u32(1000) + b"\xe0\x02\x10\x45" * 1000,
    "empty lists": b"\xd0" + u32(4 + 20_000) + u32(20_000) + b"\x45" * 20_000,
    "empty maps": b"\xd0" + u32(4 + 20_001) + u32(6667) + b"\xc1\x01\x00" * 6667,
    "small numbers": b"\xd0" + u32(4 + 20_000) + u32(10_000) + b"\x52\xff" * 10_000,
    "described arrays": b"\xf0" + u32(4 + 4 + 10_000) + u32(10_000) + b"\x00\x53\x01\x50" + b"\x07" * 10_000,
    "lists inside each other": b"\xc0\xff\x01" * 5000,
    "descriptors inside each other": b"\x00" * 20_000,
}

BOMBS_010 = {
    "list": u32(4) + u32(2**32 - 1),
    "list of voids": u32(4 + 20_000) + u32(20_000) + b"\xf0" * 20_000,
    "array of voids": u32(4 + 10) + u32(1) + b"\xaa" + u32(5) + b"\xf0" + u32(2**32 - 1),
    "array of bits": u32(4 + 10) + u32(1) + b"\xaa" + u32(5) + b"\xf1" + u32(2**32 - 1),
    "array of numbers": u32(4 + 10) + u32(1) + b"\xaa" + u32(5) + b"\x02" + u32(2**32 - 1),
    "binary": u32(4 + 6) + u32(1) + b"\xa0" + u32(2**32 - 1) + b"a",
    "lists inside each other": (u32(0xFFFF) + u32(1) + b"\xa9") * 5000,
    "empty lists": u32(4 + 9 * 2000) + u32(2000) + (b"\xa9" + u32(4) + u32(0)) * 2000,
}

#: Bytes of memory for a byte of input. The dearest honest input is a list of empty lists: 56 and a pointer for one
#: byte. Arrays of empty lists, 16 in four bytes, come to about 300.
FACTOR = 400


@pytest.mark.parametrize(
    ("decode", "data"),
    [
        *(pytest.param(amqp10.decode, data, id=f"1.0 {name}") for name, data in BOMBS_10.items()),
        *(pytest.param(amqp010.decode_list, data, id=f"0-10 {name}") for name, data in BOMBS_010.items()),
    ],
)
def test_claims_cost_no_memory(decode: Callable[[bytes], object], data: bytes) -> None:
    tracemalloc.start()
    try:
        survives(decode, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < FACTOR * len(data) + 20_000


def a_map(keys: list[bytes]) -> bytes:
    """An AMQP 1.0 map of nulls."""
    items = b"".join(key + b"\x40" for key in keys)
    return b"\xd1" + u32(4 + len(items)) + u32(2 * len(keys)) + items


@pytest.mark.parametrize("head", [b"\x98", b"\x00\x53\x01\x98"], ids=["uuids", "described"])
def test_keys_of_one_hash_are_for_small_maps(head: bytes) -> None:
    keys = [head + (number * (2**61 - 1) + 5).to_bytes(16, "big") for number in range(1, 34)]
    with pytest.raises(DecodeError, match="33 keys, some of a type for small maps only"):
        amqp10.decode(a_map(keys))
    found, _ = amqp10.decode(a_map(keys[1:]))
    assert isinstance(found, dict)
    assert len(found) == 32
    assert {type(key) for key in found} <= {UUID, Described}


def test_keys_of_large_maps() -> None:
    keys = [b"\x80" + number.to_bytes(8, "big") for number in range(300)]
    keys += [b"\x40", b"\x41", b"\xa1\x01a", b"\xa3\x01b", b"\xa0\x01\xff"]
    found, _ = amqp10.decode(a_map(keys))
    assert isinstance(found, dict)
    assert {"a", "b", b"\xff", None, True, 299} <= set(found)
