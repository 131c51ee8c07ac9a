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
from typing import Any, NamedTuple
from uuid import UUID

from qmf.codec._amqp010_decode import decode_list_at, decode_map_at
from qmf.codec.generated import build
from qmf.codec.lazy import LazyValues
from qmf.errors import DecodeError

#: `struct` formats of the type codes whose values all have one width. Of none and of one bit: the code says all.
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
    0xF0: "0s",
    0xF1: "0s",
}

#: What the bytes of some of them mean.
_MEANINGS: dict[int, Callable[[bytes], object]] = {
    0x48: lambda raw: UUID(bytes=raw),
    0xF0: lambda _: None,
    0xF1: lambda _: True,
}

_BINARY8, _TEXT8, _BINARY16, _TEXT16, _BINARY32, _MAP, _LIST = 0x80, 0x85, 0x90, 0x95, 0xA0, 0xA8, 0xA9
_LENGTHS = {_BINARY8: 1, _TEXT8: 1, _BINARY16: 2, _TEXT16: 2, _BINARY32: 4, _MAP: 4, _LIST: 4}
_SIZED16, _NESTED = (_TEXT16, _BINARY16), (_MAP, _LIST)
_END = 0

#: Bytes of a shape's keys; those of QMF's largest classes have a tenth of it. Maps with more are left to the decoder.
MAX_KEYS_SIZE = 20_000

#: Nested maps and lists remembered as readable: how many, and how long each may be.
MAX_SOUND, MAX_SOUND_SIZE = 1000, 1000

#: Nested maps that a shape remembers read.
MAX_MAPS = 100

#: Uses of a shape after which its `match` is written out as a function of its own, which takes about a millisecond.
BUILD_AFTER = 100

_unpack_u32 = struct.Struct(">I").unpack_from
_number = int.from_bytes


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


