"""Shapes: AMQP 0-10 maps that look like one that was seen before are checked without making an object per value.

Peers send the objects of a class with the same keys in the same order and the same type codes, and AMQP 0-10 has no
short forms of numbers. So nearly all bytes of such a map are known beforehand but the numbers, the texts and what is
nested. A shape holds the known ones; a map that has them at the same places decodes to the same keys and kinds of
values, and its values can stay bytes until somebody reads them. Whatever is different is read by the general decoder:
a match proves that the general decoder would accept the map and find the same values.

Knows nothing of QMF. Shapes are learned from maps that the general decoder has read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from qmf.protocol.objects.lazy_values import LazyValues
from qmf.protocol.objects.runs import (
    CONSTANTS,
    END,
    FORMATS,
    LENGTHS,
    MAX_FLAT_SIZE,
    NESTED,
    TEXTS,
    UUID_CODE,
    Flat,
    Run,
    behind,
    fixed,
    is_sound,
    remember,
    uuid,
    variable,
)
from qmf.protocol.objects.shape_functions import Match, Unpack, match_function, unpack_function

#: Bytes of a shape's keys; those of QMF's largest classes have a tenth of it. Maps with more are left to the decoder.
MAX_KEYS_SIZE = 20_000

#: Most runs of a shape, which are as many as its texts, maps and lists, and one: its functions grow with them.
MAX_RUNS = 300

#: Uses of a shape after which its functions are written out, which takes about two milliseconds.
BUILD_AFTER = 100

#: Other values at a place after which its usual one is forgotten: maps have changed. So are those of all places that
#: had half as many, for what belongs together changes together, and the functions are written out anew each time.
MAX_MISSED = 1000

_number = int.from_bytes


class _Place:
    """What the maps of a shape had at a place of variable width while its functions were not written out yet.

    Attributes:
        usual: the same bytes in all of them, length included; None when they differed, or are too long to keep.
        short: less than 256 bytes in all of them.
    """

    __slots__ = ("short", "usual")

    def __init__(self, raw: bytes) -> None:
        self.usual: bytes | None = raw if len(raw) <= MAX_FLAT_SIZE else None
        self.short = len(raw) < 256

    def see(self, raw: bytes) -> None:
        """Take what another map has."""
        if raw != self.usual:
            self.usual = None
        self.short = self.short and len(raw) < 256


class Shape:
    """The known bytes of one kind of map.

    Attributes:
        names: the keys, in order.
        codes: one type code per key.
        match: sees if a map has this shape. Takes bytes that hold it, where its items start, behind the count, and
            where it ends, not behind the end of the bytes; then nested maps and lists that were found to be readable at
            that depth (added to), and how deep nested values are, as for the general decoder. Gives where each run
            starts, or None when the map has another shape.
        unpack: all values of a map that matched, in its order; takes the bytes and what `match` or `walk` gave.
    """

    __slots__ = (
        "__weakref__",
        "_checked",
        "_depth",
        "_flats",
        "_missed",
        "_nested",
        "_places",
        "_runs",
        "_seen",
        "_unpackers",
        "_used",
        "codes",
        "match",
        "names",
        "unpack",
    )

    def __init__(self, names: tuple[str, ...], codes: bytes, *, checked: bool = True) -> None:
        """Make a shape; `checked` is False when the caller of `match` sees to what nested maps and lists hold."""
        self.names = names
        self.codes = codes
        self._checked = checked
        self._runs: list[Run] = []
        self._unpackers: list[Callable[[bytes, int], tuple[Any, ...]]] = []
        self._places: dict[str, tuple[int, int, int]] = {}
        mask, known, layout = bytearray(), bytearray(), ">"
        for name, code in zip(names, codes, strict=True):
            raw = name.encode()
            known += bytes((len(raw), *raw, code))
            mask += b"\xff" * (len(raw) + 2)
            layout += f"{len(raw) + 2}x"
            self._places[name] = (len(self._runs), len(known), code)
            if code in LENGTHS:
                self._add_run(mask, known, layout, code)
                mask, known, layout = bytearray(), bytearray(), ">"
            else:
                width = struct.calcsize(">" + FORMATS[code])
                known += bytes(width)
                mask += bytes(width)
                layout += FORMATS[code] or "0s"
        self._add_run(mask, known, layout, END)
        self._used = 0
        self._depth = 0
        self._seen: dict[int, _Place] = {}
        self._missed: dict[int, int] = {}
        self._flats: dict[bytes, Flat] = {}
        self.match: Match = self._match_first
        # Values outlive a shape's place in a memory; with no reference back to it, it goes when they go.
        self._nested = partial(_nested, self._flats)
        self.unpack: Unpack = partial(_unpack, names, codes, self._runs, self._unpackers, self._nested)

    def retire(self) -> None:
        """Match nothing any more; values that matched stay. For who forgets it: until then it refers to itself."""
        self.match = _match_nothing

    def _add_run(self, mask: bytearray, known: bytearray, layout: str, then: int) -> None:
        if mask.count(0xFF) == len(mask):
            self._runs.append(Run(len(known), 0, bytes(known), then))
        else:
            self._runs.append(Run(len(known), _number(mask, "little"), _number(known, "little"), then))
        self._unpackers.append(struct.Struct(layout).unpack_from)

    def place(self, name: str) -> tuple[int, int, int]:
        """Number of the run, offset in it and type code of a value; of a variable one, the run's end.

        Raises:
            KeyError: no such key.
        """
        return self._places[name]

    def is_like(self, other: Shape) -> bool:
        """True when the same maps match."""
        return self.names == other.names and self.codes == other.codes

    def walk(self, data: bytes, start: int) -> Sequence[int]:
        """Where each run of a map that matched starts."""
        starts = [start]
        for size, _, _, then in self._runs[:-1]:
            starts.append(behind(data, starts[-1] + size, then))
        return starts

    def get(self, data: bytes, starts: Sequence[int], name: str) -> object:
        """One value of a map that matched.

        Raises:
            KeyError: no such key.
        """
        run, offset, code = self._places[name]
        read = variable if code in LENGTHS else fixed
        return read(data, starts[run] + offset, code)

    # -- while it was not used often

    def _match_first(self, data: bytes, start: int, stop: int, sound: set[bytes], depth: int) -> Sequence[int] | None:
        starts = self._match_any(data, start, stop, sound, depth)
        if starts is not None:
            self._depth = max(depth, self._depth)  # what is usual was sound there, too
            for i, run in enumerate(self._runs[:-1]):
                raw = data[starts[i] + run.size : starts[i + 1]]
                if i in self._seen:
                    self._seen[i].see(raw)
                else:
                    self._seen[i] = _Place(raw)
        self._used += 1
        if self._used > BUILD_AFTER:
            self._build()
        return starts

    def _match_any(self, data: bytes, start: int, stop: int, sound: set[bytes], depth: int) -> Sequence[int] | None:
        pos = start
        starts: list[int] = []
        try:
            for size, mask, known, then in self._runs:
                starts.append(pos)
                end = pos + size
                raw = data[pos:end]
                if (_number(raw, "little") & mask if mask else raw) != known:
                    return None
                if then == END:
                    return tuple(starts) if end == stop else None
                width = LENGTHS[then]
                pos = end + width + _number(data[end : end + width], "big")
                if pos > stop:
                    return None
                if then in TEXTS:
                    data[end + width : pos].decode()
                elif then in NESTED and self._checked and not is_sound(data, end, pos, then, sound, depth):
                    return None
        except (IndexError, struct.error, UnicodeDecodeError):
            pass  # the general decoder says what is wrong
        return None

    # -- from then on

    def _build(self) -> None:
        """Write out the functions."""
        usual = {i: place.usual for i, place in self._seen.items() if place.usual is not None}
        self.match = match_function(
            self._runs,
            checked=self._checked,
            depth=self._depth,
            usual=usual,
            short=[i for i, place in self._seen.items() if place.short],
            again=self._match_again,
            missed=self._miss,
        )
        self.unpack = unpack_function(
            self.names, self.codes, self._runs, usual=usual, flats=self._flats, nested=self._nested
        )

    def _match_again(self, data: bytes, start: int, stop: int, sound: set[bytes], depth: int) -> Sequence[int] | None:
        """Match a map that has another shape, a long value where short ones are usual, or is deeper than usual."""
        starts = self._match_any(data, start, stop, sound, depth)
        if starts is not None and depth <= self._depth:
            for place in self._seen.values():
                place.short = False
            self._build()
        return starts

    def _miss(self, run: int) -> None:
        """Note that something else than usual followed a run."""
        if self._seen[run].usual is None:
            return  # the functions were written out anew while the one that asks was at work
        count = self._missed[run] = self._missed.get(run, 0) + 1
        if count > MAX_MISSED:
            for place, missed in self._missed.items():
                if 2 * missed > MAX_MISSED:
                    self._seen[place].usual = None
            self._missed.clear()
            self._build()


def _match_nothing(data: bytes, start: int, stop: int, sound: set[bytes], depth: int) -> None:
    """`match` of a shape that was retired."""


def _unpack(
    names: Sequence[str],
    codes: bytes,
    runs: Sequence[Run],
    unpackers: Sequence[Callable[[bytes, int], tuple[Any, ...]]],
    nested: Callable[[bytes, int, int, int], object],
    data: bytes,
    starts: Sequence[int],
) -> dict[str, object]:
    """`unpack` of a shape that was not used often."""
    values: list[Any] = []
    for pos, run, unpack in zip(starts, runs, unpackers, strict=True):
        values += unpack(data, pos)
        if run.then in NESTED:
            pos += run.size
            values.append(nested(data, pos, behind(data, pos, run.then), run.then))
        elif run.then != END:
            values.append(variable(data, pos + run.size, run.then))
    for i, code in enumerate(codes):
        if code == UUID_CODE:
            values[i] = uuid(values[i])
        elif code in CONSTANTS:
            values[i] = CONSTANTS[code]
    return dict(zip(names, values, strict=True))


def _nested(flats: dict[bytes, Flat], data: bytes, pos: int, end: int, code: int) -> object:
    """A nested map or list."""
    raw = data[pos - 1 : end]
    found = flats.get(raw)
    if found is not None:
        return found.copy()
    value = variable(data, pos, code)
    remember(flats, raw, value)
    return value


class ShapeValues(LazyValues):
    """The values of one map that matched a shape."""

    __slots__ = ("_data", "_shape", "_start", "_starts", "_stop")

    def __init__(self, shape: Shape, data: bytes, start: int, stop: int, starts: Sequence[int] | None = None) -> None:
        """Take the items of a map from `start`, behind the count, to `stop`; `starts` is what the match gave."""
        self._shape = shape
        self._data = data
        self._start = start
        self._stop = stop
        self._starts = starts

    def __getitem__(self, name: str) -> object:
        shape, data = self._shape, self._data
        return shape.get(data, self._starts or shape.walk(data, self._start), name)

    def __contains__(self, name: object) -> bool:
        return name in self._shape._places

    @property
    def names(self) -> tuple[str, ...]:
        return self._shape.names

    def unpacked(self) -> dict[str, object]:
        shape, data = self._shape, self._data
        return shape.unpack(data, self._starts or shape.walk(data, self._start))

    def raw(self) -> bytes:
        return self._data[self._start : self._stop]

    @property
    def layout(self) -> object:
        return self._shape

    def detached(self) -> ShapeValues:
        # Without the places: who keeps objects wants them small, and they are found again.
        return ShapeValues(self._shape, self.raw(), 0, self._stop - self._start)


def learn(data: bytes, start: int, count: int, *, checked: bool = True) -> Shape | None:
    """The shape of a map that the general decoder has read.

    Args:
        data: bytes that hold the map.
        start: where its items start, behind the count.
        count: its entries.
        checked: as of `Shape`.

    Returns:
        its shape, or None for a map with a rare type, a key twice, very long keys, or very many texts, maps and lists.
    """
    names: dict[str, int] = {}
    pos = start
    for _ in range(count):
        begin = pos + 1
        pos = begin + data[pos]
        code = data[pos]
        names[data[begin:pos].decode()] = code
        pos += 1
        if code in LENGTHS:
            pos = behind(data, pos, code)
        elif code in FORMATS:
            pos += struct.calcsize(">" + FORMATS[code])
        else:
            return None
    if len(names) != count or sum(map(len, names)) > MAX_KEYS_SIZE:
        return None
    codes = bytes(names.values())
    if sum(code in LENGTHS for code in codes) >= MAX_RUNS:
        return None
    return Shape(tuple(names), codes, checked=checked)
