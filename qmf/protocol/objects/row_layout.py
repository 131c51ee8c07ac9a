"""Where the columns of a block stand in its rows (docs/protocol.md)."""

from __future__ import annotations

import struct

from qmf.errors import DecodeError
from qmf.protocol.objects.columns import ROW_FORMATS, ROW_VARIABLE

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
