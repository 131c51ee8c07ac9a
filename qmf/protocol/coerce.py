"""Values between programs and the wire, directed by the schema (QMF2.md 6)."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from qmf.codec.types import wrap_value
from qmf.errors import ProtocolError
from qmf.protocol.fields import as_uuid, mapping, wrong
from qmf.protocol.maps import object_id_from_map
from qmf.protocol.values import ObjectId
from qmf.schema.constraints import check_value
from qmf.schema.types import TYPES, QmfType, Style

_FLOAT32 = struct.Struct("f")
_SMALLEST_NORMAL = 2.0**-126
#: From here on, texts of whole numbers have an exponent.
_FIRST_EXPONENT = 1e16

_INTEGERS = frozenset(item.base for item in TYPES.values() if item.is_integer)


def from_wire(type: QmfType, value: object, *, exact: bool = False) -> object:
    """A received value as the Python type that its schema promises.

    Lenient where peers differ: any integer width, whole floats for integers, integers for floats, 0 and 1 for booleans,
    text or 16 bytes for uuids. Ranges are not checked: a peer's schema is often coarser than its values.

    A number of type float comes as the shortest decimal that identifies it among all numbers of 32 bits: 15.3, as the
    agent wrote it, not 15.300000190734863.

    Args:
        type: schema type; of statistics, the base type counts.
        value: as decoded, with binary as text where it is UTF-8.
        exact: leave numbers of type float as they were sent, for what is compared or sent again.

    Returns:
        int, float, bool, str, UUID, dict, list or `ObjectId`. None for null, and for a reference that is set but empty.
        Strings that are not UTF-8 come as str with lone surrogates (``surrogateescape``).

    Raises:
        ProtocolError: a value of another kind.
    """
    if value is None:
        return None
    base = type.base
    if base in _INTEGERS:
        return _integer(base, value)
    match base:
        case "sstr" | "lstr":
            return _text(base, value)
        case "float":
            return _float(base, value) if exact else _shortest(_float(base, value))
        case "double":
            return _float(base, value)
        case "bool":
            return _bool(value)
        case "uuid":
            return as_uuid(value, "value of type uuid")
        case "objId":
            return _object_id(value)
        case "map":
            return mapping(value, "value of type map")
    if not isinstance(value, list):
        raise _wrong(base, value)
    return value


def to_wire(type: QmfType, value: object, where: str) -> object:
    """Check a program's value and give it the encoding of its schema type.

    Args:
        type: schema type; of statistics, the base type counts.
        value: what the program set; None for an unset reference.
        where: what it is for, for the error, e.g. ``argument 'signal' of process.signal``.

    Returns:
        what `qmf.protocol.encode` takes. Object ids come back unchanged.

    Raises:
        ConstraintError: the value does not fit the type.
    """
    if value is None and type.base == "objId":
        return None
    plain = type if type.style is Style.DIRECT else TYPES[type.base]
    return wrap_value(plain, check_value(plain, value, where=where))


def _wrong(base: str, value: object) -> ProtocolError:
    return wrong(f"value of type {base}", value, f"a value of type {base}")


def _integer(base: str, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise _wrong(base, value)


def _float(base: str, value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            pass
    raise _wrong(base, value)


def _shortest(value: float) -> float:
    if value.is_integer() and abs(value) < _FIRST_EXPONENT:
        return value  # its text would have other digits, not fewer
    try:
        encoded = _FLOAT32.pack(value)
    except OverflowError:
        return value
    if _FLOAT32.unpack(encoded)[0] != value:
        return value  # the agent sent more than 32 bits; or not a number
    # Six digits of a normal number are never too many: what is not needed of them is zeros, which are not shown.
    for digits in range(6 if abs(value) >= _SMALLEST_NORMAL else 1, 9):
        found = float(f"{value:.{digits}g}")
        if _FLOAT32.pack(found) == encoded:
            return found
    return float(f"{value:.9g}")  # enough for all of them


def _text(base: str, value: object) -> str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    raise _wrong(base, value)


def _bool(value: object) -> bool:
    if isinstance(value, (bool, int)) and value in (0, 1):
        return bool(value)
    raise _wrong("bool", value)


def _object_id(value: object) -> ObjectId | None:
    if isinstance(value, ObjectId):
        return value
    if isinstance(value, Mapping) and not value:
        return None
    found = object_id_from_map(mapping(value, "value of type objId"))
    return found if found.object_name else None
