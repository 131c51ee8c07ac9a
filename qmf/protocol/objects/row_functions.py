"""Functions compiled for the rows of one layout: checking and unpacking without a loop over columns.

docs/performance.md has what each of them brings.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from uuid import UUID

from qmf._compile import compile_function
from qmf.codec.type_codes import BINARY32, TEXT16, UUID16
from qmf.errors import DecodeError
from qmf.protocol.objects.columns import NESTED, ROW_FORMATS
from qmf.protocol.objects.nested_values import NestedValues, text_or_bytes
from qmf.protocol.objects.row_layout import LENGTH, TIMES, RowLayout

#: Gives the offset of each row of a block.
Check = Callable[[bytes], list[int]]

#: Takes rows, and where one starts.
Unpack = Callable[[bytes, int], dict[str, object]]


def check_function(layout: RowLayout, nested: Mapping[int, NestedValues]) -> Check:
    """The function that finds and checks the rows of a block.

    Text and binary need no check: every sequence of bytes is some.

    Args:
        layout: of the rows.
        nested: what reads maps and lists, by type code.

    Returns:
        the function. It raises DecodeError for lengths that don't add up, and for a map or list that cannot be read.
    """
    head = struct.Struct(f">I{layout.bitmap_size}s{layout.lengths_at - LENGTH - layout.bitmap_size}x{layout.lengths}")
    sizes = ["name", *(f"n{i}" for i in layout.variable_columns)]
    lines = []
    passed = [f"p = start + {head.size}", "name"]
    for i in layout.variable_columns:
        code = layout.codes[i]
        if code in NESTED:
            lines += [
                f"{passed[0]} + {' + '.join(passed[1:])}",
                f"raw = data[p:p + n{i}]",
                f"if raw not in nested{code} and not (check{code}(raw) if raw else "
                f"not bits[{i >> 3}] & {1 << (i & 7)}): raise broken(start, {i})",
            ]
            passed = ["p = p"]
        passed.append(f"n{i}")
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
            f"            if {' + '.join([str(head.size - LENGTH), *sizes])} != size or stop > end:",
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

    def broken(start: int, column: int) -> DecodeError:
        return DecodeError(f"row at offset {start}: {layout.columns[column]!r} is no map or list that can be read")

    names: dict[str, object] = {
        "head": head.unpack_from,
        "broken": broken,
        "wrong": _wrong,
        "cut": _cut,
        "StructError": struct.error,
    }
    for code, values in nested.items():
        names |= {f"nested{code}": values.known, f"check{code}": values.check}
    return compile_function("check", source, names, "rows")


def _wrong(start: int, size: int) -> DecodeError:
    return DecodeError(f"row at offset {start}: its lengths do not add up to {size} bytes")


def _cut(start: int, end: int) -> DecodeError:
    return DecodeError(f"row at offset {start}: the data ends at {end}, inside the row")


def unpack_function(
    layout: RowLayout, nested: Mapping[int, NestedValues], remove: Callable[[dict[str, object], bytes], None]
) -> Unpack:
    """The function that unpacks a row whose text is UTF-8: fills a copy of a dictionary that has its size and order.

    Args:
        layout: of the rows.
        nested: what reads maps and lists, by type code.
        remove: takes out the columns without a value; takes the dictionary and the bitmap, which is not full.

    Returns:
        the function. It raises UnicodeDecodeError for a row with other text.
    """
    columns, codes = layout.columns, layout.codes
    full = ((1 << len(codes)) - 1).to_bytes(layout.bitmap_size, "little")
    head = struct.Struct(f">{layout.bitmap_size}s{TIMES}x{layout.numbers}{layout.lengths}")
    space: dict[str, object] = {
        "new": dict.fromkeys(columns).copy,
        "head": head.unpack_from,
        "full": full,
        "UUID": UUID,
        "text": text_or_bytes,
        "remove": remove,
    }
    space |= {f"k{i}": name for i, name in enumerate(columns)}
    space |= {f"read{code}": values.read for code, values in nested.items()}
    targets = [f"v{i}" if code == UUID16 else f"out[k{i}]" for i, code in enumerate(codes) if code in ROW_FORMATS]
    fields = ["bits", *targets, "name", *(f"s{i}" for i in layout.variable_columns)]
    lines = ["out = new()", f"{', '.join(fields)} = head(data, offset + {LENGTH})"]
    lines += [f"out[k{i}] = UUID(bytes=v{i})" for i, code in enumerate(codes) if code == UUID16]
    lines.append(f"end = offset + {LENGTH + head.size} + name")
    for i in layout.variable_columns:
        code = codes[i]
        lines += ["p = end", f"end = p + s{i}"]
        raw = "data[p:end]"
        if code == TEXT16:
            lines.append(f"out[k{i}] = {raw}.decode()")
        elif code == BINARY32:
            lines.append(f"out[k{i}] = text({raw})")
        else:
            lines.append(f"if s{i}: out[k{i}] = read{code}({raw})")
    lines += ["if bits != full: remove(out, bits)", "return out"]
    source = "\n".join(["def unpack(data, offset):", *(f"    {line}" for line in lines), ""])
    return compile_function("unpack", source, space, "a block")
