"""Unmanaged objects, which belong to no agent: what `Session.makeObject` returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qmf.console.aio import ClassFields, RemoteObject
from qmf.console.proxies import Object
from qmf.console.schema_views import SchemaClass
from qmf.errors import NotFoundError
from qmf.protocol import ObjectData, ObjectId
from qmf.schema import TYPES, ClassSchema, check_value, zero_value


def make_unmanaged(view: SchemaClass, given: Mapping[str, Any]) -> Object:
    """An object with the given values; all others are zero.

    Args:
        view: its class.
        given: values of properties by name.

    Raises:
        NotFoundError: it is an event, or the class has no such property.
        ConstraintError: a value doesn't fit its type.
    """
    schema = view.core
    if not isinstance(schema, ClassSchema):
        raise NotFoundError("class", repr(view.getKey()))
    known = {item.name: item for item in schema.properties}
    values: dict[str, object] = {item.name: zero_value(item.type) for item in schema.properties if not item.optional}
    for statistic in schema.statistics:
        values.update((entry.name, zero_value(TYPES[statistic.type.base])) for entry in statistic.entries)
    for name, value in given.items():
        if name not in known:
            raise NotFoundError(f"property of {schema.key.name}", name, known)
        item = known[name]
        values[name] = check_value(
            item.type,
            value,
            where=f"{schema.key.name}.{name}",
            minimum=item.minimum,
            maximum=item.maximum,
            max_len=item.max_len,
        )
    data = ObjectData(values=values, class_key=view.getKey().core)
    return Object(RemoteObject(data, ObjectId(""), "", ClassFields(schema), None), view, None)
