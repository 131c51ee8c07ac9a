"""`history`: values of an object over time, from a lake, as a plot and a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from qmf.errors import NotFoundError
from qmf.schema import QmfType
from qmf.views.cells import Cell, Instant, Quantity
from qmf.views.fields import ObjectField
from qmf.views.objects import ObjectView, key_of_reference
from qmf.views.rates import RateTracker, counter_growth
from qmf.views.text import clean, plural
from qmf.views.units import is_number
from qmf.views.value_cells import value_cell
from qmf_shell.commands.at import inside, past_context
from qmf_shell.objects.fields import find_field
from qmf_shell.objects.lookup import GoneError, find_object, object_label
from qmf_shell.objects.selecting import known_schemas
from qmf_shell.parsing.command import EXACT, BoundArguments, Command, Option, Parameter, ParameterKind
from qmf_shell.parsing.times import Period, split_period
from qmf_shell.results.result import Plot, PlotSeries, Result, ResultGroup, Role, Table, TableColumn
from qmf_shell.session.context import Context
from qmf_shell.session.lake_source import NotRecordedError, latest

if TYPE_CHECKING:
    from qmf.pipeline.history.series import Incident, RecordedSeries, Sample

#: Rows shown when the user does not say how many.
SHOWN = 20
#: More lines cannot be distinguished.
MAX_LINES = 6
#: Times between the ends of a period at which an object is searched that exists at neither end.
_SEARCHES = 16
_HOUR = 3600 * 10**9


def run(context: Context, args: BoundArguments) -> Result:
    """Show the values of a period."""
    words, period = split_period(args.words)
    if len(words) < 2:
        raise HISTORY.misuse("write an object and a value")
    reader = context.past()
    end = latest(reader)
    period = Period(end - _HOUR, end) if period is None else period
    past = past_context(context, max(period.last, reader.begin()))
    target = _find(context, words[0].text, period)
    names = (target.identity.class_key.package, target.identity.class_key.name)
    keys = [key for key in reader.classes() if (key.package, key.name) == names]
    schemas = known_schemas(past, keys)
    fields = list(dict.fromkeys(find_field(schemas, word.text) for word in words[1:]))
    if len(fields) > MAX_LINES:
        raise HISTORY.misuse(f"at most {MAX_LINES} values can be shown together")
    key = target.identity.key
    members = [field.element for field in fields]
    series = reader.series(keys, (key.agent_name, key.object_name), members, period.first, period.last)
    chart = _Chart(past, fields, "total" in args.options)
    chart.add_all(series)
    number = context.ids.assign(target.identity, target.created)
    most = HISTORY.count(args, "limit", SHOWN)
    title = f"{number} {object_label(target.identity)}"
    table = attrs.evolve(chart.table(title, most), exact="exact" in args.options)
    plot = chart.plot(title, period)
    return inside(context, past, lambda: table if plot is None else ResultGroup((plot, table)))


def _find(context: Context, text: str, period: Period) -> ObjectView:
    """The object: as it was at the end of the period, at its beginning, or in between."""
    span = period.last - period.first
    times = [period.last, period.first, *(period.first + span * n // _SEARCHES for n in range(1, _SEARCHES))]
    failure: NotFoundError | GoneError | NotRecordedError | None = None
    for at in dict.fromkeys(times):
        try:
            return find_object(past_context(context, at), text)
        except (NotFoundError, GoneError, NotRecordedError) as error:
            failure = failure or error
    assert failure is not None
    raise failure


@attrs.define
class _Line:
    """One value over time.

    Attributes:
        field: the value.
        rated: it is a counter, shown by its rate.
        points: for the plot.
        last: the latest value.
    """

    field: ObjectField
    rated: bool
    points: list[tuple[float, float | None]] = attrs.field(factory=list)
    last: Cell = None
    before: tuple[int | float, int] | None = None

    @property
    def drawn(self) -> bool:
        """True for numbers."""
        return self.field.is_number


class _Chart:
    """Rows and lines, made of samples and incidents."""

    def __init__(self, context: Context, fields: Sequence[ObjectField], total: bool) -> None:
        self._context = context
        self._lines = [_Line(field, field.counter and not total) for field in fields]
        self._rates = RateTracker()
        self._rows: list[tuple[Cell, ...]] = []

    def add_all(self, series: RecordedSeries) -> None:
        """Add everything, in order of time."""
        waiting = list(series.incidents)
        for sample in series.samples:
            # The last values of an object come with its end.
            while waiting and waiting[0].time < sample.time + (not waiting[0].ends):
                self._add_incident(waiting.pop(0))
            self._add_sample(sample)
        for incident in waiting:
            self._add_incident(incident)

    def _add_incident(self, incident: Incident) -> None:
        cells = [None] * (len(self._columns()) - 2)
        self._rows.append((Instant(incident.time), *cells, incident.what))
        if incident.ends:
            for line in self._lines:
                line.points.append((incident.time / 1e9, None))

    def _add_sample(self, sample: Sample) -> None:
        cells: list[Cell] = []
        notes: list[str] = []
        for line in self._lines:
            field = line.field
            value = key_of_reference(sample.values.get(field.name), "")
            cells.append(
                value_cell(
                    field.type,
                    value,
                    field.unit,
                    measured=field.statistic,
                    reference=self._context.ids.reference_cell,
                )
            )
            rate: float | None = None
            if line.field.counter and is_number(value):
                rate = self._rate(line, field.type, value, sample, notes)
            if line.rated:
                cells.append(None if rate is None else Quantity(round(rate, 3), field.unit))
            if line.drawn and is_number(value):
                shown = rate if line.rated else float(value)
                line.points.append((sample.time / 1e9, shown))
                line.last = cells[-1]
        if any(cell is not None for cell in cells):
            self._rows.append((Instant(sample.time), *cells, ", ".join(dict.fromkeys(notes)) or None))

    def _rate(self, line: _Line, kind: QmfType, value: int | float, sample: Sample, notes: list[str]) -> float | None:
        name = line.field.name
        if sample.begins:
            self._rates.update(name, kind, None, 0.0)
            line.before = None
        if line.before is not None:
            before, epoch = line.before
            if epoch != sample.epoch or (value < before and counter_growth(kind, before, value) == value):
                notes.append(f"{clean(name)} began again at 0")
        line.before = value, sample.epoch
        return self._rates.update(name, kind, value, sample.time / 1e9, sample.epoch)

    def _columns(self) -> tuple[TableColumn, ...]:
        columns = [TableColumn("Time", Role.TIME)]
        for line in self._lines:
            name = clean(line.field.name)
            role = Role.NUMBER if line.field.is_number else Role.TEXT
            columns.append(TableColumn(name, role, key=name, wraps=role is Role.TEXT))
            if line.rated:
                columns.append(TableColumn("per second", Role.NUMBER, key=f"{name} per second"))
        return (*columns, TableColumn("Note", Role.FAINT, wraps=True))

    def table(self, title: str, most: int) -> Table:
        """The last rows."""
        rows = self._rows[-most:] if most else self._rows
        left = len(self._rows) - len(rows)
        columns = self._columns()
        if not any(row[-1] for row in rows):
            columns, rows = columns[:-1], [row[:-1] for row in rows]
        return Table(
            columns,
            tuple(rows),
            title=f"{title}, {plural(len(self._rows), 'row')}",
            empty=f"Nothing was recorded of {title.partition(' ')[2]} in this period.",
            note=f"{left:,} earlier ones; history -l 0 shows all" if left else None,
        )

    def plot(self, title: str, period: Period) -> Plot | None:
        """The numbers as lines; None where there are none."""
        series = tuple(
            PlotSeries(f"{clean(line.field.name)}{' per second' if line.rated else ''}", tuple(line.points), line.last)
            for line in self._lines
            if any(value is not None for _, value in line.points)
        )
        if not series:
            return None
        last = Instant(period.last)
        return Plot(series, title, last, None, Instant(period.first), last)


HISTORY = Command(
    name="history",
    usage=("history [-l COUNT] [-t] ID VALUE... [from TIME] [to TIME]",),
    summary="Show values of an object over time, as a plot and a table",
    help=(
        "The values come from a lake; times are written as for at. Without from, it begins an hour before the end; "
        "without to, it ends now, or where the recording ends.",
        "The plot shows the whole period, the table its last rows. Counters are drawn by their growth per second, "
        "and the table has both; -t draws totals. A counter that was reset, or whose agent restarted, began again at "
        "0. Where the object or its agent was gone, or nothing was recorded, the line has a gap, and the table has a "
        "row that says why.",
        "JSON and CSV have the rows; -l 0 for all.",
    ),
    examples=(
        ("history queue:orders msgDepth from 13:00 to 14:00", "the depth of a queue in that hour"),
        ("history -l 0 broker:amqp-broker msgTotalEnqueues from yesterday 12:00", "every sample since then"),
        ("history memory used available from -2h", "two values of the only object of a class"),
    ),
    parameters=(
        Parameter("ID", ParameterKind.OBJECT, "short id, name or index", required=True),
        Parameter("VALUE", ParameterKind.SERIES, "values; from TIME, to TIME", required=True, repeated=True),
    ),
    options=(
        Option(("-l", "--limit"), "rows to show (20); 0 means all", "COUNT"),
        Option(("-t", "--total"), "draw totals of counters, not rates"),
        EXACT,
    ),
    handler=run,
)
