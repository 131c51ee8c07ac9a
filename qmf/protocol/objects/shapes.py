"""Shapes: keyed maps that look like an earlier one are checked without making an object per value.

Peers send the objects of a class with the same keys in the same order and the same type codes, and AMQP 0-10 has no
short forms of numbers. So nearly all bytes of such a map are known beforehand except the numbers, the texts and what is
nested. A shape holds the known ones. A map that has them at the same places decodes to the same keys and kinds of
values, and its values can stay bytes until somebody reads them. Whatever is different is read by the general decoder:
a match proves that the general decoder would accept the map and find the same values.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from qmf._compile import compile_function
from qmf.codec.type_codes import CONSTANTS, UUID16
from qmf.protocol.objects.columns import FIXED_FORMATS, LENGTHS, NESTED, TEXTS
from qmf.protocol.objects.nested_values import NestedValues, text_or_bytes
from qmf.protocol.objects.shape_functions import MapSource, Place, reading_lines

#: Bytes of a shape's keys; those of QMF's largest classes have a tenth of it. Maps with more are left to the decoder.
MAX_KEYS_SIZE = 20_000

#: Most texts, maps and lists of a shape: its functions grow with them.
MAX_VARIABLE = 300


class ShapeEntry(NamedTuple):
    """One entry of a keyed map: its value lies between `begin`, at the length of a variable one, and `end`."""

    name: str
    code: int
    begin: int
    end: int


def map_entries(data: bytes, start: int) -> list[ShapeEntry] | None:
    """The entries, in order, of a map that the general decoder has read; None for one with a rare type or a key twice.

    Args:
        data: bytes that hold the map.
        start: where it starts, behind its size field.
    """
    count = int.from_bytes(data[start : start + 4], "big")
    entries: list[ShapeEntry] = []
    pos = start + 4
    for _ in range(count):
        begin = pos + 1
        pos = begin + data[pos]
        name, code = data[begin:pos].decode(), data[pos]
        begin = pos + 1
        if code in LENGTHS:
            pos = _behind(data, begin, code)
        elif code in FIXED_FORMATS:
            pos = begin + struct.calcsize(">" + FIXED_FORMATS[code])
        else:
            return None
        entries.append(ShapeEntry(name, code, begin, pos))
    return entries if len({entry.name for entry in entries}) == count else None


def learn(data: bytes, start: int, nested: Mapping[int, NestedValues]) -> Shape | None:
    """The shape of a map that the general decoder has read; arguments as of `map_entries` and `Shape`.

    Returns:
        its shape, or None for a map with a rare type, a key twice, very long keys, or very many texts, maps and lists.
    """
    entries = map_entries(data, start)
    if entries is None or sum(len(entry.name) for entry in entries) > MAX_KEYS_SIZE:
        return None
    if sum(entry.code in LENGTHS for entry in entries) > MAX_VARIABLE:
        return None
    names, codes = tuple(entry.name for entry in entries), bytes(entry.code for entry in entries)
    short = all(entry.end - entry.begin - LENGTHS.get(entry.code, 0) < 256 for entry in entries)
    return Shape(names, codes, nested, short=short)


#: Where the values of a map are: where it starts, behind its size field, where it ends, and what `Shape.match` gave.
#: None for all of the data: whoever keeps objects wants them small, and the rest can be found again.
MapPlace = tuple[int, int, Sequence[int]] | None


class ValueChecks(Protocol):
    """What the checks of a map are added to, in order."""

    def constant(self, raw: bytes) -> None:
        """Bytes that are the same in all maps."""

    def key(self, name: str, code: int) -> None:
        """A key, and the type code of its value."""

    def value(self, code: int) -> Place:
        """A value, which comes behind its key."""


class Shape:
    """The known bytes of one kind of map, a `ValuesLayout`. It never changes.

    Attributes:
        names: the keys, in order.
        codes: one type code per key.
        short: all texts, maps and lists are shorter than 256 bytes.
        places: where the values are, by key.
    """

    def __init__(
        self, names: tuple[str, ...], codes: bytes, nested: Mapping[int, NestedValues], *, short: bool = False
    ) -> None:
        """Make a shape; `nested` reads nested maps and lists, by type code."""
        self.names = names
        self.codes = codes
        self.short = short
        self._nested = nested
        self.places = self.add_to(MapSource(None, short=short))

    def add_to(self, source: ValueChecks) -> dict[str, Place]:
        """Add the checks of a map from its count on; gives the places of the values, by key."""
        source.constant(len(self.names).to_bytes(4, "big"))
        places = {}
        for name, code in zip(self.names, self.codes, strict=True):
            source.key(name, code)
            places[name] = source.value(code)
        return places

    # Compiled when they are first used: many maps are never unpacked, and compiling takes half a millisecond.

    @functools.cached_property
    def match(self) -> Callable[[bytes, int, int], Sequence[int] | None]:
        """Checks a map.

        Takes bytes that hold it, where it starts, behind its size field, and where it ends. Gives where each run
        starts, or None when the map has another shape.
        """
        source = MapSource(self._nested, short=self.short)
        self.add_to(source)
        source.leave()
        return source.function("match(data, p0, stop)", (), (), f"({''.join(f'p{i}, ' for i in range(source.run))})")

    @functools.cached_property
    def read(self) -> Callable[[bytes, Sequence[int]], dict[str, object]]:
        """Gives all values of a map that matched; takes its bytes and what `match` gave."""
        names = MapSource(self._nested, short=self.short).names
        # A copy of a dictionary that has size and order already is filled.
        names["new"] = {name: CONSTANTS.get(code) for name, code in zip(self.names, self.codes, strict=True)}.copy
        names |= {f"k{number}": name for number, name in enumerate(self.names)}
        targets = {name: f"out[k{number}]" for number, name in enumerate(self.names)}
        starts = "".join(f"p{run}, " for run in range(1 + sum(code in LENGTHS for code in self.codes)))
        lines = ["out = new()", f"{starts} = starts", *reading_lines(self.places, targets, names), "return out"]
        source = "\n".join(["def read(data, starts):", *(f"    {line}" for line in lines), ""])
        return compile_function("read", source, names, "a keyed map")

    def is_like(self, other: Shape) -> bool:
        """True when the same maps match."""
        return self.names == other.names and self.codes == other.codes and self.short is other.short

    def _starts(self, data: bytes, at: MapPlace) -> Sequence[int]:
        starts = self.match(data, 0, len(data)) if at is None else at[2]
        assert starts is not None
        return starts

    def get(self, data: bytes, at: MapPlace, name: str) -> object:
        """One value of a map that matched.

        Raises:
            KeyError: no such key.
        """
        run, offset, code = self.places[name]
        starts = self._starts(data, at)
        pos = starts[run] + offset
        if code in LENGTHS:
            end = _behind(data, pos, code)
            if code in NESTED:
                return self._nested[code].read(data[pos:end])
            raw = data[pos + LENGTHS[code] : end]
            return raw.decode() if code in TEXTS else text_or_bytes(raw)
        if code in CONSTANTS:
            return CONSTANTS[code]
        value = struct.unpack_from(">" + FIXED_FORMATS[code], data, pos)[0]
        return UUID(bytes=value) if code == UUID16 else value

    def has(self, data: bytes, at: MapPlace, name: object) -> bool:  # noqa: ARG002
        """True when maps of this shape have the key."""
        return name in self.places

    def names_of(self, data: bytes, at: MapPlace) -> tuple[str, ...]:  # noqa: ARG002
        """The keys, in order."""
        return self.names

    def unpack(self, data: bytes, at: MapPlace) -> dict[str, object]:
        """All values of a map that matched."""
        return self.read(data, self._starts(data, at))

    def raw(self, data: bytes, at: MapPlace) -> bytes:
        """The bytes of a map, without its size field."""
        return data if at is None else data[at[0] : at[1]]

    def detach(self, data: bytes, at: MapPlace) -> tuple[bytes, MapPlace]:
        """As `raw`, and that the map is all of it."""
        return self.raw(data, at), None


def _behind(data: bytes, pos: int, code: int) -> int:
    """Where the variable value ends whose length is at `pos`."""
    width = LENGTHS[code]
    return pos + width + int.from_bytes(data[pos : pos + width], "big")
