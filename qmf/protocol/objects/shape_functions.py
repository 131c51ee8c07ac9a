"""Functions compiled for one shape: matching and unpacking its maps without a loop.

docs/performance.md has what each of them brings.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from qmf._compile import compile_function
from qmf.codec.type_codes import BOOLEAN, CONSTANTS, UINT8, UUID16
from qmf.protocol.objects.columns import FIXED_FORMATS, LENGTHS, NESTED, TEXTS
from qmf.protocol.objects.nested_values import NestedValues, text_or_bytes

#: Takes bytes, where the entries start and where they end; gives where each run starts, or None.
Match = Callable[[bytes, int, int], Sequence[int] | None]

#: Takes bytes and where each run starts.
Unpack = Callable[[bytes, Sequence[int]], dict[str, object]]

_ERRORS = (IndexError, struct.error, UnicodeDecodeError)
_unpack_u32 = struct.Struct(">I").unpack_from


class Run(NamedTuple):
    """Keys, type codes and values of fixed width in a row.

    Attributes:
        mask: 255 for each byte that is known, 0 for those of values.
        known: the known bytes, and zeros.
        then: type code of the variable value behind the run; None at the end of the map.
    """

    mask: bytes
    known: bytes
    then: int | None

    @property
    def size(self) -> int:
        """Bytes of the run."""
        return len(self.known)


def match_function(runs: Sequence[Run], nested: Mapping[int, NestedValues] | None, *, short: bool) -> Match:
    """`Shape.match` of a shape; arguments as of `Shape`."""
    names: dict[str, object] = {"number": int.from_bytes, "u32": _unpack_u32, "errors": _ERRORS}
    for code, values in (nested or {}).items():
        names |= {f"nested{code}": values.known, f"check{code}": values.check}
    lines: list[str] = []
    for i, run in enumerate(runs):
        lines += _comparison(i, run, names, short=short)
        if run.then is not None:
            lines += _variable_check(i, run.size, run.then, checked=nested is not None, short=short)
    source = "\n".join(
        [
            "def match(data, p0, stop):",
            "    try:",
            *(f"        {line}" for line in lines),
            f"        if {_at(len(runs) - 1, runs[-1].size)} != stop: return None",
            "    except errors:",
            "        return None",
            f"    return ({', '.join(f'p{i}' for i in range(len(runs)))},)",
            "",
        ]
    )
    return compile_function("match", source, names, "a shape")


def _at(i: int, offset: int) -> str:
    """An offset behind the start of a run."""
    return f"p{i} + {offset}" if offset else f"p{i}"


def _comparison(i: int, run: Run, names: dict[str, object], *, short: bool) -> list[str]:
    """Compares the known bytes of a run: all bytes, or those that one big integer masks.

    The high bytes of a short length behind it are known as well: they are zero.
    """
    zeros = bytes(LENGTHS[run.then] - 1 if short and run.then is not None else 0)
    known, mask = run.known + zeros, run.mask + b"\xff" * len(zeros)
    if not known:
        return []
    found = f"data[p{i}:{_at(i, len(known))}]"
    if 0 not in mask:
        names[f"known{i}"] = known
        return [f"if {found} != known{i}: return None"]
    names[f"mask{i}"] = int.from_bytes(mask, "little")
    names[f"known{i}"] = int.from_bytes(known, "little")
    return [f"if number({found}, 'little') & mask{i} != known{i}: return None"]


def _variable_check(i: int, size: int, code: int, *, checked: bool, short: bool) -> list[str]:
    """Finds the end of the variable value behind a run, which is the next run's start; sees that it can be read."""
    width, begin, follow = LENGTHS[code], _at(i, size), f"p{i + 1}"
    content = _at(i, size + width)
    length = {
        1: f"data[{begin}]",
        2: f"(data[{begin}] << 8) + data[{_at(i, size + 1)}]",
        4: f"u32(data, {begin})[0]",
    }[width]
    if short:
        length = f"data[{_at(i, size + width - 1)}]"
    lines = [f"{follow} = {content} + {length}"]
    if code in TEXTS:
        raw = f"data[{content}:{follow}]"
        lines.append(f"if not {raw}.isascii(): {raw}.decode()")
    elif code in NESTED and checked:
        lines += [f"raw = data[{begin}:{follow}]", f"if raw not in nested{code} and not check{code}(raw): return None"]
    return lines


def unpack_function(
    names: Sequence[str], codes: bytes, runs: Sequence[Run], nested: Mapping[int, NestedValues]
) -> Unpack:
    """`Shape.unpack` of a shape: fills a copy of a dictionary that has its size and order already."""
    template = {name: CONSTANTS.get(code) for name, code in zip(names, codes, strict=True)}
    space: dict[str, object] = {"new": template.copy, "text": text_or_bytes, "UUID": UUID}
    space |= {f"k{i}": name for i, name in enumerate(names)}
    space |= {f"read{code}": values.read for code, values in nested.items()}
    lines = ["out = new()", f"{', '.join(f'p{i}' for i in range(len(runs)))}, = starts"]
    columns = list(enumerate(zip(names, codes, strict=True)))
    for i, run in enumerate(runs):
        fixed = []
        while columns and columns[0][1][1] not in LENGTHS:
            fixed.append(columns.pop(0))
        lines += _fixed_values(i, fixed, space)
        if run.then is not None:
            number, _ = columns.pop(0)
            lines.append(f"out[k{number}] = {_variable_value(i, run.size, run.then)}")
    source = "\n".join(["def unpack(data, starts):", *(f"    {line}" for line in lines), "    return out", ""])
    return compile_function("unpack", source, space, "a shape")


def _fixed_values(i: int, columns: Sequence[tuple[int, tuple[str, int]]], space: dict[str, object]) -> list[str]:
    """Unpacks the values of fixed width of a run."""
    layout, targets, uuids = ">", [], []
    for number, (name, code) in columns:
        layout += f"{len(name.encode()) + 2}x{FIXED_FORMATS[code]}"
        if code == UUID16:
            targets.append(f"v{number}")
            uuids.append(f"out[k{number}] = UUID(bytes=v{number})")
        elif code not in CONSTANTS:
            targets.append(f"out[k{number}]")
    if not targets:
        return []
    if len(columns) == 1 and columns[0][1][1] in (BOOLEAN, UINT8):
        value = f"data[{_at(i, struct.calcsize(layout) - 1)}]"
        return [f"{targets[0]} = {value}" + (" != 0" if columns[0][1][1] == BOOLEAN else "")]
    space[f"unpack{i}"] = struct.Struct(layout).unpack_from
    return [f"{', '.join(targets)}, = unpack{i}(data, p{i})", *uuids]


def _variable_value(i: int, size: int, code: int) -> str:
    """The variable value behind a run."""
    if code in NESTED:
        return f"read{code}(data[{_at(i, size)}:p{i + 1}])"
    raw = f"data[{_at(i, size + LENGTHS[code])}:p{i + 1}]"
    return f"{raw}.decode()" if code in TEXTS else f"text({raw})"
