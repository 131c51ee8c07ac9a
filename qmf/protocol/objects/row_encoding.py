"""Writing rows: the other half of `rows`, whose `RowLayout` says where everything goes.

A row is made from two parts. The *lead* holds the name and the first columns: what changes seldom, prepared once. The
other columns are packed together with it by one `struct`. Knows nothing of objects.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Sequence
from typing import Any

from qmf._compile import compile_function
from qmf.codec.errors import EncodeError
from qmf.protocol.objects.rows import FIXED_FORMATS, MAX_COLUMNS, TEXT, RowLayout

_UUID = 0x48

#: The prepared part of a row: bitmap with the bits of the lead's columns and of those that are always there, columns of
#: fixed width, length of the name and of variable columns, name and variable columns.
Lead = tuple[int, bytes, bytes, bytes]


class RowEncoder:
    """Writes the rows of one layout.

    Attributes:
        layout: says how.
        row: makes a row from update, create and delete time, a lead, and the other columns' values, one by one. Values
            are as for `lead`. Raises EncodeError for a number out of the range of its column.
    """

    __slots__ = ("_bits", "_fixed", "_leading", "_optional", "_variable", "layout", "row")

    def __init__(self, layout: RowLayout, leading: int, optional: Collection[int], what: str) -> None:
        """Make one.

        Args:
            layout: of the rows.
            leading: how many columns make up the lead.
            optional: indices of those behind it that may be None.
            what: whose rows they are, for tracebacks.

        Raises:
            EncodeError: the layout has more columns than readers take.
        """
        if len(layout.columns) > MAX_COLUMNS:
            raise EncodeError(f"rows of {len(layout.columns)} columns; the limit is {MAX_COLUMNS}")
        self.layout = layout
        self._fixed = struct.Struct(">" + _formats(layout, range(leading)))
        self._variable = tuple(i for i in layout.variable_columns if i < leading)
        self._bits = sum(1 << i for i in range(leading, len(layout.columns)) if i not in optional)
        self._leading = leading
        self._optional = optional
        names = [f"v{i}" for i in range(leading, len(layout.columns))]
        steps, space = self.steps(names)
        source = "\n".join(
            [f"def row({', '.join(['update, create, delete, lead', *names])}):", *(f"    {step}" for step in steps), ""]
        )
        self.row: Callable[..., bytes] = compile_function("row", source, space, what)

    def steps(self, values: Sequence[str]) -> tuple[list[str], dict[str, object]]:
        """The text of `row`, for who makes a function that reads the values, too.

        Args:
            values: expressions of the values behind the lead. Each is used once.

        Returns:
            statements, of which the last ones return the row, and the names that they need besides `update`, `create`,
            `delete` and `lead`.
        """
        return _row_steps(self.layout, self._leading, self._optional, values)

    def lead(self, name: str, values: Sequence[Any]) -> Lead:
        """Prepare the name and the first columns.

        Args:
            name: of the object.
            values: one for each column: ints for integers, floats, bools, UUIDs, str for text, and for maps and lists
                their bytes as `qmf.codec.amqp010` encodes them; None where there is none.

        Raises:
            EncodeError: a number out of the range of its column, or text that is no Unicode.
        """
        bits = self._bits
        fixed: list[Any] = []
        pieces = [text_bytes(name)]
        codes = self.layout.codes
        for i, value in enumerate(values):
            code = codes[i]
            if value is not None:
                bits |= 1 << i
            if code not in FIXED_FORMATS:
                pieces.append(b"" if value is None else text_bytes(value) if code == TEXT else value)
            elif code == _UUID:
                fixed.append(b"" if value is None else value.bytes)
            else:
                fixed.append(0 if value is None else value)
        try:
            numbers = self._fixed.pack(*fixed)
        except (struct.error, OverflowError) as error:
            raise _out_of_range(error) from None
        return bits, numbers, struct.pack(f">{len(pieces)}I", *map(len, pieces)), b"".join(pieces)


def text_bytes(value: str) -> bytes:
    """Text as rows hold it.

    Raises:
        EncodeError: lone surrogates: what they stand for is binary to readers of ordinary messages.
    """
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise _surrogate(value) from None


def _formats(layout: RowLayout, columns: Collection[int]) -> str:
    return "".join(FIXED_FORMATS[layout.codes[i]] for i in layout.fixed_columns if i in columns)


def _row_steps(
    layout: RowLayout, leading: int, optional: Collection[int], values: Sequence[str]
) -> tuple[list[str], dict[str, object]]:
    """Statements that make a row, and the names that they need; `values` are expressions of the columns' values."""
    rest = range(leading, len(layout.columns))
    codes = layout.codes
    lines: list[str] = []
    numbers, lengths, bodies = [], [], []
    for i, expression in zip(rest, values, strict=True):
        value = expression
        if i in optional:
            if value != f"v{i}":
                lines.append(f"v{i} = {value}")
                value = f"v{i}"
            lines += [f"if {value} is not None:", f"    bits |= {1 << i}"]
        if codes[i] not in FIXED_FORMATS:
            raw = f"({value}).encode()" if codes[i] == TEXT else value
            lines.append(f"b{i} = " + (f"b'' if {value} is None else {raw}" if i in optional else raw))
            lengths.append(f"len(b{i})")
            bodies.append(f"b{i}")
            continue
        number = f"({value}).bytes" if codes[i] == _UUID else value
        zero = "b''" if codes[i] == _UUID else "0"
        numbers.append(f"({zero} if {value} is None else {number})" if i in optional else number)
    led_size = struct.calcsize(">" + _formats(layout, range(leading)))
    led_lengths = 4 * (1 + len(layout.variable_columns) - len(lengths))
    format = f">I{layout.bitmap_size}sqqq{led_size}s{_formats(layout, rest)}{led_lengths}s{len(lengths)}I"
    assert struct.calcsize(format) == layout.fixed.size + 4
    size = " + ".join([str(layout.fixed.size), "len(body)", *lengths])
    packed = [size, f"bits.to_bytes({layout.bitmap_size}, 'little')", "update", "create", "delete", "fixed", *numbers]
    arguments = ", ".join([*packed, "sizes", *lengths])
    steps = [
        "bits, fixed, sizes, body = lead",
        "try:",
        *(f"    {line}" for line in lines),
        f"    return join((pack({arguments}), {', '.join(['body', *bodies])}))",
        "except errors as error:",
        "    raise refusal(error) from None",
    ]
    names: dict[str, object] = {
        "pack": struct.Struct(format).pack,
        "join": b"".join,
        "errors": (struct.error, OverflowError, UnicodeEncodeError),
        "refusal": _refusal,
    }
    return steps, names


def _refusal(error: Exception) -> EncodeError:
    if isinstance(error, UnicodeEncodeError):
        return _surrogate(error.object)
    return _out_of_range(error)


def _surrogate(value: str) -> EncodeError:
    return EncodeError(f"text with a lone surrogate: {value[:40]!r}")


def _out_of_range(error: Exception) -> EncodeError:
    return EncodeError(f"a number is out of the range of its column: {error}")
