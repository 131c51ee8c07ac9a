"""Encoding the values of one class with keys: the class gives all that is constant, so one `struct` writes it.

The result is byte for byte that of the general encoder for the map of the same values in the same order. Numbers have
no short forms in AMQP 0-10, so keys and type codes of fixed columns never move against each other.
"""

from __future__ import annotations

import functools
import itertools
import struct
from collections.abc import Callable, Sequence
from typing import Any

from qmf._compile import compile_function
from qmf.codec.amqp010 import encode_value_into
from qmf.codec.errors import EncodeError
from qmf.codec.type_codes import AMQP010, INT64, MAP, TEXT16, UUID16, number_packer
from qmf.codec.types import wrap_value
from qmf.protocol.maps import wire_text, wire_value
from qmf.protocol.objects.columns import ROW_FORMATS, Column
from qmf.protocol.values import ObjectId

#: Entries of a map, without its head, and their number.
Entries = tuple[bytes, int]

#: Encodes values in the order of the columns.
Encode = Callable[[Sequence[Any]], Entries]

#: Levels around the values of an object or event: the list of a message, the object, its values.
DEPTH = 2

#: Columns in a row from which on a list of keys is filled with values, instead of naming both one by one.
_MANY = 10

#: Entries of maps that are encoded here, one after the other, instead of by the general encoder.
_SMALL = 16

#: Keys of nested maps, and references, that are remembered as they are written.
MAX_KEYS, MAX_REFERENCES = 200, 1000

#: Type code and length of short text: most names are.
_SHORT_TEXT = tuple(bytes((TEXT16, 0, size)) for size in range(256))

_keys: dict[object, bytes] = {}

_pack_u32_pair = struct.Struct(">II").pack
_pack_map_head = struct.Struct(">BII").pack
_pack_int64 = number_packer(AMQP010[INT64])


def list_body(items: Sequence[bytes]) -> bytes:
    """A list, size field included, of values that are encoded already, type codes included."""
    values = b"".join(items)
    return _pack_u32_pair(len(values) + 4, len(items)) + values


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


def value_bytes(value: object, depth: int = 0) -> bytes:
    """Any value as the general encoder writes it, type code included.

    Args:
        value: as the encoder takes it.
        depth: levels of maps and lists around it; the outermost does not count.
    """
    out = bytearray()
    encode_value_into(out, value, depth)
    return bytes(out)


def text_bytes(value: str) -> bytes:
    """Text as a value; as `value_bytes`, and quicker for short text."""
    try:
        raw = value.encode()
        return _SHORT_TEXT[len(raw)] + raw
    except (IndexError, UnicodeEncodeError):
        return value_bytes(wire_text(value))


def nested_bytes(value: object) -> bytes:
    """A reference, map or list among the values of an object, type code included; quick for ids and small maps."""
    if type(value) is ObjectId:
        return _id_bytes(value)
    if type(value) is not dict or len(value) > _SMALL:
        return value_bytes(wire_value(value), DEPTH)
    entries, keys = b"", _keys
    try:
        for name, item in value.items():
            kind = type(item)
            if kind is str:
                raw = item.encode()
                entries += keys[name] + _SHORT_TEXT[len(raw)] + raw
            elif kind is int:
                entries += keys[name] + _pack_int64(INT64, item)
            else:
                entries += keys[name] + value_bytes(wire_value(item), DEPTH + 1)
    except KeyError:
        if any(type(name) is not str for name in value):
            return value_bytes(wire_value(value), DEPTH)
        if len(keys) > MAX_KEYS:
            keys.clear()
        keys.update((name, key(name)) for name in value)
        return nested_bytes(value)
    except (struct.error, IndexError, UnicodeEncodeError):  # a large number, long text, or text that is no Unicode
        return value_bytes(wire_value(value), DEPTH)
    return _pack_map_head(MAP, len(entries) + 4, len(value)) + entries


@functools.lru_cache(MAX_REFERENCES)
def _id_bytes(object_id: ObjectId) -> bytes:
    return value_bytes(wire_value(object_id), DEPTH)


