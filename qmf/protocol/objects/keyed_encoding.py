"""Encoding the values of one class with keys: the class gives all that is constant, so one `struct` writes it.

The result is byte for byte that of the general encoder for the map of the same values in the same order. Numbers have
no short forms in AMQP 0-10, so keys and type codes of fixed columns never move against each other.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qmf._compile import compile_function
from qmf.codec.amqp010 import encode_value_into
from qmf.codec.errors import EncodeError
from qmf.codec.limits import MAX_DEPTH
from qmf.codec.type_codes import AMQP010, BOOLEAN, INT64, MAP, TEXT16, UUID16, number_packer
from qmf.codec.types import typed
from qmf.protocol.maps import object_id_to_map, wire_value
from qmf.protocol.objects.columns import ROW_FORMATS, Column
from qmf.protocol.values import ObjectId

#: Entries of a map, without its head, and their number.
Entries = tuple[bytes, int]

#: Encodes values in the order of the columns.
Encode = Callable[[Sequence[Any]], Entries]

#: Type code and length of short text: most names are.
_SHORT_TEXT = tuple(bytes((TEXT16, 0, size)) for size in range(256))

_U32_PAIR = struct.Struct(">II").pack
_MAP_HEAD = struct.Struct(">BII").pack
_INT64 = number_packer(AMQP010[INT64])
_TRUE, _FALSE = bytes((BOOLEAN, 1)), bytes((BOOLEAN, 0))

#: Keys of nested maps that an encoder remembers as they are written.
MAX_KEYS = 200

#: Entries of maps that are encoded one after the other, instead of by the general encoder.
_SMALL = 16

#: Bytes of entries below which heads of such maps are kept ready.
_SHORT_MAP = 256

#: Columns in a row from which on a list of keys is filled with values, instead of naming both one by one.
_MANY = 10


def map_value(entries: bytes, count: int) -> bytes:
    """A map as a value: type code, size, number of entries, entries."""
    return _MAP_HEAD(MAP, len(entries) + 4, count) + entries


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


def entry_encoder(columns: Sequence[Column], depth: int, owner: str) -> Encode:
    """The function that encodes values of these columns as the entries of a map.

    Args:
        columns: in the order in which values are given and written.
        depth: levels of maps and lists around the values' own map; the outermost does not count.
        owner: whose values they are, for tracebacks.

    Returns:
        takes the values as a list or tuple: ints for integer columns, floats, bools, UUIDs; text; for references, maps
        and lists whatever the general encoder takes, and object ids. It raises EncodeError for what cannot be encoded,
        a number out of its width's range included.

    Raises:
        EncodeError: a column's name cannot be a key.
    """
    writer = _Source()
    for number, column in enumerate(columns):
        writer.add(number, column)
    source = writer.text(len(columns))
    names = {
        "EncodeError": EncodeError,
        "StructError": struct.error,
        "other": value_encoder(depth),
        "SHORT": _SHORT_TEXT,
        "general": _general_encoder(columns, depth),
    }
    return compile_function("encode", source, names | writer.names, owner)


def _general_encoder(columns: Sequence[Column], depth: int) -> Encode:
    """An encoder that also takes text that is long, or holds lone surrogates."""

    def encode(values: Sequence[Any]) -> Entries:
        entries = [
            key(column.name) + value_bytes(typed(column.type, wire_value(value)), depth)
            for column, value in zip(columns, values, strict=True)
            if value is not None
        ]
        return b"".join(entries), len(entries)

    return encode


class _Source:
    """Collects the text of an encoder; runs of columns of fixed width that are always there become one `struct`."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self._steps: list[str] = []
        self._pieces: list[str] = []
        self._run: list[tuple[int, Column]] = []
        self._absent = self._texts = False

    def add(self, number: int, column: Column) -> None:
        """Add a column."""
        if column.code in ROW_FORMATS and not column.optional:
            self._run.append((number, column))
            return
        self._end_run()
        value, piece = f"v{number}", f"p{number}"
        if column.code in ROW_FORMATS:
            pieces, steps = [piece], [f"{piece} = {self._packed([(number, column)], value)}"]
        else:
            self.names[f"K{number}"] = key(column.name)
            pieces, steps = [f"K{number}", piece], [f"{piece} = other({value})"]
        if column.code == TEXT16:
            self._texts = True
            head = f"h{number}"
            pieces.insert(1, head)
            steps = [
                f"if type({value}) is str:",
                f"    {piece} = {value}.encode()",
                f"    {head} = SHORT[len({piece})]",
                "else:",
                f"    {head} = b''",
                f"    {steps[0]}",
            ]
        if column.optional:
            self._absent = True
            steps.append(f"{piece} = {' + '.join(pieces)}")
            pieces = [piece]
            absent = [f"if {value} is None:", f"    {piece} = b''", "    count -= 1", "else:"]
            steps = [*absent, *(f"    {line}" for line in steps)]
        self._steps += [f"{value} = values[{number}]", *steps]
        self._pieces += pieces

    def _end_run(self) -> None:
        run, self._run = self._run, []
        if not run:
            return
        first, end = run[0][0], run[-1][0] + 1
        if len(run) < _MANY:
            self._pieces.append(self._packed(run, *(f"values[{number}]" for number, _ in run)))
            return
        pack, keys = self._layout(run)
        self.names[f"L{first}"] = [item for raw in keys for item in (raw, None)]
        self._steps += [f"a{first} = L{first}.copy()", f"a{first}[1::2] = values[{first}:{end}]"]
        for place, (_, column) in enumerate(run):
            if column.code == UUID16:
                value = f"a{first}[{2 * place + 1}]"
                self._steps.append(f"{value} = {value}.bytes")
        self._pieces.append(f"{pack}(*a{first})")

    def _packed(self, run: list[tuple[int, Column]], *values: str) -> str:
        pack, keys = self._layout(run)
        arguments = []
        for (number, column), raw, value in zip(run, keys, values, strict=True):
            self.names[f"K{number}"] = raw
            arguments.append(f"K{number}, {value}{'.bytes' if column.code == UUID16 else ''}")
        return f"{pack}({', '.join(arguments)})"

    def _layout(self, run: list[tuple[int, Column]]) -> tuple[str, list[bytes]]:
        """The name of a run's `pack`, and the keys with type codes that it takes before each value."""
        keys = [key(column.name) + bytes((column.code,)) for _, column in run]
        formats = (f"{len(raw)}s{ROW_FORMATS[column.code]}" for raw, (_, column) in zip(keys, run, strict=True))
        name = f"pack{run[0][0]}"
        self.names[name] = struct.Struct(">" + "".join(formats)).pack
        return name, keys

    def text(self, count: int) -> str:
        """The whole function."""
        self._end_run()
        pieces = self._pieces
        result = pieces[0] if len(pieces) == 1 else f"b''.join(({', '.join(pieces)}))" if pieces else "b''"
        body = [*([f"count = {count}"] if self._absent else []), *self._steps]
        body.append(f"return {result}, {'count' if self._absent else count}")
        lines = ["def encode(values):", "    try:", *(f"        {line}" for line in body)]
        if self._texts:
            # Text that is not short, or holds lone surrogates.
            lines += ["    except (IndexError, UnicodeEncodeError):", "        return general(values)"]
        lines += ["    except (StructError, OverflowError) as error:"]
        lines += ["        raise EncodeError(f'a number is out of the range of its column: {error}') from None"]
        return "\n".join(lines) + "\n"


