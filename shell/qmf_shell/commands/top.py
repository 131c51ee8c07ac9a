"""`top`: the objects of a class with the highest values of a statistic, refreshed repeatedly."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from qmf.views.cells import Cell, CellForm, Quantity
from qmf.views.columns import important_statistics
from qmf.views.fields import ObjectField, sort_by
from qmf.views.objects import ObjectView
from qmf.views.rates import RateTracker
from qmf.views.text import clean, plural
from qmf.views.units import per_second
from qmf_shell.commands.watch import RATES, VIEW_OPTIONS, live_view
from qmf_shell.objects.columns import ValueColumn, value_columns
from qmf_shell.objects.fields import find_field
from qmf_shell.objects.lookup import find_classes
from qmf_shell.objects.selecting import classes_with, known_schemas
from qmf_shell.parsing.command import BoundArguments, Command, Option, Parameter, ParameterKind, UsageError
from qmf_shell.parsing.common_options import PLAIN
from qmf_shell.parsing.option_numbers import count_option
from qmf_shell.results.result import Result, Role, Table, TableColumn
from qmf_shell.screens.start import frames_of, screen_of
from qmf_shell.session.backend import ClassName
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_names

if TYPE_CHECKING:
    from qmf_shell.screens.state import Page

#: Objects shown by default.
SHOWN = 15
#: Further statistics shown beside the one that determines the order.
BESIDE = 3


def run(context: Context, args: BoundArguments) -> Result:
    """Start the view."""
    words = list(args.texts)
    if len(words) > 1 and words[1].lower() == "by":
        del words[1]
    if len(words) != 2:
        raise UsageError("top", "write a class, by, and a statistic", TOP.usage[0])
    keys = classes_with(context, find_classes(context.classes(), words[0]), words[1:])
    names = class_names(keys)
    schemas = known_schemas(context, keys)
    field = find_field(schemas, words[1])
    if "rates" in args.options:
        field = attrs.evolve(field, counter=True)
    most = count_option(TOP, args, "limit", SHOWN)
    total = "total" in args.options
    view = live_view(context, TOP, args, _Top(context, names, field, most, total).frame)

    def page() -> Page:
        from qmf_shell.screens.opening import PageFactory
        from qmf_shell.screens.pages.objects import ObjectsSpec

        all_integers = "rates" in args.options
        spec = ObjectsSpec(
            name=names[0],
            keys=[key for key in keys if (key.package, key.name) == names[0]],
            columns=[field.element or field.name],
            more=True,
            sort=field.name,
            descending=True,
            by_rate=field.counter and not total,
            all_integers=all_integers,
            limit=most or None if "limit" in args.options else None,
        )
        return PageFactory(context, view.interval, all_integers).objects(spec)

    return frames_of(context, args, "top", view) if len(names) > 1 else screen_of(context, args, view, page)


@attrs.define
class _Top:
    """The state of the view."""

    context: Context
    names: Sequence[ClassName]
    field: ObjectField
    most: int
    total: bool
    rates: RateTracker = attrs.field(factory=RateTracker)

    def frame(self) -> Table:
        """The objects with their current values, in order."""
        at = time.monotonic()
        objects = list(self.context.objects(self.names))
        values = {item.identity.key: self._value(item, at) for item in objects}
        objects = sort_by(objects, lambda item: values[item.identity.key], descending=True)
        shown = objects[: self.most] if self.most else objects
        beside = self._beside(shown)
        named = any(item.identity.title for item in shown)
        title = f"{clean(self.field.name)} per second" if self.by_rate else clean(self.field.name)
        unit = per_second(self.field.unit) if self.by_rate else self.field.unit
        columns = [TableColumn("ID", Role.ID), TableColumn("Index", Role.NAME, shortens=True)]
        columns += [TableColumn("Name", shortens=True)] if named else []
        columns.append(TableColumn(clean(self.field.name), Role.NUMBER, key=title, form=CellForm.BRIEF, unit=unit))
        columns += [attrs.evolve(item.column, spare=True) for item in beside]
        rows: list[tuple[Cell, ...]] = []
        for item in shown:
            value = values[item.identity.key]
            cell = Quantity(round(value, 3), unit) if isinstance(value, int | float) else None
            titles = [item.identity.title] if named else []
            number = self.context.ids.assign(item.identity, item.created)
            rows.append((number, item.identity.index, *titles, cell, *(one.cell(self.context, item) for one in beside)))
        head = f"Top of {plural(len(objects), 'object')} by {title}"
        return Table(tuple(columns), tuple(rows), title=head, empty="No objects.")

    @property
    def by_rate(self) -> bool:
        """True if the growth of a counter is compared."""
        return self.field.counter and not self.total

    def _beside(self, shown: Sequence[ObjectView]) -> list[ValueColumn]:
        """The values beside the one that is compared."""
        schemas = list({id(item.schema): item.schema for item in shown}.values())
        important = important_statistics(schemas, (item.values for item in shown), BESIDE + 1)
        names = [name for name in important if name != self.field.element][:BESIDE]
        return value_columns(schemas, names) if schemas else []

    def _value(self, item: ObjectView, at: float) -> object:
        value = item.values.get(self.field.name)
        if not self.by_rate:
            return None if isinstance(value, bool) else value
        key = item.identity.key
        return self.rates.update(key, self.field.type, value, at, key.agent_epoch)


TOP = Command(
    name="top",
    usage=("top [-n SECONDS] [-c COUNT] [-l COUNT] [-p] [-r] [-t] CLASS by STAT",),
    summary="Show the objects of a class with the highest values of a statistic",
    help=(
        "It fills the terminal, as watch does; all objects are there to scroll to. In a file, in a pipe, or with -p it "
        "prints the first ones, frame after frame.",
        "Counters are compared by their growth per second, so at first there is no order yet; -t compares their "
        "totals. Ctrl-C or q ends it.",
    ),
    examples=(
        ("top process by cpuPercent", "the busiest processes"),
        ("top -l 5 queue by msgTotalEnqueues", "the queues that get most messages"),
    ),
    parameters=(
        Parameter("CLASS", ParameterKind.CLASS, "a class", required=True),
        Parameter(
            "STAT",
            ParameterKind.STATISTICS,
            "by STAT: the statistic to compare",
            required=True,
            repeated=True,
            choices=(("by", "followed by a statistic"),),
        ),
    ),
    options=(
        *VIEW_OPTIONS,
        RATES,
        PLAIN,
        Option(("-l", "--limit"), "how many objects to show (15); 0 means all", "COUNT"),
        Option(("-t", "--total"), "compare totals of counters, not rates"),
    ),
    handler=run,
)
