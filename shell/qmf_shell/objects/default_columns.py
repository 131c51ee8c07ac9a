"""Which values of a class are shown if a line names none: those that the user chose, else those that matter."""

from __future__ import annotations

from collections.abc import Sequence

from qmf.schema import ClassSchema, Style
from qmf.views.columns import important_statistics
from qmf.views.fields import fields_of
from qmf.views.objects import ObjectView
from qmf_shell.session.backend import ClassName
from qmf_shell.session.context import Context


def remembered_columns(context: Context, name: ClassName, schemas: Sequence[ClassSchema]) -> list[str]:
    """The columns that the user chose for a class, except those that its schema no longer has; empty: none."""
    known = {"index", "agent", "broker", "created", "updated", "all", "*"}
    for field in fields_of(*schemas).values():
        known |= {field.name.lower(), field.element.lower()}
    return [item for item in context.columns.names(name) if item.lower() in known]


def compound_statistics(schemas: Sequence[ClassSchema]) -> list[str]:
    """The statistics of a class with several values, such as a high and a low one, in the order of the schema."""
    found = (item for schema in schemas for item in schema.statistics if item.type.style in (Style.HILO, Style.MMA))
    return list(dict.fromkeys(item.name for item in found))


def default_columns(
    context: Context, name: ClassName, schemas: Sequence[ClassSchema], objects: Sequence[ObjectView]
) -> list[str]:
    """The values of a class to show by default: the user's choice, else the statistics that matter."""
    return remembered_columns(context, name, schemas) or important_statistics(
        schemas, (item.values for item in objects)
    )
