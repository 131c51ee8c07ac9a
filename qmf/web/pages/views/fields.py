"""The columns that a table of objects can have: values of a class, rates of its counters, what all objects have."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from qmf.console.aio import ObjectId, RemoteObject
from qmf.presenting.columns import important_statistics
from qmf.presenting.counters import is_counter
from qmf.presenting.text import clean, natural_key
from qmf.presenting.units import heading_unit, plural_unit
from qmf.schema import TYPES, ClassSchema, QmfType, Style
from qmf.web.pages.views.value_texts import object_index

#: What ends the name of a column with the growth of a counter per second.
RATE = ".rate"
#: Statistics that are shown if nothing was chosen.
SHOWN = 6
#: Properties that are shown if nothing was chosen, and a class has few statistics.
SHOWN_PROPERTIES = 4


@attrs.frozen
class ValueColumn:
    """A column of a table of objects.

    Attributes:
        name: wire name of the value, ``name.rate``, or one of ``index``, ``agent``, ``updated`` and ``created``.
        title: its heading.
        read: reads the value of an object; of a rate it reads the counter.
        type: its type; None for what is no value of the class.
        unit: as in the schema, or None.
        desc: its description, or empty.
        statistic: it belongs to a statistic.
        counter: it only grows.
        rate: it is the growth per second of the counter of this name; empty if it is not.
    """

    name: str
    title: str
    read: Callable[[RemoteObject], object]
    type: QmfType | None = None
    unit: str | None = None
    desc: str = ""
    statistic: bool = False
    counter: bool = False
    rate: str = ""

    @property
    def is_number(self) -> bool:
        """True if its values are numbers."""
        return bool(self.rate) or (
            self.type is not None and (self.type.is_integer or self.type.name in ("float", "double"))
        )

    @property
    def is_duration(self) -> bool:
        """True if its values are nanoseconds."""
        return self.type is not None and (self.type.base == "deltaTime" or self.unit == "nanosecond")

    @property
    def is_reference(self) -> bool:
        """True if its values are references to objects."""
        return self.type is not None and self.type.name == "objId"

    @property
    def unit_text(self) -> str:
        """The unit for its heading; empty if the cells have it."""
        if self.rate:
            return ""
        if self.type is not None and self.type.base in ("absTime", "deltaTime"):
            return ""
        return heading_unit(self.unit)


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
    chosen = ["index"]
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
    if len({obj.agent for obj in objects}) > 1:
        chosen.append("agent")
    return [columns[name] for name in dict.fromkeys(chosen) if name in columns]


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
