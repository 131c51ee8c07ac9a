"""Checks of values against their schema types, built once per property, statistic or argument.

A value that passes can be encoded, so that nothing fails later, in the publisher, where the program would not see it.
Maps and lists are copied, because a program may go on changing its own while another thread encodes the copy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from qmf.agent.layout.references import check_reference
from qmf.errors import ConstraintError
from qmf.protocol.values import ObjectId
from qmf.schema import Argument, Property, QmfType, Statistic, check_value

#: Returns the value to store, or raises ConstraintError.
Check = Callable[[object], object]

#: Deepest nesting of a map or list. Decoders stop at 32 levels (`qmf.codec`), of which a message itself needs up to 5;
#: half of that is more than real values have.
MAX_DEPTH = 16

#: Longest key of a map in UTF-8; its length is one byte on the wire (QMF2.md 3.3).
MAX_KEY = 255

_INT_MIN = -(1 << 63)
_INT_MAX = (1 << 64) - 1


def make_check(item: Argument | Property | Statistic, where: str, *, optional: bool = False) -> Check:
    """Build the check for the values of one property, statistic or argument.

    Args:
        item: has the type and the bounds.
        where: what the value belongs to, for errors.
        optional: None is accepted.

    Returns:
        a function that returns the value to store (ints for float types become floats, maps and lists are copies) and
        raises ConstraintError if the value does not fit.
    """
    check = _make_check(item, where)
    if not optional:
        return check
    return lambda value: None if value is None else check(value)


def _make_check(item: Argument | Property | Statistic, where: str) -> Check:
    kind = item.type

    def general(value: object) -> object:
        return check_value(kind, value, where=where, minimum=item.minimum, maximum=item.maximum, max_len=item.max_len)

    if kind.base == "objId":
        return lambda value: check_reference(value, where)
    if kind.base in ("map", "list"):
        return lambda value: checked_copy(general(value), kind, where)
    simple = simple_range(item)
    if simple is not None:
        number, least, most = simple

        def quick(value: Any) -> object:
            # The common case without a call; everything else, errors included, is left to the general check.
            return value if type(value) is number and least <= value <= most else general(value)

        return quick
    if kind.is_string:
        limit = min(kind.max_bytes or 0, item.max_len if item.max_len is not None else 1 << 16)

        def string(value: object) -> object:
            # ASCII has one byte per character; the rest has to be encoded to be measured.
            return value if type(value) is str and len(value) <= limit and value.isascii() else general(value)

        return string
    return general


def simple_range(item: Argument | Property | Statistic) -> tuple[type[Any], int | float, int | float] | None:
    """The Python type, smallest and largest value of numbers that need no further check; None if there are no such."""
    if item.type.is_integer:
        return int, *bounds(item)
    if item.type.base != "double":
        return None
    least = -math.inf if item.minimum is None else item.minimum
    most = math.inf if item.maximum is None else item.maximum
    return float, least, most


def bounds(item: Argument | Property | Statistic) -> tuple[int | float, int | float]:
    """Smallest and largest value of an integer item: the range of its type, narrowed by `min` and `max`."""
    low: int | float = item.type.minimum or 0
    high: int | float = item.type.maximum or 0
    return (
        low if item.minimum is None else max(low, item.minimum),
        high if item.maximum is None else min(high, item.maximum),
    )


def range_condition(name: str, least: int, most: int) -> str:
    """The condition, as source, that a whole number is within bounds.

    For the full range of an unsigned type one shift is enough: the bits beyond those of the type must be 0, and
    negative numbers have ones there.
    """
    bits = most.bit_length()
    return f"not {name} >> {bits}" if least == 0 and most == (1 << bits) - 1 else f"{least} <= {name} <= {most}"


def checked_copy(value: object, kind: QmfType, where: str, depth: int = 0) -> object:
    """A copy of a map, a list or an item of one, that can be encoded.

    Raises:
        ConstraintError: a part of it has no encoding: an unknown type, an integer beyond 64 bits, a key that is not a
            string or too long, or nesting deeper than `MAX_DEPTH`.
    """
    if depth > MAX_DEPTH:
        raise ConstraintError(where, kind.name, value, f"must not nest deeper than {MAX_DEPTH} levels")
    if value is None or isinstance(value, (bool, float, str, bytes, UUID, ObjectId)):
        return value
    if isinstance(value, int):
        if _INT_MIN <= value <= _INT_MAX:
            return value
        raise ConstraintError(where, kind.name, value, "must hold integers of at most 64 bits")
    if isinstance(value, Mapping):
        return {_key(key, kind, where): checked_copy(item, kind, where, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)) or (isinstance(value, Sequence) and not isinstance(value, bytearray)):
        return [checked_copy(item, kind, where, depth + 1) for item in value]
    raise ConstraintError(where, kind.name, value, f"must not hold a {type(value).__name__}")


def _key(key: object, kind: QmfType, where: str) -> str:
    if not isinstance(key, str):
        raise ConstraintError(where, kind.name, key, "must have strings as keys")
    if len(key) > MAX_KEY or len(key.encode("utf-8", "surrogateescape")) > MAX_KEY:
        raise ConstraintError(where, kind.name, key, f"must have keys of at most {MAX_KEY} bytes")
    return key
