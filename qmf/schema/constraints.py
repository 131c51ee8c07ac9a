"""Checks of values against the range of a type and the bounds of a schema."""

from __future__ import annotations

import math
from collections.abc import Mapping
from uuid import UUID

from qmf.errors import ConstraintError
from qmf.schema.types import QmfType

#: Largest finite number of 32 bits, as a double.
_FLOAT32_MAX = float.fromhex("0x1.fffffep+127")


def zero_value(type: QmfType) -> object:
    """The value of a property or statistic that is not optional before it is set; None for `objId`."""
    if type.is_string:
        return ""
    if type.is_integer:
        return 0
    match type.name:
        case "float" | "double":
            return 0.0
        case "bool":
            return False
        case "uuid":
            return UUID(int=0)
        case "map":
            return {}
        case "list":
            return []
    return None


def check_value(
    type: QmfType,
    value: object,
    *,
    where: str,
    minimum: int | float | None = None,
    maximum: int | float | None = None,
    max_len: int | None = None,
) -> object:
    """Check one value against its type and bounds.

    Args:
        type: its schema type; counters, hilo and mma types are checked as the type of their wire values.
        value: the value. Values of `objId` are not checked.
        where: name of the checked field in the error, e.g. ``filesystem.threshold``.
        minimum, maximum: bounds from the schema, inclusive, or None. Not applied to NaN.
        max_len: longest UTF-8 encoding in bytes from the schema, or None.

    Returns:
        `value`; for `float` and `double` it is a float.

    Raises:
        ConstraintError: wrong Python type (a bool is not a number, bytes are not a string), outside the type's range or
            the bounds, or too long.
    """
    reason, result = _check_type(type, value)
    if reason is None:
        if isinstance(result, str):
            reason = _check_length(type, result, max_len)
        elif type.is_integer or isinstance(result, float):
            reason = _check_bounds(result, minimum, maximum)
    if reason is not None:
        raise ConstraintError(where, type.name, value, reason)
    return result


def _check_type(type: QmfType, value: object) -> tuple[str | None, object]:
    """The reason why `value` is not of `type`, or None; and the value to use."""
    if type.is_integer:
        return _check_integer(type, value), value
    if type.name in ("float", "double"):
        return _check_float(type, value)
    if type.name == "objId":
        return None, value
    kind, kind_name = _KINDS[type.name]
    if not isinstance(value, kind):
        return f"must be {kind_name}", value
    if isinstance(value, Mapping) and not all(isinstance(key, str) for key in value):
        return "must have strings as keys", value
    return None, value


def _check_integer(type: QmfType, value: object) -> str | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return "must be a whole number"
    assert type.minimum is not None
    assert type.maximum is not None
    if not type.minimum <= value <= type.maximum:
        return f"must be {type.minimum} to {type.maximum}"
    return None


def _check_float(type: QmfType, value: object) -> tuple[str | None, object]:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return "must be a number", value
    try:
        result = float(value)
    except OverflowError:
        return "is too large", value
    if type.name == "float" and math.isfinite(result) and abs(result) > _FLOAT32_MAX:
        return "is too large for 32 bits", value
    return None, result


def _check_length(type: QmfType, value: str, max_len: int | None) -> str | None:
    try:
        # Surrogate escapes keep the bytes of text that a peer sent as invalid UTF-8.
        length = len(value.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return "must be text that UTF-8 can encode"
    assert type.max_bytes is not None
    limit = type.max_bytes if max_len is None else min(max_len, type.max_bytes)
    if length > limit:
        return f"must be at most {limit} bytes long"
    return None


def _check_bounds(value: object, minimum: int | float | None, maximum: int | float | None) -> str | None:
    assert isinstance(value, int | float)
    too_small = minimum is not None and value < minimum
    too_large = maximum is not None and value > maximum
    if not too_small and not too_large:
        return None
    if minimum is None:
        return f"must be at most {maximum}"
    if maximum is None:
        return f"must be at least {minimum}"
    return f"must be {minimum} to {maximum}"


_KINDS: dict[str, tuple[type[object] | tuple[type[object], ...], str]] = {
    "bool": (bool, "True or False"),
    "sstr": (str, "a string"),
    "lstr": (str, "a string"),
    "uuid": (UUID, "a UUID"),
    "map": (Mapping, "a mapping"),
    "list": ((list, tuple), "a list"),
}
