"""The columns that a table of objects can have: values of a class, rates of its counters, what all objects have; and
those of queues and of what forwards messages by default: is it in order, what waits, how much flows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from qmf.console.aio import RemoteObject
from qmf.schema import TYPES, ClassSchema
from qmf.views.broker_fields import (
    FEDERATION_PACKAGE,
    FORWARDING_PACKAGE,
    QUEUE_COMPUTED,
    QUEUE_LINK,
    RELAY,
    ROUTE,
    ComputedField,
    is_queue,
)
from qmf.views.columns import important_statistics
from qmf.views.fields import COMMON_FIELDS, ObjectField, fields_of, main_entry
from qmf.views.objects import ObjectView, field_value
from qmf.views.text import clean
from qmf.views.units import heading_unit, plural_unit
from qmf.web.pages.views.page_texts import object_title

#: What ends the name of a column with the growth of a counter per second.
RATE = ".rate"


@attrs.frozen
class PageColumn:
    """A column of a table of objects.

    Attributes:
        field: the value; of a rate its counter.
        read: reads the value of an object.
        title: its heading.
        rate: it is the growth per second of the counter of this name; empty if it is not.
        marks: the CSS classes of cells with these texts.
        desc: its description, or empty.
        name: wire name of the value, ``name.rate``, or one of `COMMON_FIELDS`.
    """

    field: ObjectField
    read: Callable[[ObjectView], object]
    title: str = attrs.field()
    rate: str = ""
    marks: Mapping[str, str] = attrs.field(factory=dict)
    desc: str = attrs.field()
    name: str = attrs.field()

    @title.default
    def _own_title(self) -> str:
        return clean(self.field.name)

    @desc.default
    def _own_desc(self) -> str:
        return clean(self.field.desc)

    @name.default
    def _own_name(self) -> str:
        return self.field.name

    @property
    def is_number(self) -> bool:
        """True if its values are numbers."""
        return bool(self.rate) or self.field.is_number or self.field.is_time

    @property
    def unit_text(self) -> str:
        """The unit for its heading; empty if the cells have it."""
        return "" if self.rate or self.field.is_time else heading_unit(self.field.unit)


def rate_column(field: ObjectField, title: str, desc: str, name: str = "") -> PageColumn:
    """The column of the growth per second of a counter; `name` is what its name begins with, that of the counter."""
    return PageColumn(field, lambda _: None, title, field.name, desc=desc, name=(name or field.name) + RATE)


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
    """The columns to show if nothing was chosen: the object, the values that matter, its agent if there are several."""
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


#: States that want somebody's attention, with the CSS class of their cells.
_QUEUE_MARKS = {"flow stopped": "warn", "no consumer": "notice"}


def queue_columns(schemas: Sequence[ClassSchema]) -> list[PageColumn]:
    """The columns that are shown of queues if nothing was chosen, besides the name; empty for other classes."""
    if not any(map(is_queue, schemas)):
        return []
    return [
        *map(_computed_column, QUEUE_COMPUTED),
        _rate_of("in", "msgTotalEnqueues", "Messages put on the queue per second"),
        _rate_of("out", "msgTotalDequeues", "Messages removed from the queue per second, for any reason"),
    ]


def _computed_column(item: ComputedField) -> PageColumn:
    return PageColumn(item.field, lambda obj: item.read(obj.values), marks=_QUEUE_MARKS)


def _rate_of(title: str, counter: str, desc: str) -> PageColumn:
    return rate_column(ObjectField(counter, TYPES["uint64"], "message"), f"{title}/s", desc, title)


#: States that want somebody's attention, with the CSS class of their cells.
_ROUTE_MARKS = {"Waiting": "warn", "Failed": "warn", "Connecting": "notice", "Paused": "notice"}
#: By package and class.
_ROUTE_COLUMNS: Mapping[tuple[str, str], Sequence[str]] = {
    (FEDERATION_PACKAGE, ROUTE): (
        *("place", "state", "backlog", "behind", f"transfers{RATE}", "credit", "lastError", "since"),
    ),
    (FORWARDING_PACKAGE, RELAY): (
        *("state", "waiting", "forwarded", f"forwarded{RATE}", "retried", "deadLettered", "lastError", "since"),
    ),
    (FORWARDING_PACKAGE, QUEUE_LINK): (
        *("source", "target", "mode", "state", "passed", f"passed{RATE}", "lastError", "since"),
    ),
}


def route_columns(schemas: Sequence[ClassSchema], columns: Mapping[str, PageColumn]) -> list[PageColumn]:
    """The columns that are shown of routes, relays and links between queues if nothing was chosen, besides the name;
    empty for other classes.

    Args:
        columns: those that it has, by name.
    """
    wanted = dict.fromkeys(
        name for item in schemas for name in _ROUTE_COLUMNS.get((item.package, item.name.lower()), ())
    )
    found = [columns[name] for name in wanted if name in columns]
    return [attrs.evolve(item, marks=_ROUTE_MARKS) if item.name == "state" else item for item in found]
