"""Shelves: objects with a value of every kind of type, as mappings; some lack some values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qmf.errors import NotFoundError
from qmf.schema import TYPES
from qmf.views.conditions import Field, ObjectFilter, compile_filter, parse_condition

Shelf = Mapping[str, object]

#: 2024-05-01 12:00:00 UTC, in nanoseconds.
NOON = 1_714_564_800_000_000_000

TYPES_OF = {
    "name": "sstr",
    "label": "lstr",
    "open": "bool",
    "sold": "uint32",
    "limit": "int64",
    "price": "double",
    "load": "uint8",
    "built": "absTime",
    "age": "deltaTime",
    "waiting": "mma32",
    "storeRef": "objId",
    "options": "map",
    "anything": None,
}
_UNITS = {"load": "percent"}


def _field(name: str, kind: str | None) -> Field:
    def read(shelf: Shelf) -> object:
        return shelf.get(name)

    local = kind in (None, "objId", "map")
    return Field(
        name=name,
        read=read,
        type=None if kind is None else TYPES[kind],
        unit=_UNITS.get(name),
        wire_name="" if local else name,
    )


FIELDS = {name.lower(): _field(name, kind) for name, kind in TYPES_OF.items()}


def find(name: str) -> Field:
    """The field of a name."""
    found = FIELDS.get(name.lower())
    if found is None:
        raise NotFoundError("value of shelf", name, list(TYPES_OF))
    return found


def search_text(shelf: Shelf) -> str:
    """The name and the label."""
    return f"{shelf.get('name')}\n{shelf.get('label', '')}"


def compiled(text: str) -> ObjectFilter:
    """The filter for a condition on shelves."""
    return compile_filter(parse_condition(text), find, search_text)


def passing(text: str, shelves: Sequence[Shelf]) -> list[Shelf]:
    """The shelves that pass a condition."""
    test = compiled(text).test
    return [item for item in shelves if test is None or test(item)]
