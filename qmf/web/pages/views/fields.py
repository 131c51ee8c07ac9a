"""The columns that a table of objects can have: values of a class, rates of its counters, what all objects have."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qmf.console.aio import ObjectId, RemoteObject
from qmf.schema import TYPES, ClassSchema, Style
from qmf.views.columns import important_statistics
from qmf.views.counters import is_counter
from qmf.views.text import clean, natural_key
from qmf.views.units import plural_unit
from qmf.web.pages.views.queue_columns import queue_columns
from qmf.web.pages.views.value_columns import RATE, ValueColumn
from qmf.web.pages.views.value_texts import object_index

#: Statistics that are shown if nothing was chosen.
SHOWN = 6
#: Properties that are shown if nothing was chosen, and a class has few statistics.
SHOWN_PROPERTIES = 4


def _value(name: str) -> Callable[[RemoteObject], object]:
    def read(obj: RemoteObject) -> object:
        if name not in obj.data.values:
            return None
        value: object = obj[name]
        return value

    return read


def columns_of(schemas: Sequence[ClassSchema]) -> dict[str, ValueColumn]:
    """Every column of a class by its name: the object, its properties, its statistics with rates, then the rest."""
    found: dict[str, ValueColumn] = {
        "index": ValueColumn("index", "Object", object_index, desc="What the object is called among those of its class")
    }
    for schema in schemas:
        for item in schema.properties:
            found.setdefault(
                item.name,
                ValueColumn(
                    item.name, clean(item.name), _value(item.name), item.type, item.unit, clean(item.desc or "")
                ),
            )
    for schema in schemas:
        for statistic in schema.statistics:
            counter = is_counter(schema.package, statistic)
            for at, entry in enumerate(statistic.entries):
                samples = statistic.type.style is Style.MMA and at == 0
                kind = TYPES["uint64"] if samples else TYPES[statistic.type.base]
                desc = clean(((statistic.desc or "") + entry.v1_suffix).strip())
                unit = "sample" if samples else statistic.unit
                found.setdefault(
                    entry.name,
                    ValueColumn(entry.name, clean(entry.name), _value(entry.name), kind, unit, desc, True, counter),
                )
            if counter:
                name = statistic.name + RATE
                found.setdefault(
                    name,
                    ValueColumn(
                        name,
                        f"{clean(statistic.name)}/s",
                        _value(statistic.name),
                        TYPES["double"],
                        statistic.unit,
                        f"Growth per second of {clean(statistic.name)}"
                        + (f", in {plural_unit(statistic.unit)}" if statistic.unit else ""),
                        True,
                        rate=statistic.name,
                    ),
                )
    for column in queue_columns(schemas):
        found.setdefault(column.name, column)
    common = (
        ValueColumn("agent", "Agent", lambda obj: obj.agent, desc="The agent that has the object"),
        ValueColumn(
            "updated",
            "Updated",
            lambda obj: obj.timestamps.update,
            TYPES["absTime"],
            desc="When its agent sent what is shown",
        ),
        ValueColumn(
            "created", "Created", lambda obj: obj.timestamps.create, TYPES["absTime"], desc="When it was created"
        ),
    )
    for column in common:
        found.setdefault(column.name, column)
    return found


def default_columns(
    columns: dict[str, ValueColumn], schemas: Sequence[ClassSchema], objects: Sequence[RemoteObject]
) -> list[ValueColumn]:
    """The columns to show if nothing was chosen: the object, the values that matter, its agent if there are several.

    Args:
        columns: all columns of the class.
        schemas: its versions.
        objects: some of its objects.
    """
    chosen = ["index", *(column.name for column in queue_columns(schemas))]
    if len(chosen) == 1:
        chosen += _important(columns, schemas, objects)
    if len({obj.agent for obj in objects}) > 1:
        chosen.append("agent")
    return [columns[name] for name in dict.fromkeys(chosen) if name in columns]


def _important(
    columns: dict[str, ValueColumn], schemas: Sequence[ClassSchema], objects: Sequence[RemoteObject]
) -> list[str]:
    """The names of the values that tell the objects of a class apart."""
    chosen: list[str] = []
    important = important_statistics(schemas, (obj.data.values for obj in objects), SHOWN)
    styles = {item.name: item for schema in schemas for item in schema.statistics}
    if len(important) < SHOWN:
        key = {item.name for schema in schemas for item in schema.properties if item.index}
        plain = [name for name, column in columns.items() if column.type and not column.statistic and name not in key]
        chosen += plain[: max(1, SHOWN_PROPERTIES - len(important) // 2)]
    for name in important:
        statistic = styles[name]
        entry = statistic.entries[-1 if statistic.type.style is Style.MMA else 0].name
        chosen.append(entry)
        if name + RATE in columns:
            chosen.append(name + RATE)
    return chosen


def chosen_columns(columns: dict[str, ValueColumn], names: Sequence[str]) -> list[ValueColumn]:
    """The columns with these names, those that don't exist left out; the object always comes first."""
    return [columns[name] for name in dict.fromkeys(["index", *names]) if name in columns]


def sort_value(value: object) -> tuple[int, object]:
    """A key that orders values of any type, texts in natural order; missing ones come first."""
    if value is None:
        return 0, 0
    if isinstance(value, bool):
        return 1, int(value)
    if isinstance(value, int | float):
        return 1, value if value == value else float("-inf")
    return 2, natural_key((value.object_name if isinstance(value, ObjectId) else str(value)).lower())
