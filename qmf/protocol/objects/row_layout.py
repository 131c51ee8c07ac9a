"""Where the columns of a block stand in its rows (docs/protocol.md), and functions compiled for that.

The functions check and unpack rows without a loop over columns. docs/performance.md has what each of them brings.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from uuid import UUID

from qmf._compile import compile_function
from qmf.codec.type_codes import BINARY32, TEXT16, UUID16
from qmf.errors import DecodeError
from qmf.protocol.objects.columns import NESTED, ROW_FORMATS, ROW_VARIABLE
from qmf.protocol.objects.nested_values import NestedValues, text_or_bytes

#: Bytes of a row's length field, and of its three times.
LENGTH, TIMES = 4, 24

#: Most columns of rows that are read or written, for the functions of a layout grow with them; QMF's largest classes
#: have a fifth of it. Objects with more are sent keyed.
MAX_COLUMNS = 500


class RowLayout:
    """The form of the rows of one block: length, bitmap, times, fixed columns, lengths, name, variable columns.

    Attributes:
        columns: names of the columns.
        codes: one AMQP 0-10 type code per column.
        variable_columns: indices of the columns of variable width, ascending.
        bitmap_size: bytes of the bitmap; bit ``i % 8`` of byte ``i // 8`` is set when column ``i`` has a value.
        numbers: `struct` format of the fixed columns; UUIDs as bytes.
        lengths: `struct` format of the lengths of the name and of the variable columns.
        lengths_at: where in a row these start.
        name_at: where in a row the name starts, and behind it the variable columns.
    """

    __slots__ = ("bitmap_size", "codes", "columns", "lengths", "lengths_at", "name_at", "numbers", "variable_columns")

    def __init__(self, columns: tuple[str, ...], codes: bytes) -> None:
        """Make a layout.

        Raises:
            DecodeError: not one code per column, a code that rows don't have, or two columns of one name.
        """
        if len(columns) != len(codes):
            raise DecodeError(f"{len(codes)} type codes for {len(columns)} columns")
        if len(set(columns)) != len(columns):
            raise DecodeError("two columns of a block have the same name")
        for code in codes:
            if code not in ROW_FORMATS and code not in ROW_VARIABLE:
                raise DecodeError(f"rows have no type code 0x{code:02x}")
        self.columns = columns
        self.codes = codes
        self.variable_columns = tuple(i for i, code in enumerate(codes) if code not in ROW_FORMATS)
        self.bitmap_size = (len(columns) + 7) // 8
        self.numbers = "".join(ROW_FORMATS[code] for code in codes if code in ROW_FORMATS)
        self.lengths = f"{len(self.variable_columns) + 1}I"
        self.lengths_at = LENGTH + self.bitmap_size + TIMES + struct.calcsize(">" + self.numbers)
        self.name_at = self.lengths_at + struct.calcsize(">" + self.lengths)


def check_function(layout: RowLayout, nested: Mapping[int, NestedValues]) -> Callable[[bytes], list[int]]:
    """The function that finds and checks the rows of a block, and gives the offset of each.

    Text and binary need no check: every sequence of bytes is some.

    Args:
        layout: of the rows.
        nested: what reads maps and lists, by type code.

    Returns:
        the function. It raises DecodeError for lengths that don't add up, and for a map or list that cannot be read.
    """

    def malformed_row(start: int, column: int) -> DecodeError:
        return DecodeError(f"row at offset {start}: {layout.columns[column]!r} is no map or list that can be read")

    head = struct.Struct(f">I{layout.bitmap_size}s{layout.lengths_at - LENGTH - layout.bitmap_size}x{layout.lengths}")
    sizes = ["name", *(f"n{i}" for i in layout.variable_columns)]
    lines, passed = [], f"p = start + {head.size} + name"
    for i in layout.variable_columns:
        code = layout.codes[i]
        if code in NESTED:
            unset = f"not raw and not bits[{i >> 3}] & {1 << (i & 7)}"
            lines += [
                passed,
                f"raw = data[p:p + n{i}]",
                f"if raw not in nested{code} and not ({unset}) and not check{code}(raw): raise broken(start, {i})",
            ]
            passed = "p = p"
        passed += f" + n{i}"
    source = [
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
    names: dict[str, object] = {
        "head": head.unpack_from,
        "broken": malformed_row,
        "wrong": _wrong,
        "cut": _truncation_error,
    }
    names["StructError"] = struct.error
    for code, values in nested.items():
        names |= {f"nested{code}": values.known, f"check{code}": values.check}
    return compile_function("check", "\n".join(source), names, "rows")


def _wrong(start: int, size: int) -> DecodeError:
    return DecodeError(f"row at offset {start}: its lengths do not add up to {size} bytes")


def _truncation_error(start: int, end: int) -> DecodeError:
    return DecodeError(f"row at offset {start}: the data ends at {end}, inside the row")


def unpack_function(
    layout: RowLayout, nested: Mapping[int, NestedValues], remove: Callable[[dict[str, object], bytes], None]
) -> Callable[[bytes, int], dict[str, object]]:
    """The function that unpacks a row whose text is UTF-8: fills a copy of a dictionary that has its size and order.

    Args:
        layout: of the rows.
        nested: what reads maps and lists, by type code.
        remove: takes out the columns without a value; takes the dictionary and the bitmap, which is not full.

    Returns:
        the function; it takes rows, and where one starts. It raises UnicodeDecodeError for a row with other text.
    """
    codes = layout.codes
    full = ((1 << len(codes)) - 1).to_bytes(layout.bitmap_size, "little")
    head = struct.Struct(f">{layout.bitmap_size}s{TIMES}x{layout.numbers}{layout.lengths}")
    names: dict[str, object] = {"head": head.unpack_from, "full": full, "remove": remove, "UUID": UUID}
    names |= {
        "new": dict.fromkeys(layout.columns).copy,
        f"read{TEXT16}": bytes.decode,
        f"read{BINARY32}": text_or_bytes,
    }
    names |= {f"k{i}": name for i, name in enumerate(layout.columns)}
    names |= {f"read{code}": values.read for code, values in nested.items()}
    fixed = [f"out[k{i}]" for i, code in enumerate(codes) if code in ROW_FORMATS]
    fields = ["bits", *fixed, "name", *(f"s{i}" for i in layout.variable_columns)]
    lines = ["out = new()", f"{', '.join(fields)} = head(data, offset + {LENGTH})"]
    lines += [f"out[k{i}] = UUID(bytes=out[k{i}])" for i, code in enumerate(codes) if code == UUID16]
    lines.append(f"end = offset + {LENGTH + head.size} + name")
    for i in layout.variable_columns:
        unset = f"if s{i}: " if codes[i] in NESTED else ""
        lines += ["p = end", f"end = p + s{i}", f"{unset}out[k{i}] = read{codes[i]}(data[p:end])"]
    lines += ["if bits != full: remove(out, bits)", "return out"]
    source = ["def unpack(data, offset):", *(f"    {line}" for line in lines), ""]
    return compile_function("unpack", "\n".join(source), names, "rows")
