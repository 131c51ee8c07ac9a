"""The columns that a table of objects can have: values of a class, rates of its counters, what all objects have."""

from __future__ import annotations

from collections.abc import Sequence

from qmf.console.aio import RemoteObject
from qmf.schema import ClassSchema
from qmf.views.columns import important_statistics
from qmf.views.fields import COMMON_FIELDS, ObjectField, fields_of, main_entry
from qmf.views.objects import field_value
from qmf.views.text import clean
from qmf.views.units import plural_unit
from qmf.web.pages.views.page_texts import object_title
from qmf.web.pages.views.queue_columns import queue_columns
from qmf.web.pages.views.route_columns import route_columns
from qmf.web.pages.views.value_columns import RATE, PageColumn, rate_column

#: Statistics that are shown if nothing was chosen.
SHOWN = 6
#: Properties that are shown if nothing was chosen, and a class has few statistics.
SHOWN_PROPERTIES = 4


def _column(field: ObjectField, title: str = "") -> PageColumn:
    return PageColumn(field, lambda obj: field_value(obj, field), title or clean(field.name))


def columns_of(schemas: Sequence[ClassSchema]) -> dict[str, PageColumn]:
    """Every column of a class by its name: the object, its properties, its statistics with rates, then the rest."""
    found = {"index": PageColumn(COMMON_FIELDS["index"], object_title, "Object")}
    for field in fields_of(*schemas).values():
        found.setdefault(field.name, _column(field))
        if field.counter:
            unit = f", in {plural_unit(field.unit)}" if field.unit else ""
            column = rate_column(field, f"{clean(field.name)}/s", f"Growth per second of {clean(field.name)}{unit}")
            found.setdefault(column.name, column)
    for column in queue_columns(schemas):
        found.setdefault(column.name, column)
    found |= {column.name: column for column in route_columns(schemas, found)}
    for name in ("agent", "updated", "created"):
        found.setdefault(name, _column(COMMON_FIELDS[name], name.capitalize()))
    return found


def default_columns(
    columns: dict[str, PageColumn], schemas: Sequence[ClassSchema], objects: Sequence[RemoteObject]
) -> list[PageColumn]:
    """The columns to show if nothing was chosen: the object, the values that matter, its agent if there are several.

    Args:
        columns: all columns of the class.
        schemas: its versions.
        objects: some of its objects.
    """
    chosen = ["index", *(column.name for column in (*queue_columns(schemas), *route_columns(schemas, columns)))]
    if len(chosen) == 1:
        chosen += _important(columns, schemas, objects)
    if len({obj.agent for obj in objects}) > 1:
        chosen.append("agent")
    return [columns[name] for name in dict.fromkeys(chosen) if name in columns]


def _important(
    columns: dict[str, PageColumn], schemas: Sequence[ClassSchema], objects: Sequence[RemoteObject]
) -> list[str]:
    """The names of the values that tell the objects of a class apart."""
    chosen: list[str] = []
    important = important_statistics(schemas, (obj.data.values for obj in objects), SHOWN)
    statistics = {item.name: item for schema in schemas for item in schema.statistics}
    if len(important) < SHOWN:
        properties = {item.name: item for schema in reversed(schemas) for item in schema.properties}
        plain = [*(name for name, item in properties.items() if not item.index), "updated", "created"]
        chosen += plain[: max(1, SHOWN_PROPERTIES - len(important) // 2)]
    for name in important:
        chosen.append(main_entry(statistics[name]))
        if name + RATE in columns:
            chosen.append(name + RATE)
    return chosen


def chosen_columns(columns: dict[str, PageColumn], names: Sequence[str]) -> list[PageColumn]:
    """The columns with these names, those that don't exist left out; the object always comes first."""
    return [columns[name] for name in dict.fromkeys(["index", *names]) if name in columns]
