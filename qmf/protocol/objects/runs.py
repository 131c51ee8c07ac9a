"""What the maps of one shape are made of: known bytes in runs, and between them values of variable width.

The words that `shapes` and the functions that it writes out (`shape_functions`) share. Knows nothing of QMF.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from qmf.codec.amqp010 import decode_list_at, decode_map_at
from qmf.errors import DecodeError

#: `struct` formats of the type codes whose values all have one width, but for those without bytes.
FORMATS: Mapping[int, str] = {
    0x01: "b",
    0x02: "B",
    0x08: "?",
    0x11: "h",
    0x12: "H",
    0x21: "i",
    0x22: "I",
    0x23: "f",
    0x31: "q",
    0x32: "Q",
    0x33: "d",
    0x38: "q",
    0x48: "16s",
    0xF0: "",
    0xF1: "",
}

#: Values whose type code says all.
CONSTANTS: Mapping[int, object] = {0xF0: None, 0xF1: True}

UINT8, BOOL, UUID_CODE = 0x02, 0x08, 0x48
BINARY8, TEXT8, BINARY16, TEXT16, BINARY32, MAP, LIST = 0x80, 0x85, 0x90, 0x95, 0xA0, 0xA8, 0xA9

#: Bytes of the length of values of variable width, by type code.
LENGTHS: Mapping[int, int] = {BINARY8: 1, TEXT8: 1, BINARY16: 2, TEXT16: 2, BINARY32: 4, MAP: 4, LIST: 4}
TEXTS, NESTED = (TEXT8, TEXT16), (MAP, LIST)
END = 0

#: Nested maps and lists remembered as readable: how many, and how long each may be.
MAX_SOUND, MAX_SOUND_SIZE = 1000, 1000

#: Nested maps and lists remembered read, by one who reads: how many, and how long each may be.
MAX_FLAT, MAX_FLAT_SIZE = 100, 1000

#: A map or list that holds no other one: a copy shares nothing that can change.
Flat = dict[str, object] | list[object]


class Run(NamedTuple):
    """Keys, type codes and values of fixed width in a row, and the kind of the variable value behind them.

    Attributes:
        size: bytes.
        mask: ones where the bytes are known, as a little-endian number; 0 when all are.
        known: the known bytes, as such a number; as bytes when all are known.
        then: type code of the variable value that follows, or 0 at the end of the map.
    """

    size: int
    mask: int
    known: int | bytes
    then: int


def behind(data: bytes, pos: int, code: int) -> int:
    """Where the variable value ends that starts at `pos`, at its length."""
    width = LENGTHS[code]
    return pos + width + int.from_bytes(data[pos : pos + width], "big")


def variable(data: bytes, pos: int, code: int) -> object:
    """The variable value that starts at `pos`, as the general decoder reads it with `text`."""
    if code == MAP:
        return decode_map_at(data, pos, True)[0]
    if code == LIST:
        return decode_list_at(data, pos, True)[0]
    return text(data[pos + LENGTHS[code] : behind(data, pos, code)])


def text(raw: bytes) -> object:
    """Binary is text where it is UTF-8; text always is, for a shape only matches then."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def uuid(raw: bytes) -> UUID:
    """A UUID of its 16 bytes."""
    return UUID(bytes=raw)


def fixed(data: bytes, pos: int, code: int) -> object:
    """The value of fixed width that starts at `pos`."""
    if code in CONSTANTS:
        return CONSTANTS[code]
    value = _UNPACK[code](data, pos)[0]
    return UUID(bytes=value) if code == UUID_CODE else value


def is_sound(data: bytes, pos: int, end: int, code: int, sound: set[bytes], depth: int) -> bool:
    """True when the general decoder reads a nested map or list; most objects hold the same ones.

    Args:
        data: bytes that hold it.
        pos: where it starts, at its size field; its type code is before that.
        end: where it should end.
        code: its type code.
        sound: those that were found to be readable at that depth, with their type codes; added to.
        depth: how deep it is.
    """
    raw = data[pos - 1 : end]
    if raw in sound:
        return True
    decode = decode_map_at if code == MAP else decode_list_at
    try:
        _, stop = decode(data, pos, True, depth)
    except DecodeError:
        return False
    if stop != end:
        return False
    if len(raw) <= MAX_SOUND_SIZE:
        if len(sound) >= MAX_SOUND:
            sound.clear()
        sound.add(raw)
    return True


def as_flat(value: object) -> Flat | None:
    """A map or list that holds no other one; None for anything else."""
    if isinstance(value, dict):
        return None if any(isinstance(item, dict | list) for item in value.values()) else value
    if isinstance(value, list):
        return None if any(isinstance(item, dict | list) for item in value) else value
    return None


def remember(flats: dict[bytes, Flat], raw: bytes, value: object) -> None:
    """Remember what bytes, type code included or all of one type, mean, for whoever hands out copies; if it is flat.

    References and settings of many objects are the same. What is full starts anew.
    """
    if len(raw) > MAX_FLAT_SIZE:
        return
    flat = as_flat(value)
    if flat is not None:
        if len(flats) >= MAX_FLAT:
            flats.clear()
        flats[raw] = flat.copy()


_UNPACK: dict[int, Callable[[bytes, int], tuple[Any, ...]]] = {
    code: struct.Struct(">" + format).unpack_from for code, format in FORMATS.items() if format
}
