"""Checking the rows of a block: a loop that is written out for the columns of a layout.

Texts and binary need no check, for every sequence of bytes is some. Maps and lists are read once: many rows hold the
same ones, and those that stand beside each other are looked up together.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from qmf._compile import compile_function
from qmf.errors import DecodeError

#: Different groups of maps and lists that are remembered as readable, and how long each may be: the next block has the
#: same ones. What is full starts anew.
MAX_SOUND, MAX_SOUND_SIZE = 200, 1000

#: Gives the offset of each row of a block.
Check = Callable[[bytes], list[int]]


def row_check(
    bitmap_size: int,
    skipped: int,
    nested: Sequence[bool],
    read: Callable[[bytes, int, int, bytes], None],
) -> Check:
    """The function that finds and checks the rows of a block.

    Args:
        bitmap_size: bytes of a row's bitmap, which is behind its length field.
        skipped: bytes between that and the length of the row's name.
        nested: for each column of variable width, in order, whether it is a map or a list.
        read: called with bitmap, row's offset, place among the columns of variable width, and bytes of a map or list;
            raises DecodeError if it can't be read.

    Returns:
        the function; it raises DecodeError for lengths that don't add up, and what `read` raises.
    """
    count = len(nested)
    layout = struct.Struct(f">I{bitmap_size}s{skipped}x{count + 1}I")
    sizes = [f"n{i}" for i in range(count + 1)]
    lines: list[str] = []
    move, passed = f"p = start + {layout.size} +", 0
    for first, last in _groups(nested):
        group = ", ".join(sizes[first + 1 : last + 1])
        lines += [
            f"{move} {' + '.join(sizes[passed : first + 1])}",
            f"raw = data[p:p + {' + '.join(sizes[first + 1 : last + 1])}]",
            f"if ({first}, bits, {group}, raw) not in sound:",
            f"    read_all(bits, start, {first}, raw, ({group},))",
        ]
        move, passed = "p +=", first + 1
    source = "\n".join(
        [
            "def check(data):",
            "    found = []",
            "    add = found.append",
            "    start, end = 0, len(data)",
            "    try:",
            "        while start < end:",
            f"            size, bits, {', '.join(sizes)} = head(data, start)",
            "            stop = start + 4 + size",
            f"            if {' + '.join([str(layout.size - 4), *sizes])} != size or stop > end:",
            "                raise wrong(start, size)",
            *(f"            {line}" for line in lines),
            "            add(start)",
            "            start = stop",
            "    except StructError:",
            "        raise cut(start, end) from None",
            "    return found",
            "",
        ]
    )

    sound: set[tuple[object, ...]] = set()

    def read_all(bits: bytes, start: int, place: int, raw: bytes, sizes: Sequence[int]) -> None:
        at = 0
        for i, size in enumerate(sizes):
            read(bits, start, place + i, raw[at : at + size])
            at += size
        if len(raw) <= MAX_SOUND_SIZE:
            if len(sound) >= MAX_SOUND:
                sound.clear()
            sound.add((place, bits, *sizes, raw))

    names = {
        "head": layout.unpack_from,
        "read_all": read_all,
        "sound": sound,
        "wrong": _wrong,
        "cut": _cut,
        "StructError": struct.error,
    }
    check: Check = compile_function("check", source, names, "rows")
    return check


def _groups(nested: Sequence[bool]) -> list[tuple[int, int]]:
    """Columns that are beside each other, as the place of the first and that behind the last."""
    groups: list[tuple[int, int]] = []
    for place, is_nested in enumerate(nested):
        if is_nested and groups and groups[-1][1] == place:
            groups[-1] = (groups[-1][0], place + 1)
        elif is_nested:
            groups.append((place, place + 1))
    return groups


def _wrong(start: int, size: int) -> DecodeError:
    return DecodeError(f"row at offset {start}: its lengths do not add up to {size} bytes")


def _cut(start: int, end: int) -> DecodeError:
    return DecodeError(f"row at offset {start}: the data ends at {end}, inside the row")
