"""The source of functions that check and read keyed maps of one kind, without a loop over their keys.

A map is a sequence of *runs*: keys, type codes and values of fixed width, up to a variable value or the end of the map.
In a function, ``p0``, ``p1``, ... are where the runs start. docs/performance.md has what the functions bring.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from qmf._compile import compile_function
from qmf.codec.type_codes import CONSTANTS, UUID16
from qmf.protocol.objects.columns import FIXED_FORMATS, LENGTHS, NESTED, TEXTS
from qmf.protocol.objects.nested_values import NestedValues, text_or_bytes

#: Where a value is: number of its run, offset in it, type code. The offset of a variable value is that of its length.
Place = tuple[int, int, int]

#: Pieces of known bytes that are compared one by one.
_FEW = 3


class MapSource:
    """Puts the source of one function together.

    Attributes:
        run: number of the current run.
        lines: statements that check the runs before the current one; they return None where a map looks different.
        names: globals of the function.
    """

    def __init__(self, nested: Mapping[int, NestedValues] | None, *, short: bool, reading: bool = False) -> None:
        """Begin with the first run.

        Args:
            nested: what checks and reads maps and lists among the values, by type code.
            short: all texts, maps and lists are shorter than 256 bytes, which is quicker to check.
            reading: the same function reads the values: texts need no check, and numbers come with the known bytes.
        """
        self.run = 0
        self.lines: list[str] = []
        self.names: dict[str, object] = {
            "errors": (IndexError, struct.error, UnicodeDecodeError),
            "number": int.from_bytes,
            "text": text_or_bytes,
            "u32": struct.Struct(">I").unpack_from,
            "UUID": UUID,
        }
        for code, values in (nested or {}).items():
            self.names |= {f"nested{code}": values.known, f"check{code}": values.check, f"read{code}": values.read}
        self._short = short
        self._reading = reading
        self._size = 0
        self._pieces: list[tuple[int, bytes]] = []
        self._numbers: list[tuple[int, str]] = []

    def constant(self, raw: bytes) -> None:
        """Bytes that are the same in all maps."""
        if self._pieces and self._pieces[-1][0] + len(self._pieces[-1][1]) == self._size:
            start, before = self._pieces.pop()
            self._pieces.append((start, before + raw))
        else:
            self._pieces.append((self._size, raw))
        self._size += len(raw)

    def key(self, name: str, code: int) -> None:
        """A key, and the type code of its value."""
        raw = name.encode()
        self.constant(bytes((len(raw), *raw, code)))

    def value(self, code: int, *, checked: bool = True) -> Place:
        """A value, which comes behind its key; `checked` is false for a map of any length that is checked elsewhere."""
        place = self.run, self._size, code
        if code in FIXED_FORMATS:
            if code not in CONSTANTS:
                self._numbers.append((self._size, FIXED_FORMATS[code]))
            self._size += struct.calcsize(">" + FIXED_FORMATS[code])
            return place
        run, offset, _ = place
        width = LENGTHS[code]
        if self._short and checked:
            # The high bytes of the length are zero.
            self.constant(bytes(width - 1))
            length = f"data[p{run} + {offset + width - 1}]"
        elif width == 1:
            length = f"data[{at(run, offset)}]"
        elif width == 2:
            length = f"(data[{at(run, offset)}] << 8) + data[p{run} + {offset + 1}]"
        else:
            length = f"u32(data, {at(run, offset)})[0]"
        self._end_run(f"p{run} + {offset + width} + {length}")
        if code in NESTED and checked:
            self.lines.append(f"raw = data[{at(run, offset)}:p{run + 1}]")
            self.lines.append(f"if raw not in nested{code} and not check{code}(raw): return None")
        elif code in TEXTS and not self._reading:
            raw = f"data[p{run} + {offset + width}:p{run + 1}]"
            self.lines.append(f"if not {raw}.isascii(): {raw}.decode()")
        return place

    def enter(self) -> None:
        """The size field of a map whose keys and values follow."""
        run, offset = self.run, self._size
        self._end_run(f"p{run} + {offset + 4}")
        self.lines.append(f"stop = p{self.run} + u32(data, {at(run, offset)})[0]")

    def leave(self, stop: str = "stop") -> None:
        """The end of a map, which has to be at `stop`."""
        self._end_run(at(self.run, self._size))
        self.lines.append(f"if p{self.run} != {stop}: return None")

    def _end_run(self, follow: str) -> None:
        """Compare the known bytes of a run: as they are unpacked, piece by piece, or many as one big integer.

        The next run is at `follow`.
        """
        run, pieces = self.run, self._pieces
        if self._reading and self._numbers:
            parts = sorted([*self._numbers, *((start, f"{len(known)}s") for start, known in pieces)])
            names = [f"x{run}_{start}" for start, _ in parts]
            self.names[f"unpack{run}"] = struct.Struct(">" + "".join(format for _, format in parts)).unpack_from
            self.names |= {f"known{run}_{start}": known for start, known in pieces}
            different = " or ".join(f"x{run}_{start} != known{run}_{start}" for start, _ in pieces)
            self.lines.append(f"{', '.join(names)}, = unpack{run}(data, p{run})")
            self.lines.append(f"if {different}: return None")
        elif len(pieces) <= _FEW:
            for number, (start, known) in enumerate(pieces):
                name = f"known{run}_{number}"
                self.names[name] = known
                self.lines.append(f"if data[{at(run, start)}:{at(run, start + len(known))}] != {name}: return None")
        else:
            self.names[f"known{run}"] = sum(int.from_bytes(known, "little") << 8 * start for start, known in pieces)
            self.names[f"mask{run}"] = sum((1 << 8 * len(known)) - 1 << 8 * start for start, known in pieces)
            found = f"number(data[p{run}:p{run} + {self._size}], 'little')"
            self.lines.append(f"if {found} & mask{run} != known{run}: return None")
        self.run, self._size, self._pieces, self._numbers = run + 1, 0, [], []
        self.lines.append(f"p{self.run} = {follow}")

    def function(self, head: str, first: Sequence[str], last: Sequence[str], result: str) -> Callable[..., Any]:
        """Compile the function ``def head``: `first`, the checks and `last`, all of which may fail, then the result."""
        lines = [f"def {head}:", "    try:"]
        lines += [f"        {line}" for line in (*first, *self.lines, *last)]
        lines += ["    except errors:", "        return None", f"    return {result}", ""]
        return compile_function(head.partition("(")[0], "\n".join(lines), self.names, "a keyed map")


def at(run: int, offset: int) -> str:
    """The expression for a place."""
    return f"p{run} + {offset}" if offset else f"p{run}"


def reading_lines(
    places: Mapping[str, Place], targets: Mapping[str, str], names: dict[str, object], *, reading: bool = False
) -> list[str]:
    """Statements that read values of a map that was checked, except those whose type code is all of them.

    Args:
        places: by key.
        targets: what to assign the values to, by key.
        names: gets the globals that the statements need besides those of `MapSource`.
        reading: as of the `MapSource` that checks the map, in the same function.
    """
    lines, fixed = [], []
    for name, (run, offset, code) in places.items():
        if code in NESTED:
            lines.append(f"{targets[name]} = read{code}(data[{at(run, offset)}:p{run + 1}])")
        elif code in LENGTHS:
            raw = f"data[{at(run, offset + LENGTHS[code])}:p{run + 1}]"
            lines.append(f"{targets[name]} = " + (f"{raw}.decode()" if code in TEXTS else f"text({raw})"))
        elif reading and code not in CONSTANTS:
            value = f"x{run}_{offset}"
            lines.append(f"{targets[name]} = " + (f"UUID(bytes={value})" if code == UUID16 else value))
        elif code not in CONSTANTS:
            fixed.append((run, offset, code, targets[name]))
    for run, values in itertools.groupby(fixed, key=lambda item: item[0]):
        layout, found, uuids = ">", [], []
        for _, offset, code, target in values:
            layout += f"{offset - struct.calcsize(layout)}x{FIXED_FORMATS[code]}"
            found.append(target)
            if code == UUID16:
                uuids.append(f"{target} = UUID(bytes={target})")
        names[f"unpack{run}"] = struct.Struct(layout).unpack_from
        lines += [f"{', '.join(found)}, = unpack{run}(data, p{run})", *uuids]
    return lines
