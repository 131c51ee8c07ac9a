"""Encoding the values of one class: what the class says is constant, so one `struct` writes it with the values.

The result is byte for byte that of the general encoder for the map of the same values in the same order. Numbers have
no short forms in AMQP 0-10, so keys and type codes of fixed columns never move against each other.

Knows nothing of objects: an encoder takes values in the order of its columns.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from qmf.codec._amqp010_encode import _ENCODERS, _encoder_for
from qmf.codec.errors import EncodeError
from qmf.codec.generated import build
from qmf.codec.rows import FIXED_FORMATS

#: Type code of columns that are encoded by what their values are: binary, maps and lists.
ANY = 0

#: Type code of columns that hold text as a rule; what is not short and ASCII is encoded like `ANY`.
TEXT = 0x95

#: Type codes by the names of schema types whose values all have one width (QMF2.md 6).
FIXED_CODES: Mapping[str, int] = {
    "uint8": 0x02,
    "uint16": 0x12,
    "uint32": 0x22,
    "uint64": 0x32,
    "int8": 0x01,
    "int16": 0x11,
    "int32": 0x21,
    "int64": 0x31,
    "absTime": 0x31,
    "deltaTime": 0x32,
    "bool": 0x08,
    "float": 0x23,
    "double": 0x33,
    "uuid": 0x48,
}

# Type code and length of short text: most names are.
_SHORT_TEXT = tuple(b"\x95\x00" + bytes((size,)) for size in range(256))

_EMPTY_MAP = b"\xa8\x00\x00\x00\x04\x00\x00\x00\x00"

_UUID = 0x48

#: Encodes values in the order of the columns; gives the entries of a map, without its head, and their number.
Encode = Callable[..., tuple[bytes, int]]

_U32_PAIR = struct.Struct(">II").pack
_MAP = b"\xa8"


@attrs.frozen
class Column:
    """One value of a class.

    Attributes:
        name: its key; at most 255 bytes of UTF-8.
        code: its AMQP 0-10 type code where all values have one width, else `TEXT` or `ANY`.
        optional: it may be None, and is left out then.
    """

    name: str
    code: int
    optional: bool = False


def map_value(entries: bytes, count: int) -> bytes:
    """A map as a value: type code, size, number of entries, entries."""
    return _MAP + _U32_PAIR(len(entries) + 4, count) + entries


def list_body(items: Sequence[bytes]) -> bytes:
    """A list, size field included, of values that are encoded already, type codes included."""
    values = b"".join(items)
    return _U32_PAIR(len(values) + 4, len(items)) + values


def key(name: str) -> bytes:
    """A key of a map as it goes before its value.

    Raises:
        EncodeError: longer than 255 bytes, or no Unicode.
    """
    try:
        raw = name.encode()
    except UnicodeEncodeError:
        raise EncodeError(f"map key {name[:40]!r} with a lone surrogate") from None
    if len(raw) > 0xFF:
        raise EncodeError(f"map key {name[:40]!r}... is longer than 255 bytes")
    return bytes((len(raw),)) + raw


def entry_encoder(columns: Sequence[Column], depth: int, what: str) -> Encode:
    """The function that encodes values of these columns as the entries of a map.

    Args:
        columns: in the order in which values are given and written.
        depth: levels of maps and lists around the values' own map; the outermost does not count.
        what: whose values they are, for tracebacks.

    Returns:
        takes the values as positional arguments: ints for integer columns, floats, bools, UUIDs, and for other columns
        whatever the general encoder takes. It raises EncodeError for what cannot be encoded, a number out of its
        width's range included.

    Raises:
        EncodeError: a column's name cannot be a key.
    """
    writer = _Source()
    for number, column in enumerate(columns):
        writer.add(number, column)
    arguments = ", ".join(f"v{number}" for number in range(len(columns)))
    source = writer.text(arguments, len(columns))
    names = {
        "EncodeError": EncodeError,
        "StructError": struct.error,
        "other": lambda value: value_bytes(value, depth),
        "SHORT": _SHORT_TEXT,
    }
    return build("encode", source, names | writer.names, what)


class _Source:
    """Collects the text of an encoder; runs of columns of fixed width that are always there become one `struct`."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self._steps: list[str] = []
        self._pieces: list[str] = []
        self._run: list[tuple[int, Column]] = []
        self._absent = False

    def add(self, number: int, column: Column) -> None:
        """Add a column."""
        if column.code in FIXED_FORMATS and not column.optional:
            self._run.append((number, column))
            return
        self._end_run()
        value, piece = f"v{number}", f"p{number}"
        if column.code in FIXED_FORMATS:
            step = f"{piece} = {self._pack([(number, column)])}"
        else:
            self.names[f"K{number}"] = key(column.name)
            step = f"{piece} = K{number} + other({value})"
        if column.code == TEXT:
            self.names[f"T{number}"] = key(column.name)
            short = f"{piece} = T{number} + SHORT[len({value})] + {value}.encode()"
            condition = f"if type({value}) is str and len({value}) < {len(_SHORT_TEXT)} and {value}.isascii():"
            steps = [condition, f"    {short}", "else:", f"    {step}"]
        else:
            steps = [step]
        if column.optional:
            self._absent = True
            absent = [f"if {value} is None:", f"    {piece} = b''", "    count -= 1", "else:"]
            steps = [*absent, *("    " + line for line in steps)]
        self._steps += steps
        self._pieces.append(piece)

    def _end_run(self) -> None:
        if self._run:
            self._pieces.append(self._pack(self._run))
            self._run = []

    def _pack(self, run: list[tuple[int, Column]]) -> str:
        first = run[0][0]
        formats, arguments = ">", []
        for number, column in run:
            raw = key(column.name) + bytes((column.code,))
            formats += f"{len(raw)}s{FIXED_FORMATS[column.code]}"
            self.names[f"K{number}"] = raw
            arguments.append(f"K{number}, v{number}{'.bytes' if column.code == _UUID else ''}")
        self.names[f"pack{first}"] = struct.Struct(formats).pack
        return f"pack{first}({', '.join(arguments)})"

    def text(self, arguments: str, count: int) -> str:
        """The whole function."""
        self._end_run()
        pieces = self._pieces
        result = pieces[0] if len(pieces) == 1 else f"b''.join(({', '.join(pieces)}))" if pieces else "b''"
        body = [*([f"count = {count}"] if self._absent else []), *self._steps]
        body.append(f"return {result}, {'count' if self._absent else count}")
        lines = [f"def encode({arguments}):", "    try:", *(f"        {line}" for line in body)]
        lines += ["    except (StructError, OverflowError) as error:"]
        lines += ["        raise EncodeError(f'a number is out of the range of its column: {error}') from None"]
        return "\n".join(lines) + "\n"


def value_bytes(value: object, depth: int = 0) -> bytes:
    """Any value as the general encoder writes it, type code included; `depth` as in `entry_encoder`."""
    if type(value) is dict and not value:
        return _EMPTY_MAP
    out = bytearray()
    (_ENCODERS.get(type(value)) or _encoder_for(value))(out, value, depth)
    return bytes(out)
