"""Which values of objects a request wants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

from fastapi import Query

from qmf.console.aio import ClassFields, RemoteObject
from qmf.errors import NotFoundError
from qmf.schema import ClassSchema

Fields = Annotated[
    str | None, Query(max_length=10_000, description="Only these values: names separated by commas; default: all")
]


def read_fields(text: str | None) -> tuple[str, ...] | None:
    """Names of values, from a list with commas; None for all."""
    names = tuple(dict.fromkeys(item.strip() for item in (text or "").split(",") if item.strip()))
    return names or None


def check_fields(objects: Iterable[RemoteObject], fields: Sequence[str]) -> None:
    """Refuse a field that none of the objects' classes has.

    Raises:
        NotFoundError: there is no such value.
    """
    if fields:
        check_names({obj.schema.key: obj.schema for obj in objects if obj.schema is not None}.values(), fields)


def check_names(schemas: Iterable[ClassSchema], fields: Sequence[str]) -> None:
    """Refuse a field that none of some classes has; without any, nothing is known.

    Raises:
        NotFoundError: there is no such value.
    """
    known = [value for schema in schemas for value in ClassFields(schema).names()]
    for field in fields:
        if known and field not in known:
            raise NotFoundError("value", field, known)


def fields_of(obj: RemoteObject, fields: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Those of the fields that the class of an object has; None for all."""
    if fields is None or obj.schema is None:
        return fields
    known = {item.name for item in obj.schema.properties}
    known |= {entry.name for item in obj.schema.statistics for entry in item.entries}
    return tuple(field for field in fields if field in known)
