"""Which values of a class are shown if a line names none: those that the user chose, else those that matter."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from qmf.schema import ClassSchema, Statistic, Style
from qmf_shell.objects.fields import fields_of
from qmf_shell.session.backend import ClassName, ObjectRecord
from qmf_shell.session.context import Context

#: Values of a class that are shown by default, if there is room.
SHOWN = 8
#: Objects that are looked at to find out which values differ.
_EXAMINED = 500
#: The rank of statistics that are zero; these are shown only if there are fewer others than so many.
_ZERO = 2
_ENOUGH = 4


def remembered_columns(context: Context, name: ClassName, schemas: Sequence[ClassSchema]) -> list[str]:
    """The columns that the user chose for a class, except those that its schema no longer has; empty: none."""
    known = {"index", "agent", "broker", "created", "updated", "all", "*"}
    for schema in schemas:
        for field in fields_of(schema).values():
            known |= {field.name.lower(), field.element.lower()}
    return [item for item in context.columns.names(name) if item.lower() in known]


def important_statistics(
    schemas: Sequence[ClassSchema], objects: Sequence[ObjectRecord], most: int = SHOWN
) -> list[str]:
    """The statistics of a class that matter: those that differ between its objects, then those that are not zero.

    If these are few, others follow. Each group is in the order of the schema.

    Args:
        schemas: versions of the class.
        objects: some of its objects; without any, the order of the schema decides.
        most: how many at most.
    """
    statistics = {item.name: item for schema in reversed(schemas) for item in schema.statistics}
    order = list(dict.fromkeys(item.name for schema in schemas for item in schema.statistics))
    examined = list(islice(objects, _EXAMINED))
    ranks = {name: _rank(statistics[name], examined) for name in order}
    chosen = sorted(order, key=lambda name: ranks[name])[:most]
    return [name for at, name in enumerate(chosen) if ranks[name] < _ZERO or at < _ENOUGH]


def _rank(item: Statistic, objects: Sequence[ObjectRecord]) -> int:
    entry = item.entries[-1 if item.type.style is Style.MMA else 0].name
    values = {value for one in objects if isinstance(value := one.values.get(entry), int | float)}
    return 0 if len(values) > 1 else 1 if any(values) or not objects else _ZERO


def compound_statistics(schemas: Sequence[ClassSchema]) -> list[str]:
    """The statistics of a class with several values, such as a high and a low one, in the order of the schema."""
    found = (item for schema in schemas for item in schema.statistics if item.type.style in (Style.HILO, Style.MMA))
    return list(dict.fromkeys(item.name for item in found))


def default_columns(
    context: Context, name: ClassName, schemas: Sequence[ClassSchema], objects: Sequence[ObjectRecord]
) -> list[str]:
    """The values of a class to show by default: the user's choice, else the statistics that matter."""
    return remembered_columns(context, name, schemas) or important_statistics(schemas, objects)