class Shape:
    """The known bytes of one kind of map.

    Attributes:
        names: the keys, in order.
        codes: one type code per key.
    """

    __slots__ = (
        "_built_unpack",
        "_checked",
        "_fixed",
        "_maps",
        "_match",
        "_places",
        "_runs",
        "_unpackers",
        "_used",
        "codes",
        "names",
    )

    def __init__(self, names: tuple[str, ...], codes: bytes, *, checked: bool = True) -> None:
        """Make a shape; `checked` is False when the caller of `match` sees to what nested maps and lists hold."""
        self.names = names
        self.codes = codes
        self._checked = checked
        self._runs: list[Run] = []
        self._unpackers: list[Callable[[bytes, int], tuple[Any, ...]]] = []
        self._places: dict[str, tuple[int, int, int]] = {}
        self._fixed = [(i, _MEANINGS[code]) for i, code in enumerate(codes) if code in _MEANINGS]
        mask, known, layout = bytearray(), bytearray(), ">"
        for name, code in zip(names, codes, strict=True):
            raw = name.encode()
            known += bytes((len(raw), *raw, code))
            mask += b"\xff" * (len(raw) + 2)
            layout += f"{len(raw) + 2}x"
            self._places[name] = (len(self._runs), len(known), code)
            if code in _LENGTHS:
                self._add_run(mask, known, layout, code)
                mask, known, layout = bytearray(), bytearray(), ">"
            else:
                width = struct.calcsize(">" + _FORMATS[code])
                known += bytes(width)
                mask += bytes(width)
                layout += _FORMATS[code]
        self._add_run(mask, known, layout, _END)
        self._used = 0
        self._built_unpack: Callable[[bytes, int], dict[str, object]] | None = None
        self._maps: dict[bytes, dict[str, object]] = {}
        self._match: Callable[[bytes, int, int, set[bytes], int], Sequence[int] | None] = self._match_first

    def _add_run(self, mask: bytearray, known: bytearray, layout: str, then: int) -> None:
        number = _number(mask, "little")
        if mask.count(0xFF) == len(mask):
            self._runs.append(Run(len(known), 0, bytes(known), then))
        else:
            self._runs.append(Run(len(known), number, _number(known, "little"), then))
        self._unpackers.append(struct.Struct(layout).unpack_from)

    def match(self, data: bytes, start: int, stop: int, sound: set[bytes], depth: int) -> Sequence[int] | None:
        """See if a map has this shape.

        Args:
            data: bytes that hold the map.
            start: where its items start, behind the count.
            stop: where it ends, not behind the end of `data`.
            sound: nested maps and lists that were found to be readable at that depth; added to.
            depth: how deep nested values are, as for the general decoder.

        Returns:
            where each run starts, or None when it has another shape.
        """
        return self._match(data, start, stop, sound, depth)

    def _match_first(self, data: bytes, start: int, stop: int, sound: set[bytes], depth: int) -> Sequence[int] | None:
        """`match` for a shape that was not used often yet."""
        self._used += 1
        if self._used > BUILD_AFTER:
            self._match = _built(self._runs, checked=self._checked)
            if not self._fixed:
                self._built_unpack = self._build_unpack()
        pos = start
        starts: list[int] = []
        try:
            for size, mask, known, then in self._runs:
                starts.append(pos)
                end = pos + size
                raw = data[pos:end]
                if (_number(raw, "little") & mask if mask else raw) != known:
                    return None
                if then == _END:
                    return starts if end == stop else None
                if then in _SIZED16:
                    pos = end + 2 + (data[end] << 8) + data[end + 1]
                    if then == _TEXT16:
                        data[end + 2 : pos].decode()
                elif then in _NESTED:
                    pos = end + 4 + _unpack_u32(data, end)[0]
                    if self._checked and not _is_sound(data, end, pos, then, sound, depth):
                        return None
                elif then == _BINARY32:
                    pos = end + 4 + _unpack_u32(data, end)[0]
                else:
                    pos = end + 1 + data[end]
                    if then == _TEXT8:
                        data[end + 1 : pos].decode()
        except (IndexError, struct.error, UnicodeDecodeError):
            pass  # the general decoder says what is wrong
        return None

    def place(self, name: str) -> tuple[int, int, int]:
        """Number of the run, offset in it and type code of a value; of a variable one, the run's end.

        Raises:
            KeyError: no such key.
        """
        return self._places[name]

    def get(self, data: bytes, start: int, name: str) -> object:
        """One value of a map that matched.

        Raises:
            KeyError: no such key.
        """
        run, offset, code = self._places[name]
        pos = start
        for size, _, _, then in self._runs[:run]:
            pos = _behind(data, pos + size, then)
        pos += offset
        if code in _LENGTHS:
            return _variable(data, pos, code)
        value = _UNPACK[code](data, pos)[0]
        meaning = _MEANINGS.get(code)
        return value if meaning is None else meaning(value)

    def unpack(self, data: bytes, start: int) -> dict[str, object]:
        """All values of a map that matched, in its order."""
        if self._built_unpack is not None:
            return self._built_unpack(data, start)
        values: list[Any] = []
        pos = start
        for (size, _, _, then), unpack in zip(self._runs, self._unpackers, strict=True):
            values += unpack(data, pos)
            pos += size
            if then in _SIZED16:
                end = pos + 2 + (data[pos] << 8) + data[pos + 1]
                values.append(_text(data[pos + 2 : end]))
                pos = end
            elif then in _NESTED:
                end = pos + 4 + _unpack_u32(data, pos)[0]
                values.append(self._nested(data, pos, end, then))
                pos = end
            elif then:
                values.append(_variable(data, pos, then))
                pos = _behind(data, pos, then)
        for i, meaning in self._fixed:
            values[i] = meaning(values[i])
        return dict(zip(self.names, values))  # noqa: B905 (a shape has as many values as names)

    def _build_unpack(self) -> Callable[[bytes, int], dict[str, object]]:
        """`unpack` without a loop."""
        names: dict[str, object] = {
            "names": self.names,
            "u32": _unpack_u32,
            "text": _text,
            "nested": self._nested,
            "other": _variable,
            "behind": _behind,
        }
        lines, values = [], []
        for i, ((size, _, _, then), unpack) in enumerate(zip(self._runs, self._unpackers, strict=True)):
            names[f"unpack{i}"] = unpack
            values += [f"*unpack{i}(data, p{i})", f"x{i}"]
            lines.append(f"e{i} = p{i} + {size}")
            end = f"p{i + 1}"
            if then in _SIZED16:
                lines.append(f"{end} = e{i} + 2 + (data[e{i}] << 8) + data[e{i} + 1]")
                raw = f"data[e{i} + 2:{end}]"
                lines.append(f"x{i} = {raw}.decode()" if then == _TEXT16 else f"x{i} = text({raw})")
            elif then in _NESTED:
                lines += [f"{end} = e{i} + 4 + u32(data, e{i})[0]", f"x{i} = nested(data, e{i}, {end}, {then})"]
            elif then:
                lines += [f"{end} = behind(data, e{i}, {then})", f"x{i} = other(data, e{i}, {then})"]
        source = "\n".join(
            [
                "def unpack(data, p0):",
                *(f"    {line}" for line in lines),
                f"    return dict(zip(names, ({', '.join(values[:-1])},)))",
                "",
            ]
        )
        return build("unpack", source, names, "a shape")

    def _nested(self, data: bytes, pos: int, end: int, code: int) -> object:
        """A nested map or list; references and settings of many objects are the same."""
        raw = data[pos - 1 : end]
        found = self._maps.get(raw)
        if found is not None:
            return found.copy()
        value = _variable(data, pos, code)
        if isinstance(value, dict) and len(raw) <= MAX_SOUND_SIZE and not any(map(_is_container, value.values())):
            if len(self._maps) >= MAX_MAPS:
                self._maps.clear()
            self._maps[raw] = value.copy()
        return value


