"""Writing rows; `rows` reads them (docs/protocol.md).

A row is made from two parts. The *lead* holds the name and the first columns: what changes seldom, prepared once. The
other columns are packed together with it by one `struct`, in a function compiled for them.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from qmf._compile import compile_function
from qmf.codec.errors import EncodeError
from qmf.codec.type_codes import AMQP010, LIST, MAP, TEXT16, UUID16
from qmf.protocol.objects.columns import ROW_FORMATS, Column
from qmf.protocol.objects.keyed_encoding import nested_bytes
from qmf.protocol.objects.row_layout import LENGTH, MAX_COLUMNS, RowLayout
from qmf.protocol.values import ObjectBlock, ObjectId
from qmf.schema import ClassKey

#: The prepared part of a row: bitmap with the bits of the lead's columns and of those that are always there, columns of
#: fixed width, length of the name and of variable columns, name and variable columns.
Lead = tuple[int, bytes, bytes, bytes]


class SourcePart(NamedTuple):
    """A part of a function's source that reads values, used by code that generates a function around it.

    Attributes:
        steps: statements.
        values: expressions of the values, valid behind the statements.
        names: globals that both need.
    """

    steps: Sequence[str]
    values: Sequence[str]
    names: Mapping[str, object]


class RowEncoder:
    """Writes rows of one class with the same columns.

    Values are ints for integer columns, floats, bools, UUIDs, text, maps (or object ids) and lists; None where there is
    none.
    """

    def __init__(self, class_key: ClassKey, agent: ObjectId, columns: Sequence[Column], leading: int) -> None:
        """Make one.

        Args:
            class_key: of the objects.
            agent: any id of the agent that has them: its name and epoch count.
            columns: of the rows, in order.
            leading: how many columns make up the lead.

        Raises:
            EncodeError: there are more columns than readers take.
        """
        if len(columns) > MAX_COLUMNS:
            raise EncodeError(f"rows of {len(columns)} columns; the limit is {MAX_COLUMNS}")
        self._class_key = class_key
        self._agent = agent
        self._layout = RowLayout(tuple(item.name for item in columns), bytes(item.row_code for item in columns))
        #: The columns behind the lead, with their numbers.
        self._columns = list(enumerate(columns))[leading:]
        self._bits = sum(1 << i for i, column in self._columns if not column.optional)
        lead_codes = self._layout.codes[:leading]
        self._lead_struct = struct.Struct(">" + "".join(ROW_FORMATS.get(code, "") for code in lead_codes))
        self._lead_lengths = struct.Struct(f">{1 + sum(code not in ROW_FORMATS for code in lead_codes)}I")

    @functools.cached_property
    def row(self) -> Callable[[int, int, int, Lead, Sequence[Any]], bytes]:
        """Makes a row.

        Takes update, create and delete time of the object, in nanoseconds since 1970 or 0 for none; its lead; and the
        values of the columns behind the lead. Raises EncodeError as `lead`.
        """
        names = [f"a{i}" for i, _ in self._columns]
        steps = [f"{', '.join(names)}, = values"] if names else []
        return self.row_function(SourcePart(steps, names, {}), "update, create, delete, lead, values")

    def row_function(self, reading: SourcePart, parameters: str) -> Callable[..., bytes]:
        """A function that reads the values behind the lead and makes a row.

        Args:
            reading: reads the values; each expression is used once.
            parameters: of the function. They, or the reading, set `update`, `create`, `delete`, `lead`, as for `row`.
        """
        layout = self._layout
        lines: list[str] = []
        numbers, bodies = [], []
        for (i, column), expression in zip(self._columns, reading.values, strict=True):
            code, value = column.row_code, expression
            if column.optional:
                value = f"v{i}"
                lines += [f"{value} = {expression}", f"if {value} is not None: bits |= {1 << i}"]
            if code in ROW_FORMATS:
                number, zero = (f"({value}).bytes", "b''") if code == UUID16 else (value, "0")
                numbers.append(f"({zero} if {value} is None else {number})" if column.optional else number)
            else:
                raw = f"({value}).encode()" if code == TEXT16 else f"encode{code}({value})"
                lines.append(f"b{i} = " + (f"b'' if {value} is None else {raw}" if column.optional else raw))
                bodies.append(f"b{i}")
        formats = "".join(ROW_FORMATS.get(column.row_code, "") for _, column in self._columns)
        head = struct.Struct(
            f">I{layout.bitmap_size}sqqq{self._lead_struct.size}s{formats}{self._lead_lengths.size}s{len(bodies)}I"
        )
        lengths = [f"len({body})" for body in bodies]
        size = " + ".join([str(head.size - LENGTH), "len(body)", *lengths])
        bitmap = f"bits.to_bytes({layout.bitmap_size}, 'little')"
        arguments = [size, bitmap, "update", "create", "delete", "fixed", *numbers, "sizes", *lengths]
        source = "\n".join(
            [
                f"def row({parameters}):",
                *(f"    {line}" for line in reading.steps),
                "    bits, fixed, sizes, body = lead",
                "    try:",
                *(f"        {line}" for line in lines),
                f"        return join((pack({', '.join(arguments)}), {', '.join(['body', *bodies])}))",
                "    except errors as error:",
                "        raise refusal(error) from None",
                "",
            ]
        )
        names = {"pack": head.pack, "join": b"".join, "errors": _ERRORS, "refusal": _refusal, **reading.names}
        names |= {f"encode{code}": encode for code, encode in _ENCODERS.items()}
        return compile_function("row", source, names, self._class_key.name)

    def lead(self, name: str, values: Sequence[Any]) -> Lead:
        """Prepare the name and the first columns.

        Args:
            name: of the object.
            values: one for each column of the lead.

        Raises:
            EncodeError: a value that rows cannot hold, such as a number out of its column's range.
        """
        bits = self._bits
        numbers: list[Any] = []
        bodies = [_text_bytes(name)]
        codes = self._layout.codes
        for i, value in enumerate(values):
            code = codes[i]
            if value is not None:
                bits |= 1 << i
            if code not in ROW_FORMATS:
                bodies.append(b"" if value is None else _ENCODERS[code](value))
            elif code == UUID16:
                numbers.append(b"" if value is None else value.bytes)
            else:
                numbers.append(0 if value is None else value)
        try:
            fixed = self._lead_struct.pack(*numbers)
        except (struct.error, OverflowError) as error:
            raise _refusal(error) from None
        return bits, fixed, self._lead_lengths.pack(*map(len, bodies)), b"".join(bodies)

    def block(self, rows: Sequence[bytes]) -> ObjectBlock:
        """Rows as part of a message."""
        return ObjectBlock(
            class_key=self._class_key,
            agent_name=self._agent.agent_name,
            agent_epoch=self._agent.agent_epoch,
            columns=self._layout.columns,
            codes=self._layout.codes,
            rows=b"".join(rows),
        )


def _text_bytes(value: str) -> bytes:
    """Text as rows hold it."""
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise _refusal(error) from None


def _nested_encoder(code: int) -> Callable[[object], bytes]:
    """Encodes maps, or lists, as rows hold them: without type code."""
    name = AMQP010[code].name

    def encode(value: object) -> bytes:
        raw = nested_bytes(value)
        if raw[0] != code:
            raise EncodeError(f"a {type(value).__name__} instead of a {name}")
        return raw[1:]

    return encode


_ENCODERS = {TEXT16: _text_bytes, MAP: _nested_encoder(MAP), LIST: _nested_encoder(LIST)}


_ERRORS = (struct.error, OverflowError, UnicodeEncodeError)


def _refusal(error: Exception) -> EncodeError:
    if isinstance(error, UnicodeEncodeError):
        # What lone surrogates stand for is binary to readers of keyed objects.
        return EncodeError(f"text with a lone surrogate: {error.object[:40]!r}")
    return EncodeError(f"a number is out of the range of its column: {error}")
