"""Functions written out for one shape: matching and unpacking its maps without a loop.

What most maps of a shape have had at a place, such as a reference that all objects share, is compared as a whole there
before anything is read (`usual`). That is only a short cut: other values go the ordinary way.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from qmf._compile import compile_function
from qmf.protocol.objects.runs import (
    BOOL,
    CONSTANTS,
    END,
    FORMATS,
    LENGTHS,
    NESTED,
    TEXTS,
    UINT8,
    UUID_CODE,
    Flat,
    Run,
    as_flat,
    is_sound,
    text,
    uuid,
    variable,
)

#: Takes bytes, where the items start and where they end, what is known as sound, and the depth; gives where each run
#: starts, or None.
Match = Callable[[bytes, int, int, set[bytes], int], Sequence[int] | None]

#: Takes bytes and where each run starts.
Unpack = Callable[[bytes, Sequence[int]], dict[str, object]]

_u32 = struct.Struct(">I").unpack_from


def match_function(
    runs: Sequence[Run],
    *,
    checked: bool,
    depth: int,
    usual: Mapping[int, bytes],
    short: Collection[int],
    again: Match,
    missed: Callable[[int], None],
) -> Match:
    """`Shape.match` of a shape.

    Args:
        runs: of the shape.
        checked: whether nested maps and lists are.
        depth: at which the usual nested values were found to be sound; those deeper are matched by `again`.
        usual: by the number of a run, what mostly follows it, length included.
        short: numbers of the runs that are followed by less than 256 bytes, or else `again` decides.
        again: matches any map of the shape.
        missed: told the number of a run that something else than usual followed.
    """
    names: dict[str, object] = {
        "number": int.from_bytes,
        "u32": _u32,
        "is_sound": is_sound,
        "again": again,
        "missed": missed,
        "errors": (IndexError, struct.error, UnicodeDecodeError),
    }
    lines = [f"if depth > {depth}: return again(data, start, stop, sound, depth)", "p0 = start"]
    compared = False  # with what is usual before it
    for i, run in enumerate(runs):
        check = [] if compared else _check(i, run, i in short, names)
        compared = False
        value = _passing(i, run, i in short, checked=checked)
        if i not in usual:
            lines += [*check, *value]
            continue
        if run.mask or not check:
            lines += check
            whole, begin, ordinary = usual[i], run.size, value
        else:
            whole, begin, ordinary = _known(run, short=False) + usual[i], 0, [*check, *value]
        follow = f"p{i + 1} = {_at(i, begin + len(whole))}"
        ordinary.append(f"missed({i})")
        if not runs[i + 1].mask:
            # What is known behind it is compared with it.
            compared = True
            whole += _known(runs[i + 1], short=i + 1 in short)
            ordinary += _check(i + 1, runs[i + 1], i + 1 in short, names)
        names[f"usual{i}"] = whole
        lines += [f"if data.startswith(usual{i}, {_at(i, begin)}): {follow}", "else:"]
        lines += [f"    {line}" for line in ordinary]
    end = _at(len(runs) - 1, runs[-1].size)
    starts = ", ".join(f"p{i}" for i in range(len(runs)))
    source = "\n".join(
        [
            "def match(data, start, stop, sound, depth):",
            "    try:",
            *(f"        {line}" for line in lines),
            f"        return ({starts},) if {end} == stop else None",
            "    except errors:",
            "        return None",
            "",
        ]
    )
    return compile_function("match", source, names, "a shape")


def _at(i: int, offset: int) -> str:
    """A place behind the start of a run."""
    return f"p{i} + {offset}" if offset else f"p{i}"


def _known(run: Run, *, short: bool) -> bytes:
    """The bytes of a run that are all known, and the high bytes of a short length."""
    assert isinstance(run.known, bytes)
    return run.known + bytes(LENGTHS[run.then] - 1 if short else 0)


def _check(i: int, run: Run, short: bool, names: dict[str, object]) -> list[str]:
    """Compares the known bytes of a run, and the high bytes of a short length: they are zero."""
    more = LENGTHS[run.then] - 1 if short else 0
    size = run.size + more
    if not size:
        return []
    failed = "again(data, start, stop, sound, depth)" if more else "None"
    if run.mask:
        names[f"mask{i}"] = run.mask | ((1 << 8 * more) - 1) << 8 * run.size
        names[f"known{i}"] = run.known
        found = f"number(data[p{i}:{_at(i, size)}], 'little') & mask{i}"
    else:
        names[f"known{i}"] = _known(run, short=short)
        found = f"data[p{i}:{_at(i, size)}]"
    return [f"if {found} != known{i}: return {failed}"]


def _passing(i: int, run: Run, short: bool, *, checked: bool) -> list[str]:
    """Passes the variable value behind a run, and sees that it can be read."""
    size, then, follow = run.size, run.then, f"p{i + 1}"
    if then == END:
        return []
    width = LENGTHS[then]
    begin, behind = _at(i, size), _at(i, size + width)
    if short or width == 1:
        lines = [f"{follow} = {behind} + data[{_at(i, size + width - 1)}]"]
    elif width == 2:
        lines = [f"{follow} = {behind} + (data[{begin}] << 8) + data[{_at(i, size + 1)}]"]
    else:
        lines = [f"{follow} = {behind} + u32(data, {begin})[0]"]
    if then in TEXTS:
        raw = f"data[{behind}:{follow}]"
        lines.append(f"if not {raw}.isascii(): {raw}.decode()")
    elif then in NESTED and checked:
        lines.append(
            f"if data[{_at(i, size - 1)}:{follow}] not in sound and "
            f"not is_sound(data, {begin}, {follow}, {then}, sound, depth): return None"
        )
    return lines


def unpack_function(
    names: Sequence[str],
    codes: bytes,
    runs: Sequence[Run],
    *,
    usual: Mapping[int, bytes],
    flats: Mapping[bytes, Flat],
    nested: Callable[[bytes, int, int, int], object],
) -> Unpack:
    """`Shape.unpack` of a shape: fills a copy of a dictionary that has its size and order already.

    Args:
        names: keys of the shape.
        codes: a type code per key.
        runs: of the shape.
        usual: as for `match_function`.
        flats: maps and lists by their bytes, type code included, of which copies may be given out.
        nested: reads others; takes bytes, where the length starts, where the value ends, and the type code.
    """
    template = {name: CONSTANTS.get(code) for name, code in zip(names, codes, strict=True)}
    space: dict[str, object] = {
        "new": template.copy,
        "text": text,
        "uuid": uuid,
        "known": flats.get,
        "nested": nested,
    }
    lines = ["out = new()", f"{', '.join(f'p{i}' for i in range(len(runs)))}, = starts"]
    columns = list(enumerate(zip(names, codes, strict=True)))
    for i, run in enumerate(runs):
        fixed = []
        while columns and columns[0][1][1] not in LENGTHS:
            fixed.append(columns.pop(0))
        lines += _fixed_values(i, fixed, space)
        if run.then != END:
            number, (name, _) = columns.pop(0)
            space[f"k{number}"] = name
            lines += _variable_value(i, run, f"out[k{number}]", usual.get(i), space)
    source = "\n".join(["def unpack(data, starts):", *(f"    {line}" for line in lines), "    return out", ""])
    return compile_function("unpack", source, space, "a shape")


def _fixed_values(i: int, columns: Sequence[tuple[int, tuple[str, int]]], space: dict[str, object]) -> list[str]:
    """Puts the values of fixed width of a run where they belong."""
    layout, targets, uuids = ">", [], []
    for number, (name, code) in columns:
        layout += f"{len(name.encode()) + 2}x{FORMATS[code]}"
        if code in CONSTANTS:
            continue
        space[f"k{number}"] = name
        target = f"out[k{number}]"
        if code == UUID_CODE:
            uuids.append(f"{target} = uuid(v{number})")
            target = f"v{number}"
        targets.append((target, code))
    if not targets:
        return []
    if len(columns) == 1 and targets[0][1] in (BOOL, UINT8):
        value = f"data[{_at(i, struct.calcsize(layout) - 1)}]"
        return [f"{targets[0][0]} = {value}" + (" != 0" if targets[0][1] == BOOL else "")]
    space[f"unpack{i}"] = struct.Struct(layout).unpack_from
    return [f"{', '.join(target for target, _ in targets)}, = unpack{i}(data, p{i})", *uuids]


def _variable_value(i: int, run: Run, target: str, usual: bytes | None, space: dict[str, object]) -> list[str]:
    """Puts the variable value behind a run where it belongs."""
    end, follow, code = _at(i, run.size), f"p{i + 1}", run.then
    if code in NESTED:
        lines = [
            f"found = known(data[{_at(i, run.size - 1)}:{follow}])",
            f"{target} = nested(data, {end}, {follow}, {code}) if found is None else found.copy()",
        ]
    else:
        raw = f"data[{_at(i, run.size + LENGTHS[code])}:{follow}]"
        lines = [f"{target} = {raw}.decode()" if code in TEXTS else f"{target} = text({raw})"]
    if usual is None:
        return lines
    value: Any = variable(usual, 0, code)
    if code in NESTED:
        flat = as_flat(value)
        if flat is None:
            return lines
        value = flat.copy
    space |= {f"usual{i}": usual, f"value{i}": value}
    known = f"value{i}()" if code in NESTED else f"value{i}"
    return [
        f"if data.startswith(usual{i}, {end}): {target} = {known}",
        "else:",
        *(f"    {line}" for line in lines),
    ]
