"""`plot`: draws statistics of an object as lines over time."""

from __future__ import annotations

import collections
import time
from collections.abc import Sequence

import attrs

from qmf.errors import NotFoundError
from qmf.schema import ClassSchema
from qmf.views.cells import Cell, Instant, Quantity
from qmf.views.fields import ObjectField
from qmf.views.objects import ObjectView
from qmf.views.rates import RateTracker
from qmf.views.text import clean, listing
from qmf.views.units import is_number, per_second
from qmf.views.value_cells import value_cell
from qmf_shell.commands.watch import RATES, VIEW_OPTIONS, live_view
from qmf_shell.objects.fields import find_field
from qmf_shell.objects.lookup import find_object, object_label
from qmf_shell.parsing.command import BoundArguments, Command, Option, Parameter, ParameterKind
from qmf_shell.results.result import Plot, PlotSeries, Result
from qmf_shell.screens.start import frames_of
from qmf_shell.session.context import Context

#: Seconds shown by default.
SPAN = 120.0
#: More lines cannot be distinguished.
MAX_LINES = 6

_Points = collections.deque[tuple[float, float | None]]


def run(context: Context, args: BoundArguments) -> Result:
    """Start the plot."""
    target = find_object(context, args.texts[0], prefer=lambda schema: _has_all(schema, args.texts[1:]))
    fields = [find_field([target.schema], text) for text in args.texts[1:]]
    for field in fields:
        if not field.is_number:
            numbers = [name for name, value in target.values.items() if is_number(value)]
            raise PLOT.misuse(f"{field.name} is not a number; {listing(numbers, 'and')} are")
    if "rates" in args.options:
        fields = [attrs.evolve(field, counter=True) for field in fields]
    fields = list(dict.fromkeys(fields))
    if len(fields) > MAX_LINES:
        raise PLOT.misuse(f"at most {MAX_LINES} lines can be distinguished")
    span = PLOT.seconds(args, "span", SPAN)
    context.ids.assign(target.identity, target.created)
    drawing = _Drawing(context, target, fields, span, "total" in args.options)
    return frames_of(context, args, "plot", live_view(context, PLOT, args, drawing.frame))


def _has_all(schema: ClassSchema, names: Sequence[str]) -> bool:
    try:
        return all(find_field([schema], name) for name in names)
    except NotFoundError:
        return False


@attrs.define
class _Drawing:
    """The points so far."""

    context: Context
    target: ObjectView
    fields: Sequence[ObjectField]
    span: float
    total: bool
    rates: RateTracker = attrs.field(factory=RateTracker)
    points: dict[str, _Points] = attrs.field(factory=dict)

    def frame(self) -> Plot:
        """The plot with the current values; the lines end where the object no longer exists."""
        at = time.monotonic()
        now = self.context.backend.get(self.target.identity)
        if now is not None:
            self.target = now
        series = tuple(self._series(field, now, at) for field in self.fields)
        number = self.context.ids.number(self.target.identity.key)
        note = None if now is not None else f"{object_label(self.target.identity)} is gone"
        return Plot(series, f"{number} {object_label(self.target.identity)}", Instant(time.time_ns()), note)

    def _series(self, field: ObjectField, now: ObjectView | None, at: float) -> PlotSeries:
        points = self.points.setdefault(field.name, collections.deque())
        value = None if now is None else now.values.get(field.name)
        number: float | None = float(value) if isinstance(value, int | float) else None
        name, cell, unit = clean(field.name), self._cell(field, value), field.unit
        if field.is_time:
            unit = "nanosecond" if field.type.base == "deltaTime" else None
        if field.counter and not self.total:
            epoch = self.target.identity.key.agent_epoch
            number = self.rates.update(field.name, field.type, value, at, epoch)
            unit = per_second(field.unit)
            shown = unit if field.unit else None
            name, cell = f"{name} per second", None if number is None else Quantity(round(number, 3), shown)
        points.append((at, number))
        while points and points[0][0] < at - self.span:
            points.popleft()
        return PlotSeries(name, tuple(points), cell, unit)

    def _cell(self, field: ObjectField, value: object) -> Cell:
        return value_cell(field.type, value, field.unit, measured=True, reference=self.context.ids.reference_cell)


PLOT = Command(
    name="plot",
    usage=("plot [-n SECONDS] [-c COUNT] [-s SECONDS] [-r] [-t] ID STAT...",),
    summary="Draw statistics of an object as lines over time",
    help=(
        "Counters are drawn as growth per second; -t draws their totals. All lines share one scale. Where a value is "
        "missing, the line has a gap. Ctrl-C or q ends it.",
    ),
    examples=(
        ("plot system cpuPercent", "one line; a class means its only object"),
        ("plot -n 0.5 -s 60 queue:orders msgDepth msgTotalEnqueues", "two lines over the last minute"),
    ),
    parameters=(
        Parameter("ID", ParameterKind.OBJECT, "short id, name or index", required=True),
        Parameter("STAT", ParameterKind.STATISTICS, "statistics, or other numbers", required=True, repeated=True),
    ),
    options=(
        *VIEW_OPTIONS,
        RATES,
        Option(("-s", "--span"), "how many seconds to show (120)", "SECONDS"),
        Option(("-t", "--total"), "draw totals of counters, not rates"),
    ),
    handler=run,
)
