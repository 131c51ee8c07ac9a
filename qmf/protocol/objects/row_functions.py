"""Unpacking the rows of one layout, without a loop over columns."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence

from qmf._compile import compile_function
from qmf.protocol.objects.runs import FORMATS, LIST, MAP, TEXT16, UUID_CODE, Flat, uuid

#: Bytes of a row's length field, and of its three times.
LENGTH, TIMES = 4, 24

#: Takes rows, and where one starts.
Unpack = Callable[[bytes, int], dict[str, object]]


def unpack_function(
    columns: Sequence[str],
    codes: bytes,
    *,
    flats: Mapping[int, Mapping[bytes, Flat]],
    readers: Mapping[int, Callable[[bytes], object]],
    remove: Callable[[dict[str, object], bytes], None],
    again: Unpack,
) -> Unpack:
    """`RowLayout.unpack` of a layout: fills a copy of a dictionary that has its size and order already.

    Args:
        columns: names.
        codes: a type code per column.
        flats: maps and lists by type code and bytes, of which copies may be given out.
        readers: read the bytes of other variable values, by type code; no map or list has no bytes.
        remove: takes out the columns without a value; takes the dictionary and the bitmap, which is not full.
        again: unpacks rows with text that is none.
    """
    numbers = "".join(FORMATS[code] for code in codes if code in FORMATS)
    variable = [i for i, code in enumerate(codes) if code not in FORMATS]
    bitmap = (len(codes) + 7) // 8
    head = struct.Struct(f">{bitmap}s{TIMES}x{numbers}{len(variable) + 1}I")
    full = ((1 << len(codes)) - 1).to_bytes(bitmap, "little")
    space: dict[str, object] = {
        "new": dict.fromkeys(columns).copy,
        "head": head.unpack_from,
        "full": full,
        "uuid": uuid,
        "remove": remove,
        "again": again,
    }
    space |= {f"k{i}": name for i, name in enumerate(columns)}
    space |= {f"read{code}": read for code, read in readers.items()}
    space |= {f"known{code}": known.get for code, known in flats.items()}
    targets = [f"v{i}" if code == UUID_CODE else f"out[k{i}]" for i, code in enumerate(codes) if code in FORMATS]
    lines = ["out = new()"]
    fields = ", ".join(["bits", *targets, "length", *(f"s{i}" for i in variable)])
    lines.append(f"{fields} = head(data, offset + {LENGTH})")
    lines += [f"out[k{i}] = uuid(v{i})" for i, code in enumerate(codes) if code == UUID_CODE]
    ends = [*variable, "end"]
    lines.append(f"p{ends[0]} = offset + {LENGTH + head.size} + length")
    for i, follow in zip(variable, ends[1:], strict=True):
        code = codes[i]
        lines.append(f"p{follow} = p{i} + s{i}")
        raw = f"data[p{i}:p{follow}]"
        if code == TEXT16:
            lines.append(f"out[k{i}] = {raw}.decode()")
        elif code in (MAP, LIST):
            lines += [
                f"if s{i}:",
                f"    raw = {raw}",
                f"    found = known{code}(raw)",
                f"    out[k{i}] = read{code}(raw) if found is None else found.copy()",
            ]
        else:
            lines.append(f"out[k{i}] = read{code}({raw})")
    lines += ["if bits != full: remove(out, bits)", "return out"]
    if TEXT16 in codes:
        lines = [
            "try:",
            *(f"    {line}" for line in lines),
            "except UnicodeDecodeError:",
            "    return again(data, offset)",
        ]
    source = "\n".join(["def unpack(data, offset):", *(f"    {line}" for line in lines), ""])
    return compile_function("unpack", source, space, "a block")
