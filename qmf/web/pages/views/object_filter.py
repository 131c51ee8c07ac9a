"""What the filter above a table of objects compares: its columns, and what every object has besides them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from qmf.console.aio import ObjectId, RemoteObject
from qmf.errors import NotFoundError
from qmf.schema import TYPES, ClassSchema, Style
from qmf.views.conditions import Field, Test, compile_filter, parse_condition
from qmf.views.text import clean
from qmf.web.pages.live.followed import FollowedObjects
from qmf.web.pages.views.value_columns import ValueColumn


def object_test(
    text: str,
    schemas: Sequence[ClassSchema],
    columns: Mapping[str, ValueColumn],
    objects: FollowedObjects,
    broker: str,
    search_text: Callable[[RemoteObject], str],
) -> Test | None:
    """The test for a condition on objects of a class; None if all pass.

    Args:
        text: the condition.
        schemas: the versions of the class.
        columns: what can be compared, by name.
        objects: measure the rates.
        broker: the broker's URL.
        search_text: the text of an object that words are searched for in.

    Raises:
        ConditionError: it cannot be understood.
        NotFoundError: it compares what the class does not have.
    """
    own = schemas[0].name if schemas else "object"
    known = {name.lower(): column for name, column in columns.items()}
    for item in (item for schema in schemas for item in schema.statistics if item.type.style is Style.MMA):
        known.setdefault(item.name.lower(), columns[item.entries[-1].name])  # its average

    def find(name: str) -> Field:
        column = known.get(name.lower())
        if column is not None:
            return _field(column, objects)
        everywhere = {"class": own, "broker": broker}
        if name.lower() not in everywhere:
            raise NotFoundError(f"value of {clean(own)}", clean(name), [*columns, *everywhere])
        value = everywhere[name.lower()]
        return Field(name=name.lower(), read=lambda _: value, type=TYPES["lstr"])

    return compile_filter(parse_condition(text), find, search_text).test


def _field(column: ValueColumn, objects: FollowedObjects) -> Field:
    if column.rate:
        objects.track_rate(column.rate)
        return Field(name=column.name, read=lambda obj: objects.rate(column.rate, obj.object_id), type=TYPES["double"])
    kind = column.type or TYPES["lstr"]
    common_time = column.name in ("updated", "created")

    def read(obj: RemoteObject) -> object:
        value = column.read(obj)
        # An unknown time is zero, and a reference to nothing has an empty name.
        unknown = not value.object_name if isinstance(value, ObjectId) else common_time and not value
        return None if unknown else value

    return Field(name=column.name, read=read, type=kind, unit=column.unit)
