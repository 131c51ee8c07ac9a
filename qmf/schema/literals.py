"""Values as text: defaults in XML, arguments on command lines."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from uuid import UUID

from qmf.schema.types import QmfType

_INTEGER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]{1,32}|[0-9]{1,40})")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SPECIAL_FLOATS = frozenset({"inf", "+inf", "-inf", "nan"})
_BOOLS = {"true": True, "yes": True, "y": True, "1": True, "false": False, "no": False, "n": False, "0": False}


def parse_value(type: QmfType, text: str) -> object:
    """Convert `text` to a value of `type`.

    Integers are decimal or hexadecimal (``0x``); booleans are true, yes, y, 1 or false, no, n, 0 in any case; maps and
    lists are JSON; a uuid is hexadecimal digits with dashes; strings are the text itself. Ranges are not checked, see
    `check_value`.

    Raises:
        ValueError: `text` is not such a value; the message is a short reason without the text, e.g.
            ``not a whole number``.
    """
    if type.is_string:
        return text
    if type.is_integer:
        return parse_integer(text)
    if type.name in ("float", "double"):
        return parse_float(text)
    match type.name:
        case "bool":
            return _bool(text)
        case "uuid":
            return _uuid(text)
        case "map":
            return _json(text, dict, "object")
        case "list":
            return _json(text, list, "array")
    raise ValueError("an object id cannot be written as text")


def format_value(value: object) -> str:
    """The text that `parse_value` converts back to `value`.

    Raises:
        ValueError: `value` is an object id, or a map or list that JSON cannot express.
    """
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | UUID():
            return str(value)
        case float():
            return repr(value).removesuffix(".0")
        case Mapping() | Sequence() if not isinstance(value, bytes):
            try:
                return json.dumps(value, allow_nan=False)
            except (TypeError, RecursionError):
                raise ValueError("has a value that JSON cannot express") from None
    raise ValueError(f"a {type(value).__name__} cannot be written as text")


def parse_integer(text: str) -> int:
    """Convert a decimal or hexadecimal whole number.

    Raises:
        ValueError: it is not a whole number.
    """
    if not _INTEGER.fullmatch(text):
        raise ValueError("not a whole number")
    return int(text, 16 if "x" in text.lower() else 10)


def parse_float(text: str) -> float:
    """Convert a decimal number, or ``inf``, ``-inf`` or ``nan``.

    Raises:
        ValueError: it is not a number, or too large for a double.
    """
    special = text.lower() in _SPECIAL_FLOATS
    if not special and not _FLOAT.fullmatch(text):
        raise ValueError("not a number")
    value = float(text)
    if math.isinf(value) and not special:
        raise ValueError("too large for a number")
    return value


def _bool(text: str) -> bool:
    try:
        return _BOOLS[text.lower()]
    except KeyError:
        raise ValueError("neither true nor false") from None


def _uuid(text: str) -> UUID:
    if not _UUID.fullmatch(text):
        raise ValueError("not a uuid")
    return UUID(text)


def _no_constant(_name: str) -> object:
    raise ValueError("JSON has neither infinity nor NaN")


def _json(text: str, kind: type[object], name: str) -> object:
    try:
        value = json.loads(text, parse_float=parse_float, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ValueError("not JSON") from None
    if not isinstance(value, kind):
        raise ValueError(f"not a JSON {name}")
    return value
