"""Values of a schema as Python source, to be laid out by the formatter."""

from __future__ import annotations

import enum
import json
import math
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from uuid import UUID

import attrs

from qmf.schema import QmfType

#: A longer default would blow up a signature.
_MAX_DEFAULT = 40

#: Columns of a piece of a long string: in a line of 120, the deepest indentation leaves as many.
_MAX_STRING = 90


def expression(value: object) -> str:
    """The source of a value: a default, or anything in a schema."""
    match value:
        case str():
            return string(value)
        case enum.Enum():
            return f"{type(value).__name__}.{value.name}"
        case None | bool() | int():
            return repr(value)
        case float():
            return repr(value) if math.isfinite(value) else f'float("{value}")'
        case UUID():
            return f'UUID("{value}")'
        case QmfType():
            return f'TYPES["{value.name}"]'
        case Mapping() | list():
            # As JSON: lines of nested displays could get too long, a string can be cut anywhere.
            kind = "list" if isinstance(value, list) else "map"
            return f'parse_value(TYPES["{kind}"], {string(json.dumps(value))})' if value else repr(value)
        case tuple():
            return sequence(map(expression, value))
    return call(value)


def call(value: Any, **replaced: str) -> str:
    """The call that makes an instance of an attrs class; arguments that equal their defaults are left out.

    Args:
        value: the instance.
        replaced: source of arguments, by name, that takes the place of that of their values.
    """
    arguments = {
        field.name: expression(item)
        for field in attrs.fields(type(value))
        if (item := getattr(value, field.name)) != field.default
    }
    named = ", ".join(f"{name}={replaced.get(name, source)}" for name, source in arguments.items())
    return f"{type(value).__name__}({named})"


def sequence(items: Iterable[str]) -> str:
    """A tuple of expressions. By its last comma the formatter gives each item a line."""
    return f"({''.join(f'{item}, ' for item in items)})"


def string(text: str) -> str:
    """A string literal; a long string is cut into several, after spaces where possible."""
    literals = [repr(piece) for piece in _pieces(text)]
    return literals[0] if len(literals) == 1 else f"({' '.join(literals)})"


def is_short(value: object) -> bool:
    """True for a default that can stand in a signature: immutable, and at most 40 characters long."""
    match value:
        case bool() | int():
            return True
        case float():
            return math.isfinite(value)
        case str():
            return len(repr(value)) <= _MAX_DEFAULT
    return False


def _pieces(text: str) -> Iterator[str]:
    while _columns(text) > _MAX_STRING:
        longest = next(size for size in range(_MAX_STRING, 0, -1) if _columns(text[:size]) <= _MAX_STRING)
        size = text.rfind(" ", 0, longest) + 1 or longest
        yield text[:size]
        text = text[size:]
    yield text


def _columns(text: str) -> int:
    """Columns that a string literal takes at most: wide characters take two."""
    literal = repr(text)
    return len(literal) + sum(unicodedata.east_asian_width(char) in "WF" for char in literal if not char.isascii())
