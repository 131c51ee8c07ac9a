"""`top`: the objects of a class with the highest values of a statistic, refreshed repeatedly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from qmf.views.cells import Cell, CellForm, Quantity
from qmf.views.columns import important_statistics
from qmf.views.conditions import ObjectFilter
from qmf.views.fields import ObjectField, sort_by
from qmf.views.objects import ObjectView
from qmf.views.text import clean, plural
from qmf.views.units import per_second
from qmf_shell.commands.watch import RATES, VIEW_OPTIONS, Frames, frames_made_first, live_view
from qmf_shell.objects.columns import ValueColumn, value_columns
from qmf_shell.objects.fields import find_field
from qmf_shell.objects.lookup import find_classes
from qmf_shell.objects.selecting import classes_with, in_order_of_names, known_schemas, order_of_agents
from qmf_shell.parsing.command import PLAIN, BoundArguments, Command, Option, Parameter, ParameterKind
from qmf_shell.results.result import Result, Role, Table, TableColumn
from qmf_shell.screens.start import frames_of, screen_of
from qmf_shell.session.backend import ClassName, ObjectLimit
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_names

if TYPE_CHECKING:
    from qmf_shell.screens.pages.object_row import ObjectRow
    from qmf_shell.screens.pages.objects import ObjectsPage

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
        raise TOP.misuse("write a class, by, and a statistic")
    keys = classes_with(context, find_classes(context.classes(), words[0]), words[1:])
    names = class_names(keys)
    schemas = known_schemas(context, keys)
    field = find_field(schemas, words[1])
    if "rates" in args.options:
        field = attrs.evolve(field, counter=True)
    most = TOP.count(args, "limit", SHOWN)
    by_rate = field.counter and "total" not in args.options
    all_integers = "rates" in args.options

    def pages(*, asks: bool, limit: int | None = None) -> list[ObjectsPage]:
        """The pages of the classes, sorted by the statistic."""
        from qmf_shell.screens.opening import PageFactory
        from qmf_shell.screens.pages.objects import ObjectsSpec

        factory = PageFactory(context, view.interval, all_integers)
        return [
            factory.objects(
                ObjectsSpec(
                    name=name,
                    keys=[key for key in keys if (key.package, key.name) == name],
                    columns=[field.element or field.name],
                    more=True,
                    sort_keys=[(field, True)],
                    by_rate=by_rate,
                    all_integers=all_integers,
                    limit=limit,
                    asks=asks,
                )
            )
            for name in names
        ]

    order, shape = order_of_agents([(field, True)]), _Shape(context, field, by_rate)
    if most and order is not None and not by_rate:
        frames: Frames = _Highest(context, names, ObjectLimit(most, order), shape).frame
    else:
        once = TOP.count(args, "count", 0) == 1
        frames = frames_made_first(lambda: _Top(pages(asks=True), most, shape, once=once).frame)
    view = live_view(context, TOP, args, frames)
    if len(names) > 1:
        return frames_of(context, args, "top", view)
    limit = most or None if "limit" in args.options else None
    return screen_of(context, args, view, lambda: pages(asks=False, limit=limit)[0])


@attrs.frozen
class _Shape:
    """What a frame looks like.

    Attributes:
        context: the session.
        field: what is compared.
        by_rate: its growth per second is.
    """

    context: Context
    field: ObjectField
    by_rate: bool = False

    def table(
        self, top: Sequence[tuple[object, ObjectView]], total: str, *, rated: bool = True, note: str = ""
    ) -> Table:
        """A frame.

        Args:
            top: the objects that are shown, in order, each with what was compared.
            total: of how many objects these are the first, in words.
            rated: growth is known of some; else values are compared.
            note: what else there is to say.
        """
        field, by_rate = self.field, self.by_rate and rated
        shown = [item for _, item in top]
        beside = self._beside(shown)
        named = any(item.identity.title for item in shown)
        title = f"{clean(field.name)} per second" if by_rate else clean(field.name)
        unit = per_second(field.unit) if by_rate else field.unit
        columns = [TableColumn("ID", Role.ID), TableColumn("Index", Role.NAME, shortens=True)]
        columns += [TableColumn("Name", shortens=True)] if named else []
        columns.append(TableColumn(clean(field.name), Role.NUMBER, key=title, form=CellForm.BRIEF, unit=unit))
        columns += [attrs.evolve(item.column, spare=True) for item in beside]
        rows: list[tuple[Cell, ...]] = []
        for value, item in top:
            cell = Quantity(round(value, 3), unit) if isinstance(value, int | float) else None
            titles = [item.identity.title] if named else []
            number = self.context.ids.assign(item.identity, item.created)
            rows.append((number, item.identity.index, *titles, cell, *(one.cell(self.context, item) for one in beside)))
        by = title if rated else f"{title}, as its growth is not known yet"
        return Table(
            tuple(columns), tuple(rows), title=f"Top of {total} by {by}", empty="No objects.", note=note or None
        )

    def _beside(self, shown: Sequence[ObjectView]) -> list[ValueColumn]:
        """The values beside the one that is compared."""
        schemas = list({id(item.schema): item.schema for item in shown}.values())
        important = important_statistics(schemas, (item.values for item in shown), BESIDE + 1)
        names = [name for name in important if name != self.field.element][:BESIDE]
        return value_columns(schemas, names) if schemas else []


def _total(item: ObjectView, field: ObjectField) -> object:
    value = item.values.get(field.name)
    return None if isinstance(value, bool) else value


@attrs.frozen
class _Highest:
    """Frames by values: each asks for no more objects than it shows."""

    context: Context
    names: Sequence[ClassName]
    asked: ObjectLimit
    shape: _Shape

    def frame(self) -> Table:
        """The objects with the highest values now, in order."""
        found = [self.context.first_objects(name, self.asked, ObjectFilter()) for name in self.names]
        objects = [item for first in found for item in in_order_of_names(first.objects)]
        others = [first.others for first in found]
        valued = sort_by(
            [(_total(item, self.shape.field), item) for item in objects], lambda pair: pair[0], descending=True
        )
        known = len(objects) + sum(count or 0 for count in others)
        total = plural(known, "object")
        return self.shape.table(valued[: self.asked.limit], f"more than {total}" if None in others else total)


@attrs.frozen
class _Top:
    """Frames by growth, or of all objects.

    Attributes:
        pages: of the classes.
        most: objects that are shown; 0 for all.
        shape: of a frame.
        once: there is one frame, so that nothing is followed.
    """

    pages: Sequence[ObjectsPage]
    most: int
    shape: _Shape
    once: bool

    def frame(self) -> Table:
        """The objects with their current values, in order. Before growth is known, values are compared."""
        for page in self.pages:
            page.apply(page.load())
        rows = [(page, row) for page in self.pages for row in page.object_rows()]
        valued = [(self._value(row, page.now), row.item) for page, row in rows]
        rated = not self.shape.by_rate or not valued or any(value is not None for value, _ in valued)
        if not rated:
            valued = [(_total(item, self.shape.field), item) for _, item in valued]
        valued = sort_by(valued, lambda pair: pair[0], descending=True)
        known = sum(max(len(page.model), page.expected) for page in self.pages)
        top = valued[: self.most] if self.most else valued
        table = self.shape.table(top, plural(known, "object"), rated=rated, note="" if self.once else self._progress())
        self._follow_others()
        return table

    def _progress(self) -> str:
        return "; ".join(page.progress for page in self.pages if not page.complete)

    def _follow_others(self) -> None:
        if not self.once:
            for page in self.pages:
                page.follow_others()

    def _value(self, row: ObjectRow, now: float) -> object:
        return row.rate(self.shape.field, now) if self.shape.by_rate else _total(row.item, self.shape.field)


TOP = Command(
    name="top",
    usage=("top [-n SECONDS] [-c COUNT] [-l COUNT] [-p] [-r] [-t] CLASS by STAT",),
    summary="Show the objects of a class with the highest values of a statistic",
    help=(
        "It fills the terminal, as watch does; all objects are there to scroll to. In a file, in a pipe, or with -p it "
        "prints the first ones, frame after frame.",
        "Counters are compared by their growth per second, and by their totals as long as that is not known; -t "
        "compares totals. Ctrl-C or q ends it.",
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
