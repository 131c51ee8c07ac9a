"""What the filter above a table of objects compares: its columns, and what every object has besides them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from qmf.console.aio import ObjectId
from qmf.errors import NotFoundError
from qmf.schema import TYPES, ClassSchema
from qmf.views.conditions import Field, Test, compile_filter, parse_condition
from qmf.views.fields import find_field
from qmf.views.objects import ObjectView
from qmf.views.text import clean
from qmf.web.pages.live.followed import LiveObjects, remote_object
from qmf.web.pages.views.page_columns import PageColumn


def object_test(
    text: str,
    schemas: Sequence[ClassSchema],
    columns: Mapping[str, PageColumn],
    objects: LiveObjects,
    broker: str,
    search_text: Callable[[ObjectView], str],
) -> Test | None:
    """The test for a condition on objects of a class; None if all pass.

    Args:
        text: the condition.
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
    everywhere = {"class": own, "broker": broker}

    def find(name: str) -> Field:
        field = find_field(schemas, name)
        column = known.get(name.lower()) or (None if field is None else columns.get(field.name))
        if column is not None:
            return _field(column, objects)
        if field is None:
            raise NotFoundError(f"value of {clean(own)}", clean(name), [*columns, *everywhere])
        value = everywhere[field.name]
        return Field(name=field.name, read=lambda _: value, type=field.type)

    return compile_filter(parse_condition(text), find, search_text).test


def _field(column: PageColumn, objects: LiveObjects) -> Field:
    if column.rate:
        objects.track_rate(column.rate)

        def rate(obj: ObjectView) -> float | None:
            return objects.rate(column.rate, remote_object(obj).object_id)

        return Field(name=column.name, read=rate, type=TYPES["double"])

    def read(obj: ObjectView) -> object:
        value = column.read(obj)
        # A reference to nothing has an empty name.
        return None if isinstance(value, ObjectId) and not value.object_name else value

    return Field(name=column.name, read=read, type=column.field.type, unit=column.field.unit)
