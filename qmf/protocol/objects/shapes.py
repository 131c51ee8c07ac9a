"""Shapes: keyed maps that look like an earlier one are checked without making an object per value.

Peers send the objects of a class with the same keys in the same order and the same type codes, and AMQP 0-10 has no
short forms of numbers. So nearly all bytes of such a map are known beforehand except the numbers, the texts and what is
nested. A shape holds the known ones. A map that has them at the same places decodes to the same keys and kinds of
values, and its values can stay bytes until somebody reads them. Whatever is different is read by the general decoder:
a match proves that the general decoder would accept the map and find the same values.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from qmf.codec.type_codes import CONSTANTS, UUID16
from qmf.protocol.objects.columns import FIXED_FORMATS, LENGTHS, NESTED, TEXTS
from qmf.protocol.objects.lazy_values import LazyValues
from qmf.protocol.objects.nested_values import NestedValues, text_or_bytes
from qmf.protocol.objects.shape_functions import Match, Run, Unpack, match_function, unpack_function

#: Bytes of a shape's keys; those of QMF's largest classes have a tenth of it. Maps with more are left to the decoder.
MAX_KEYS_SIZE = 20_000

#: Most texts, maps and lists of a shape: its functions grow with them.
MAX_VARIABLE = 300


class Entry(NamedTuple):
    """One entry of a keyed map: its value lies between `begin`, at the length of a variable one, and `end`."""

    name: str
    code: int
    begin: int
    end: int


def map_entries(data: bytes, start: int, count: int) -> list[Entry] | None:
    """The entries of a map that the general decoder has read.

    Args:
        data: bytes that hold the map.
        start: where its entries start, behind the count.
        count: how many they are.

    Returns:
        the entries in order; None for a map with a rare type or a key twice.
    """
    entries: list[Entry] = []
    pos = start
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
        entries.append(Entry(name, code, begin, pos))
    return entries if len({entry.name for entry in entries}) == count else None


def learn(data: bytes, start: int, count: int, nested: Mapping[int, NestedValues] | None) -> Shape | None:
    """The shape of a map that the general decoder has read.

    Args:
        data, start, count: as for `map_entries`.
        nested: as for `Shape`.

    Returns:
        its shape, or None for a map with a rare type, a key twice, very long keys, or very many texts, maps and lists.
    """
    entries = map_entries(data, start, count)
    if entries is None or sum(len(entry.name) for entry in entries) > MAX_KEYS_SIZE:
        return None
    codes = bytes(entry.code for entry in entries)
    if sum(code in LENGTHS for code in codes) > MAX_VARIABLE:
        return None
    short = all(entry.end - entry.begin - LENGTHS[entry.code] < 256 for entry in entries if entry.code in LENGTHS)
    return Shape(tuple(entry.name for entry in entries), codes, nested, short=short)


class Shape:
    """The known bytes of one kind of map. It never changes.

    Attributes:
        names: the keys, in order.
        codes: one type code per key.
        places: by key: number of the run, offset in it, type code. The offset of a variable value is the run's end.
        match: checks a map. Takes bytes that hold it, where its entries start, behind the count, and where it ends,
            inside these bytes. Gives where each run starts, or None when the map has another shape.
    """

    __slots__ = ("__weakref__", "_nested", "_runs", "_short", "_unpack", "codes", "match", "names", "places")

    def __init__(
        self, names: tuple[str, ...], codes: bytes, nested: Mapping[int, NestedValues] | None, *, short: bool = False
    ) -> None:
        """Make a shape.

        Args:
            names, codes: of the map.
            nested: what reads nested maps and lists, by type code; None when the caller checks and reads them.
            short: all texts, maps and lists are shorter than 256 bytes, which is quicker to check.
        """
        self.names = names
        self.codes = codes
        self.places: dict[str, tuple[int, int, int]] = {}
        self._nested = nested
        self._short = short
        self._runs = self._split()
        self.match: Match = match_function(self._runs, nested, short=short)
        self._unpack: Unpack | None = None

    def _split(self) -> list[Run]:
        """The map as runs of known bytes, each up to a variable value or the end."""
        runs: list[Run] = []
        mask, known = bytearray(), bytearray()
        for name, code in zip(self.names, self.codes, strict=True):
            raw = name.encode()
            known += bytes((len(raw), *raw, code))
            mask += b"\xff" * (len(raw) + 2)
            self.places[name] = len(runs), len(known), code
            if code in LENGTHS:
                runs.append(Run(bytes(mask), bytes(known), code))
                mask, known = bytearray(), bytearray()
            else:
                width = struct.calcsize(">" + FIXED_FORMATS[code])
                known += bytes(width)
                mask += bytes(width)
        return [*runs, Run(bytes(mask), bytes(known), None)]

    def is_like(self, other: Shape) -> bool:
        """True when the same maps match."""
        return self.names == other.names and self.codes == other.codes and self._short is other._short

    def unpack(self, data: bytes, starts: Sequence[int]) -> dict[str, object]:
        """All values of a map that matched; `starts` is what `match` gave."""
        unpack = self._unpack
        if unpack is None:
            # Many maps are never unpacked, and compiling takes half a millisecond.
            assert self._nested is not None
            unpack = self._unpack = unpack_function(self.names, self.codes, self._runs, self._nested)
        return unpack(data, starts)

    def get(self, data: bytes, starts: Sequence[int], name: str) -> object:
        """One value of a map that matched.

        Raises:
            KeyError: no such key.
        """
        run, offset, code = self.places[name]
        pos = starts[run] + offset
        if code in LENGTHS:
            end = _behind(data, pos, code)
            if code in NESTED:
                assert self._nested is not None
                return self._nested[code].read(data[pos:end])
            raw = data[pos + LENGTHS[code] : end]
            return raw.decode() if code in TEXTS else text_or_bytes(raw)
        if code in CONSTANTS:
            return CONSTANTS[code]
        value = struct.unpack_from(">" + FIXED_FORMATS[code], data, pos)[0]
        return UUID(bytes=value) if code == UUID16 else value


def _behind(data: bytes, pos: int, code: int) -> int:
    """Where the variable value ends whose length is at `pos`."""
    width = LENGTHS[code]
    return pos + width + int.from_bytes(data[pos : pos + width], "big")


class ShapeValues(LazyValues):
    """The values of one map that matched a shape."""

    __slots__ = ("_data", "_shape", "_start", "_starts", "_stop")

    def __init__(self, shape: Shape, data: bytes, start: int, stop: int, starts: Sequence[int] | None = None) -> None:
        """Take the entries of a map from `start`, behind the count, to `stop`; `starts` is what the match gave."""
        self._shape = shape
        self._data = data
        self._start = start
        self._stop = stop
        self._starts = starts

    def _places(self) -> Sequence[int]:
        starts = self._starts or self._shape.match(self._data, self._start, self._stop)
        assert starts is not None
        return starts

    def __getitem__(self, name: str) -> object:
        return self._shape.get(self._data, self._places(), name)

    def __contains__(self, name: object) -> bool:
        return name in self._shape.places

    @property
    def names(self) -> tuple[str, ...]:
        return self._shape.names

    def unpacked(self) -> dict[str, object]:
        return self._shape.unpack(self._data, self._places())

    def raw(self) -> bytes:
        return self._data[self._start : self._stop]

    @property
    def layout(self) -> object:
        return self._shape

    def detached(self) -> ShapeValues:
        # Without the starts of runs, which can be found again: whoever keeps objects wants them small.
        return ShapeValues(self._shape, self.raw(), 0, self._stop - self._start)