class ShapeValues(LazyValues):
    """The values of one map that matched a shape."""

    __slots__ = ("_data", "_shape", "_start", "_stop")

    def __init__(self, shape: Shape, data: bytes, start: int, stop: int) -> None:
        """Take the items of a map from `start`, behind the count, to `stop`."""
        self._shape = shape
        self._data = data
        self._start = start
        self._stop = stop

    def __getitem__(self, name: str) -> object:
        return self._shape.get(self._data, self._start, name)

    def __contains__(self, name: object) -> bool:
        return name in self._shape._places

    @property
    def names(self) -> tuple[str, ...]:
        return self._shape.names

    def unpacked(self) -> dict[str, object]:
        return self._shape.unpack(self._data, self._start)

    def raw(self) -> bytes:
        return self._data[self._start : self._stop]

    @property
    def layout(self) -> object:
        return self._shape

    def detached(self) -> ShapeValues:
        return ShapeValues(self._shape, self.raw(), 0, self._stop - self._start)


def _built(runs: list[Run], *, checked: bool) -> Callable[[bytes, int, int, set[bytes], int], Sequence[int] | None]:
    """`Shape.match` without a loop; does the same."""
    names: dict[str, object] = {
        "number": _number,
        "u32": _unpack_u32,
        "is_sound": _is_sound,
        "errors": (IndexError, struct.error, UnicodeDecodeError),
    }
    lines = ["p0 = start"]
    for i, (size, mask, known, then) in enumerate(runs):
        names |= {f"mask{i}": mask, f"known{i}": known}
        raw = f"number(data[p{i}:end], 'little') & mask{i}" if mask else f"data[p{i}:end]"
        lines += [f"end = p{i} + {size}", f"if {raw} != known{i}: return None"]
        behind = f"p{i + 1}"
        if then in _SIZED16:
            lines.append(f"{behind} = end + 2 + (data[end] << 8) + data[end + 1]")
        elif then in (_TEXT8, _BINARY8):
            lines.append(f"{behind} = end + 1 + data[end]")
        elif then:
            lines.append(f"{behind} = end + 4 + u32(data, end)[0]")
        if then in (_TEXT8, _TEXT16):
            lines.append(f"data[end + {_LENGTHS[then]}:{behind}].decode()")
        elif then in _NESTED and checked:
            lines.append(
                f"if data[end - 1:{behind}] not in sound and "
                f"not is_sound(data, end, {behind}, {then}, sound, depth): return None"
            )
    starts = ", ".join(f"p{i}" for i in range(len(runs)))
    source = "\n".join(
        [
            "def match(data, start, stop, sound, depth):",
            "    try:",
            *(f"        {line}" for line in lines),
            f"        return ({starts},) if end == stop else None",
            "    except errors:",
            "        return None",
            "",
        ]
    )
    return build("match", source, names, "a shape")


def learn(data: bytes, start: int, count: int, *, checked: bool = True) -> Shape | None:
    """The shape of a map that the general decoder has read.

    Args:
        data: bytes that hold the map.
        start: where its items start, behind the count.
        count: its entries.
        checked: as of `Shape`.

    Returns:
        its shape, or None for a map with a rare type, a key twice, or very long keys.
    """
    names: dict[str, int] = {}
    pos = start
    for _ in range(count):
        begin = pos + 1
        pos = begin + data[pos]
        code = data[pos]
        names[data[begin:pos].decode()] = code
        pos += 1
        if code in _LENGTHS:
            pos = _behind(data, pos, code)
        elif code in _FORMATS:
            pos += struct.calcsize(">" + _FORMATS[code])
        else:
            return None
    if len(names) != count or sum(map(len, names)) > MAX_KEYS_SIZE:
        return None
    return Shape(tuple(names), bytes(names.values()), checked=checked)


def _is_sound(data: bytes, pos: int, end: int, code: int, sound: set[bytes], depth: int) -> bool:
    """True when the general decoder reads a nested map or list; most objects hold the same ones."""
    raw = data[pos - 1 : end]  # with its type code
    if raw in sound:
        return True
    decode = decode_map_at if code == _MAP else decode_list_at
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


def _behind(data: bytes, pos: int, code: int) -> int:
    """Where the variable value ends that starts at `pos`."""
    width = _LENGTHS[code]
    return pos + width + _number(data[pos : pos + width], "big")


def _variable(data: bytes, pos: int, code: int) -> object:
    """The variable value that starts at `pos`, as the general decoder reads it with `text`."""
    if code == _MAP:
        return decode_map_at(data, pos, True)[0]
    if code == _LIST:
        return decode_list_at(data, pos, True)[0]
    return _text(data[pos + _LENGTHS[code] : _behind(data, pos, code)])


def _text(raw: bytes) -> object:
    """Binary is text where it is UTF-8; text always is, for a shape only matches then."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _is_container(value: object) -> bool:
    return isinstance(value, dict | list)


_UNPACK: dict[int, Callable[[bytes, int], tuple[Any, ...]]] = {
    code: struct.Struct(">" + format).unpack_from for code, format in _FORMATS.items()
}