def value_encoder(depth: int) -> Callable[[object], bytes]:
    """Encodes references, maps and lists at one depth; quick for small maps of texts and numbers, and for object ids.

    It remembers the keys of these maps.
    """

    def general(value: object) -> bytes:
        return value_bytes(wire_value(value), depth)

    if depth + 2 > MAX_DEPTH:
        return general
    keys: dict[object, bytes] = {}
    short, int64, head, heads = _SHORT_TEXT, _INT64, _MAP_HEAD, _short_heads()

    def encode(value: object) -> bytes:
        if type(value) is ObjectId:
            value = object_id_to_map(value)
        if type(value) is not dict or (count := len(value)) > _SMALL:
            return general(value)
        entries = b""
        try:
            for name, item in value.items():
                kind = type(item)
                if kind is str:
                    raw = item.encode()
                    entries += keys[name] + short[len(raw)] + raw
                elif kind is int:
                    entries += keys[name] + int64(INT64, item)
                elif kind is bool:
                    entries += keys[name] + (_TRUE if item else _FALSE)
                else:
                    entries += keys[name] + value_bytes(wire_value(item), depth + 1)
        except KeyError:
            return encode(value) if _learn(keys, value) else general(value)
        except (struct.error, IndexError, UnicodeEncodeError):  # a large number, long text, or text that is no Unicode
            return general(value)
        size = len(entries)
        return (heads[count][size] if size < _SHORT_MAP else head(MAP, size + 4, count)) + entries

    return encode


def _learn(keys: dict[object, bytes], value: Mapping[object, object]) -> bool:
    """Remember the keys of a small map as they are written; whether there was a new one, and all are text."""
    new = [name for name in value if name not in keys]
    if not new or any(type(name) is not str for name in new):
        return False
    if len(keys) + len(new) > MAX_KEYS:
        keys.clear()
        new = list(value)
    keys.update((name, key(str(name))) for name in new)
    return True


@functools.cache
def _short_heads() -> list[list[bytes]]:
    """Heads of small maps, by number of entries and their size."""
    return [[_MAP_HEAD(MAP, size + 4, count) for size in range(_SHORT_MAP)] for count in range(_SMALL + 1)]


def value_bytes(value: object, depth: int = 0) -> bytes:
    """Any value as the general encoder writes it, type code included; `depth` as in `entry_encoder`."""
    out = bytearray()
    encode_value_into(out, value, depth)
    return bytes(out)
