"""Reading events of one look in one go: the map around the arguments and the arguments together.

Agents raise events of a class by the thousand, which differ in their numbers and texts only. Checking such an event
already takes most of what reading it takes, for texts have to be decoded to know that they are text. So, unlike those
of objects, its values are not left as bytes. Whatever looks different is not read here: the general functions decide.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from uuid import UUID

import attrs

from qmf._compile import compile_function, fast_constructor
from qmf.codec.amqp010 import decode_list_at, decode_map_at
from qmf.errors import DecodeError
from qmf.protocol.maps import nearest_severity
from qmf.protocol.values import EventData, ObjectId
from qmf.schema.model import ClassKey

#: Reads the event between two offsets, of which the first is that of its size field; None if it looks different.
EventReader = Callable[[bytes, int, int], EventData | None]

#: `struct` formats of numbers and booleans by type code.
_FORMATS = {
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
}
#: Values that are their type code.
_CONSTANTS = {0xF0: "None", 0xF1: "True"}
#: Formats of the lengths of texts and binary, of maps and lists.
_SIZES = {0x80: "B", 0x85: "B", 0x90: "H", 0x95: "H", 0xA0: "I"}
_TEXTS, _UUID, _MAP, _LIST = (0x85, 0x95), 0x48, 0xA8, 0xA9

#: Flat maps that are remembered read: how many, and how long each may be.
MAX_MAPS, MAX_MAP_SIZE = 100, 1000

#: How deep nested arguments are.
_DEPTH = 3

_ERRORS = (struct.error, UnicodeDecodeError)


@attrs.frozen
class Look:
    """What the events of one look have in common.

    Attributes:
        fields: names and type codes of the map around the arguments.
        schema_id: bytes of its class key, from the size field on; empty without.
        class_key: what they say.
        names, codes: of the arguments.
    """

    fields: Sequence[tuple[str, int]]
    schema_id: bytes
    class_key: ClassKey | None
    names: Sequence[str]
    codes: bytes


def event_reader(look: Look, object_id: Callable[[bytes, int, int], ObjectId]) -> EventReader:
    """The function that reads the events of one look.

    Args:
        look: of events that were read by the general functions.
        object_id: reads an object id between two offsets, of which the first is that of its size field.
    """
    return _Source(look, object_id).function()


class _Source:
    """Puts the text of one function together: what is known is compared, the rest is unpacked."""

    def __init__(self, look: Look, object_id: Callable[[bytes, int, int], ObjectId]) -> None:
        self._look = look
        maps: dict[bytes, dict[str, object]] = {}
        self._names: dict[str, object] = {
            "make": fast_constructor(EventData),
            "key": look.class_key,
            "object_id": object_id,
            "nearest": nearest_severity,
            "levels": frozenset(range(8)),
            "text": _text,
            "uuid": UUID,
            "flat": maps.get,
            "nested": lambda raw: _nested(raw, maps),
            "errors": _ERRORS,
        }
        self._lines: list[str] = []
        self._known = b""
        self._format = ">"
        self._targets: list[str] = []
        self._checks: list[str] = []
        self._number = 0

    def function(self) -> EventReader:
        """Make the function."""
        look = self._look
        found = {"_timestamp": "0", "_severity": "None", "_object_id": "None"}
        values = "{}"
        self._known = len(look.fields).to_bytes(4, "big")
        for name, code in look.fields:
            self._key(name, code)
            if name == "_values":
                values = self._values()
            elif name == "_schema_id":
                self._known += look.schema_id
            elif name == "_object_id":
                self._take("I", "size")
                self._unpack()
                self._lines += ["o = p - 4", "p += size", "o_end = p"]
                found[name] = "object_id(data, o, o_end)"
            else:
                found[name] = self._fresh()
                self._take(_FORMATS[code], found[name])
        self._unpack()
        severity = found["_severity"]
        level = f"{severity} if {severity} in levels else nearest({severity})"
        source = "\n".join(
            [
                "def read(data, pos, end):",
                "    try:",
                "        p = pos + 4",
                *(f"        {line}" for line in self._lines),
                "        if p != end: return None",
                f"        values = {values}",
                "    except errors:",
                "        return None",
                f"    return make(values, key, {found['_timestamp']}, {level}, {found['_object_id']})",
                "",
            ]
        )
        reader: EventReader = compile_function("read", source, self._names, "an event")
        return reader

    def _values(self) -> str:
        """Add the steps that read the arguments; gives the expression of all of them."""
        look = self._look
        self._take("I", "size")
        self._unpack()
        self._lines.append("values_end = p + size")
        self._known = len(look.names).to_bytes(4, "big")
        pairs = []
        for name, code in zip(look.names, look.codes, strict=True):
            self._key(name, code)
            key = self._constant(name)
            pairs.append(f"{key}: {self._value(code)}")
        self._unpack()
        self._lines.append("if p != values_end: return None")
        return f"{{{', '.join(pairs)}}}"

    def _value(self, code: int) -> str:
        if code in _CONSTANTS:
            return _CONSTANTS[code]
        value = self._fresh()
        if code in _FORMATS:
            self._take(_FORMATS[code], value)
            return f"uuid(bytes={value})" if code == _UUID else value
        self._take(_SIZES.get(code, "I"), "size")
        self._unpack()
        if code in (_MAP, _LIST):
            self._lines += [
                "raw = data[p - 5:p + size]",  # with its type code
                f"{value} = flat(raw)",
                f"{value} = nested(raw) if {value} is None else {value}.copy()",
                f"if {value} is None: return None",
                "p += size",
            ]
        else:
            self._lines += ["begin = p", "p += size"]
            decoded = "data[begin:p].decode()" if code in _TEXTS else "text(data[begin:p])"
            self._lines.append(f"{value} = {decoded}")
        return value

    def _key(self, name: str, code: int) -> None:
        raw = name.encode()
        self._known += bytes((len(raw), *raw, code))

    def _take(self, format: str, target: str) -> None:
        """Unpack a number behind what is known up to here."""
        self._compare()
        self._format += format
        self._targets.append(target)

    def _compare(self) -> None:
        if self._known:
            target = self._fresh()
            self._format += f"{len(self._known)}s"
            self._targets.append(target)
            self._checks.append(f"{target} != {self._constant(self._known)}")
            self._known = b""

    def _unpack(self) -> None:
        """End a struct: what follows is at a place that depends on what it says."""
        self._compare()
        if not self._targets:
            return
        unpack = self._constant(struct.Struct(self._format).unpack_from)
        self._lines.append(f"{', '.join(self._targets)}, = {unpack}(data, p)")
        if self._checks:
            self._lines.append(f"if {' or '.join(self._checks)}: return None")
        self._lines.append(f"p += {struct.calcsize(self._format)}")
        self._format = ">"
        self._targets = []
        self._checks = []

    def _fresh(self) -> str:
        self._number += 1
        return f"x{self._number}"

    def _constant(self, value: object) -> str:
        name = f"c{len(self._names)}"
        self._names[name] = value
        return name


def _text(raw: bytes) -> object:
    """Binary is text where it is UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _nested(raw: bytes, maps: dict[bytes, dict[str, object]]) -> object:
    """A nested map or list with its type code, or None if it is not sound; flat maps are remembered."""
    decode = decode_map_at if raw[0] == _MAP else decode_list_at
    try:
        value, stop = decode(raw, 1, True, _DEPTH)
    except (DecodeError, IndexError, struct.error):
        return None
    if stop != len(raw):
        return None
    # A copy of one that holds others would share them.
    flat = isinstance(value, dict) and not any(isinstance(item, dict | list) for item in value.values())
    if flat and isinstance(value, dict) and len(raw) <= MAX_MAP_SIZE:
        if len(maps) >= MAX_MAPS:
            maps.clear()
        maps[raw] = value.copy()
    return value
