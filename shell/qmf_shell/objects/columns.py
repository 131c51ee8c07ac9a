"""Fields of objects as columns of a table: their headings, the cell of each object, and which ones are shown if a line
names none: those that the user chose, else those that matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from qmf.schema import ClassSchema, Property, Statistic, Style
from qmf.views.cells import Cell, CellForm
from qmf.views.columns import important_statistics
from qmf.views.conditions import value_names
from qmf.views.fields import COMMON_FIELDS, ObjectField, fields_of
from qmf.views.objects import ObjectView, field_value
from qmf.views.text import clean
from qmf.views.value_cells import property_cell, statistic_cell, value_cell
from qmf_shell.objects.fields import find_field
from qmf_shell.parsing.selection import ParsedSelection
from qmf_shell.results.result import Role, TableColumn
from qmf_shell.session.backend import ClassName
from qmf_shell.session.context import Context

#: What the user writes for all elements of a class.
ALL_COLUMNS = ("all", "*")


@attrs.frozen
class ValueColumn:
    """A value as a column.

    Attributes:
        field: the field that sorts and names it.
        item: the property, or the statistic with all its parts; None for one part of a statistic, and for what is no
            value of the object.
    """

    field: ObjectField
    item: Property | Statistic | None = None

    @property
    def column(self) -> TableColumn:
        """The column, with brief cells."""
        return self.column_as(CellForm.BRIEF)

    def column_as(self, form: CellForm) -> TableColumn:
        """The column, with cells of this form."""
        title = self.item.name if self.item is not None else self.field.name
        if self.field.member is None and self.field.is_time:
            return TableColumn(title, Role.TIME)
        compound = isinstance(self.item, Statistic) and self.item.type.style in (Style.HILO, Style.MMA)
        if not self.field.is_number:
            brief = form is CellForm.BRIEF
            return TableColumn(clean(title), wraps=not brief, shortens=brief, key=title)
        unit = None if self.field.is_time else self.field.unit
        if compound and form is not CellForm.BRIEF:
            return TableColumn(clean(title), wraps=True, key=title, form=form, unit=unit)
        return TableColumn(clean(title), Role.NUMBER, key=title, form=form, unit=unit)

    def cell(self, context: Context, target: ObjectView, *, complete: bool = False) -> Cell:
        """The cell of an object in this column; `complete` is as in `statistic_cell`."""
        reference = context.ids.reference_cell
        if isinstance(self.item, Property):
            return property_cell(self.item, target.values, reference)
        if isinstance(self.item, Statistic):
            return statistic_cell(self.item, target.values, complete=complete, reference=reference)
        value = field_value(target, self.field)
        return value_cell(self.field.type, value, self.field.unit, measured=self.field.statistic, reference=reference)


def value_columns(schemas: Sequence[ClassSchema], wanted: Iterable[str]) -> list[ValueColumn]:
    """The columns with the names `wanted`, in this order; ``all`` means all elements of the class.

    Raises:
        NotFoundError: the class has no such field.
    """
    found: dict[str, ValueColumn] = {}
    for name in wanted:
        if name.lower() in ALL_COLUMNS:
            elements = dict.fromkeys(field.element for field in fields_of(*schemas).values())
            more = [_value_column(schemas, element) for element in elements]
        else:
            more = [_value_column(schemas, name)]
        for item in more:
            found.setdefault(item.column.title, item)
    return list(found.values())


def _value_column(schemas: Sequence[ClassSchema], name: str) -> ValueColumn:
    field = find_field(schemas, name)
    return ValueColumn(field, field.member if field.element.lower() == name.lower() else None)


def column_names(selection: ParsedSelection) -> list[str]:
    """The fields that a selection shows: those that it names, else those of its condition and its order."""
    if selection.columns:
        return list(selection.columns)
    condition = value_names(selection.where) if selection.where else ()
    mentioned = [*condition, *(item.name for item in selection.sort_keys)]
    return [name for name in dict.fromkeys(mentioned) if name.lower() not in COMMON_FIELDS]


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