def entry_encoder(columns: Sequence[Column], owner: str) -> Encode:
    """The function that encodes values of these columns as the entries of a map.

    Args:
        columns: in the order in which values are given and written.
        owner: whose values they are, for tracebacks.

    Returns:
        takes the values as a list or tuple: ints for integer columns, floats, bools, UUIDs; text; for references, maps
        and lists whatever the general encoder takes, and object ids. It raises EncodeError for what cannot be encoded,
        a number out of its width's range included.

    Raises:
        EncodeError: a column's name cannot be a key.
    """

    def general(values: Sequence[Any]) -> Entries:
        """Also takes text that is long, or holds lone surrogates."""
        entries = [
            key(column.name) + value_bytes(wrap_value(column.type, wire_value(value)), DEPTH)
            for column, value in zip(columns, values, strict=True)
            if value is not None
        ]
        return b"".join(entries), len(entries)

    names: dict[str, Any] = {"SHORT": _SHORT_TEXT, "nested": nested_bytes, "general": general}
    names |= {"EncodeError": EncodeError, "StructError": struct.error}
    lines, pieces = [f"count = {len(columns)}"], []
    for fixed, group in itertools.groupby(enumerate(columns), lambda item: _is_fixed(item[1]) and not item[1].optional):
        if fixed:
            pieces.append(_run_source(list(group), lines, names))
        else:
            for number, column in group:
                pieces += _value_source(number, column, lines, names)
    whole = pieces[0] if len(pieces) == 1 else f"b''.join(({''.join(f'{piece}, ' for piece in pieces)}))"
    source = [
        "def encode(values):",
        "    try:",
        *(f"        {line}" for line in lines),
        f"        return {whole}, count",
        "    except (IndexError, UnicodeEncodeError):",  # text that is not short, or holds lone surrogates
        "        return general(values)",
        "    except (StructError, OverflowError) as error:",
        "        raise EncodeError(f'a number is out of the range of its column: {error}') from None",
        "",
    ]
    return compile_function("encode", "\n".join(source), names, owner)


def _is_fixed(column: Column) -> bool:
    return column.code in ROW_FORMATS


def _run_source(run: list[tuple[int, Column]], lines: list[str], names: dict[str, Any]) -> str:
    """The expression for columns of fixed width that are always there: one `struct`."""
    first, end = run[0][0], run[-1][0] + 1
    if len(run) < _MANY:
        return _pack_source(run, [f"values[{number}]" for number, _ in run], names)
    _pack_source(run, [""] * len(run), names)
    names[f"L{first}"] = [item for number, _ in run for item in (names[f"K{number}"], None)]
    lines += [f"a{first} = L{first}.copy()", f"a{first}[1::2] = values[{first}:{end}]"]
    for number, column in run:
        if column.code == UUID16:
            value = f"a{first}[{2 * (number - first) + 1}]"
            lines.append(f"{value} = {value}.bytes")
    return f"pack{first}(*a{first})"


def _pack_source(run: list[tuple[int, Column]], values: list[str], names: dict[str, Any]) -> str:
    """The call that packs keys, type codes and values of columns of fixed width."""
    layout, arguments = ">", []
    for (number, column), value in zip(run, values, strict=True):
        raw = names[f"K{number}"] = key(column.name) + bytes((column.code,))
        layout += f"{len(raw)}s{ROW_FORMATS[column.code]}"
        arguments.append(f"K{number}, {value}{'.bytes' if column.code == UUID16 else ''}")
    names[f"pack{run[0][0]}"] = struct.Struct(layout).pack
    return f"pack{run[0][0]}({', '.join(arguments)})"


def _value_source(number: int, column: Column, lines: list[str], names: dict[str, Any]) -> list[str]:
    """The expressions for one column: a text, what is nested, or a value that may be absent."""
    value, piece, head = f"v{number}", f"p{number}", f"h{number}"
    if _is_fixed(column):
        steps, pieces = [f"{piece} = {_pack_source([(number, column)], [value], names)}"], [piece]
    else:
        names[f"K{number}"] = key(column.name)
        steps, pieces = [f"{piece} = nested({value})"], [f"K{number}", piece]
    if column.code == TEXT16:
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
        absent = [f"if {value} is None:", f"    {piece} = b''", "    count -= 1", "else:"]
        steps = [*absent, *(f"    {line}" for line in (*steps, f"{piece} = {' + '.join(pieces)}"))]
        pieces = [piece]
    lines += [f"{value} = values[{number}]", *steps]
    return pieces
