"""Taking fields of known types out of received maps.

Peers differ in integer widths, in how they write strings, and in which keys they leave out (QMF2.md 3.2, 10). So: a
missing or null key gives the default, and everything else of a wrong type is a `ProtocolError` that names the key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict
from uuid import UUID

from qmf.errors import ProtocolError

#: A received map, its keys checked by `mapping`.
Map = Mapping[str, object]

_STRINGS = {str}


def wrong(key: str, value: object, wanted: str) -> ProtocolError:
    """The error for a value of a wrong type."""
    return ProtocolError(f"{key} is {_NAMES.get(type(value), type(value).__name__)}, not {wanted}")


_NAMES: dict[type, str] = {
    bool: "a boolean",
    bytes: "binary that is no UTF-8",
    dict: "a map",
    float: "a float",
    int: "an integer",
    list: "a list",
    str: "a string",
    UUID: "a uuid",
    type(None): "null",
}


def mapping(value: object, key: str) -> Map:
    """`value` as a map with strings as keys; `key` is its name in errors."""
    if not isinstance(value, dict):
        raise wrong(key, value, "a map")
    if value and set(map(type, value)) != _STRINGS:
        raise ProtocolError(f"{key} has keys that are no strings")
    return value


def sequence(value: object, key: str) -> list[object]:
    """`value` as a list; `key` is its name in errors."""
    if not isinstance(value, list):
        raise wrong(key, value, "a list")
    return value


def get_map(fields: Map, key: str) -> Map | None:
    """The map under `key`, or None."""
    value = fields.get(key)
    return None if value is None else mapping(value, key)


def get_list(fields: Map, key: str) -> Sequence[object]:
    """The list under `key`; empty where it is missing."""
    value = fields.get(key)
    return () if value is None else sequence(value, key)


def get_text(fields: Map, key: str) -> str | None:
    """The text under `key`, or None. Binary that is not UTF-8 becomes lone surrogates (``surrogateescape``)."""
    value = fields.get(key)
    if value is None or type(value) is str:
        return value
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    raise wrong(key, value, "a string")


def need_text(fields: Map, key: str) -> str:
    """The text under `key`, which must be there."""
    value = get_text(fields, key)
    if value is None:
        raise ProtocolError(f"{key} is missing")
    return value


def need_bytes(fields: Map, key: str) -> bytes:
    """The bytes under `key`, which must be there. Binary that happened to be UTF-8 was decoded (QMF2.md 3.2)."""
    value = fields.get(key)
    raw = _raw(value)
    if raw is not None:
        return raw
    raise ProtocolError(f"{key} is missing") if value is None else wrong(key, value, "binary")


def get_int(fields: Map, key: str, default: int = 0) -> int:
    """The integer under `key`, of whatever width, or `default`."""
    value = fields.get(key)
    if value is None:
        return default
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise wrong(key, value, "an integer")


def get_number(fields: Map, key: str) -> int | float | None:
    """The number under `key`, or None."""
    value = fields.get(key)
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return value
    raise wrong(key, value, "a number")


def get_flag(fields: Map, key: str) -> bool:
    """The boolean under `key`, or a number used as one; False where it is missing."""
    value = fields.get(key)
    if value is None:
        return False
    if isinstance(value, (bool, int)):
        return bool(value)
    raise wrong(key, value, "a boolean")


class ValueFields(TypedDict):
    """What the maps of properties, statistics and arguments have in common, by the names of the schema's attributes."""

    name: str
    unit: str | None
    desc: str | None
    minimum: int | float | None
    maximum: int | float | None
    max_len: int | None


def value_fields(fields: Map, prefix: str) -> ValueFields:
    """The fields of the map of a property, statistic or argument; `prefix` is what its keys begin with."""
    longest = f"{prefix}maxlen"
    return ValueFields(
        name=need_text(fields, f"{prefix}name"),
        unit=get_text(fields, f"{prefix}unit"),
        desc=get_text(fields, f"{prefix}desc"),
        minimum=get_number(fields, f"{prefix}min"),
        maximum=get_number(fields, f"{prefix}max"),
        max_len=None if fields.get(longest) is None else get_int(fields, longest),
    )


def get_texts(fields: Map, key: str) -> dict[str, str]:
    """The map of texts under `key`; empty where it is missing."""
    found = get_map(fields, key) or {}
    return {name: need_text(found, name) for name in found}


def get_uuid(fields: Map, key: str) -> UUID | None:
    """The uuid under `key`, or None; see `as_uuid`."""
    value = fields.get(key)
    return None if value is None else as_uuid(value, key)


def as_uuid(value: object, key: str) -> UUID:
    """`value` as a uuid. Peers send it as such, as 16 bytes (which may happen to be UTF-8), or as text."""
    if isinstance(value, UUID):
        return value
    raw = _raw(value)
    if raw is not None and len(raw) == 16:
        return UUID(bytes=raw)
    if isinstance(value, str):
        try:
            return UUID(value)
        except ValueError:
            pass
    raise wrong(key, value, "a uuid")


def _raw(value: object) -> bytes | None:
    """Binary, or text as the bytes that it was received as; None for anything else."""
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        return None
    try:
        return value.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return None
