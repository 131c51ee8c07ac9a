"""The content of a report: the rows of its time range in a lake, rolled up and audited by DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from qmf.pipeline.audit.parts import CONNECTED
from qmf.pipeline.audit.state import AuditState
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.days import NS_PER_DAY
from qmf.pipeline.lake.delta_lake import DeltaLake, choose_classes
from qmf.pipeline.report import anomalies, audited, selection
from qmf.pipeline.report.alerts import read_alerts
from qmf.pipeline.report.known_spans import KnownSpans
from qmf.pipeline.report.model import UNITS, Anomaly, ComparedNumber, RangeComparison, Report
from qmf.pipeline.report.presence import PresenceRows, agent_rows, clipped_intervals, read_presence
from qmf.pipeline.report.series import KEY, VALUES, SeriesOptions, make_values
from qmf.pipeline.report.source import ROWS, AuditedRows, FileQueries, ReportSource
from qmf.pipeline.report.time_range import NS, TimeRange, time_text
from qmf.pipeline.runners.runner import Runner

PrintLine = Callable[[str], None]

_MISSED = "missed"

#: A gap of this part of the range is marked.
_GAP = 100


@attrs.frozen(kw_only=True)
class ReportOptions:
    """Options of a report.

    Attributes:
        lake: path or URL.
        alerts, audit, rollups: paths of the tables of these jobs; None for those inside the lake.
        title: of the page.
        classes: whose samples to roll up; none for all.
        top: number of top movers, and of rows of each table.
        continued: counters outlive restarts of their agents.
        own: include the objects that agents and consoles created for themselves.
        compare: another range to compare with.
        usual_days: days before the range whose values say what is usual.
        made_ns: time of the report.
        storage: options of the object stores of both.
    """

    lake: str
    alerts: str | None = None
    audit: str | None = None
    rollups: str | None = None
    title: str = "QMF report"
    classes: tuple[str, ...] = ()
    top: int = 10
    continued: bool = False
    own: bool = False
    compare: TimeRange | None = None
    usual_days: int = 7
    made_ns: int = 0
    storage: Mapping[str, str] = attrs.field(factory=dict)


def collect(runner: Runner, options: ReportOptions, time_range: TimeRange, print_line: PrintLine) -> Report:
    """Collect a report; what was not recorded at both ends of the range is left out, and nothing at all an error."""

    def find(lake: DeltaLake) -> AuditedRows | None:
        return AuditedRows.find(lake, options.audit)

    with ReportSource(runner, options.lake, options.storage, find) as source:
        choose_classes([item.version for item in source.classes], options.classes)  # refuses those that are not there
        other = None
        if options.compare is not None:
            known = read_presence(source, AuditState(source.connection), options.compare)
            other = _recorded_range(source, known, options.compare)
        state = AuditState(source.connection)  # in place of that one
        asked, presence = time_range, read_presence(source, state, time_range)
        time_range = _recorded_range(source, presence, time_range)
        report = Report(
            title=options.title,
            lake=options.lake,
            time_range=time_range,
            made_ns=options.made_ns,
            asked=asked,
            own_left_out=not options.own,
        )
        report = _add_audit(source, state, presence, options, report)
        used = "" if source.audited is None else f", as far as they are not in {source.audited.options.out}"
        print_line(f"Agents, objects and events audited{used}")
        report = _with_series(source, options, report, other, print_line)
    if other is not None:
        with ReportSource(runner, options.lake, options.storage, find) as source:
            state = AuditState(source.connection)
            known = read_presence(source, state, other)
            then = _add_audit(source, state, known, options, attrs.evolve(report, time_range=other))
        assert report.comparison is not None
        before = then.numbers
        numbers = tuple(
            ComparedNumber(name=name, before=before[name], after=after, unit=UNITS.get(name, ""))
            for name, after in report.numbers.items()
        )
        report = attrs.evolve(report, comparison=attrs.evolve(report.comparison, numbers=numbers))
    return report


def _recorded_range(source: ReportSource, presence: PresenceRows, time_range: TimeRange) -> TimeRange:
    times = [cut for first, last in presence.recorded if (cut := time_range.clip(first, last + 1)) is not None]
    if not times:
        limits = source.limits()
        found = "it is empty" if limits is None else f"it has {time_text(limits[0])} to {time_text(limits[1])} UTC"
        raise PipelineError(
            f"{source.url}: nothing was recorded from {time_text(time_range.first_ns)} to "
            f"{time_text(time_range.last_ns)} UTC; {found}"
        )
    # Whole seconds, so that the page's times are those of its plots.
    first, last = times[0][0] // NS * NS, -(-times[-1][1] // NS) * NS
    return TimeRange(max(first, time_range.first_ns), min(last, time_range.last_ns))


# -- the parts of a report


def _add_audit(
    source: ReportSource, state: AuditState, presence: PresenceRows, options: ReportOptions, report: Report
) -> Report:
    """With all that is known of agents, objects and events; without values over time."""
    time_range, top = report.time_range, options.top
    since = time_range.first_ns - NS_PER_DAY
    own = None if options.own else audited.own_connections(source, since, time_range.last_ns)
    shown = clipped_intervals(presence.intervals, time_range)
    known_until = max(cut[1] for item in presence.recorded if (cut := time_range.clip(item[0], item[1] + 1)))
    audited.make_lifetimes(source, state, time_range, since, presence.table, own)
    audited.make_events(source, state, time_range, own=options.own)
    samples, objects = audited.counts(source)
    ended, ended_left = audited.last_ended(source, time_range, top)
    changes, changes_left = audited.last_changes(source, time_range, top)
    calls, calls_left = audited.last_calls(source, state, top)
    kinds, kinds_left = audited.class_counts(source, top)
    alerts = options.alerts or f"{options.lake.rstrip('/')}/_tables/correlate"
    return attrs.evolve(
        report,
        known_until_ns=known_until,
        unrecorded=_unrecorded_times(presence.recorded, time_range),
        samples=samples,
        objects=objects,
        presence=shown,
        agents=agent_rows(shown, presence.beats, known_until),
        alerts=read_alerts(alerts, time_range, options.storage),
        classes=audited.class_rows(source, time_range),
        lifetimes=audited.lifetimes_by_window(source, time_range),
        ended=ended,
        ended_left=ended_left,
        events=audited.event_counts(source, time_range),
        event_classes=kinds,
        event_classes_left=kinds_left,
        calls=calls,
        calls_left=calls_left,
        changes=changes,
        changes_left=changes_left,
        gaps=_gaps(source, time_range),
    )


def _unrecorded_times(recorded: Sequence[tuple[int, int]], time_range: TimeRange) -> tuple[tuple[int, int], ...]:
    least = max(2 * time_range.step * NS, (time_range.last_ns - time_range.first_ns) // _GAP)
    edges = [time_range.first_ns, *(time for item in recorded for time in item), time_range.last_ns]
    found = (time_range.clip(first, last) for first, last in zip(edges[::2], edges[1::2], strict=True) if first < last)
    return tuple(item for item in found if item is not None and item[1] - item[0] >= least)


def _gaps(source: ReportSource, time_range: TimeRange) -> tuple[tuple[str, int], ...]:
    rows = source.rows(RowKind.GAPS, time_range.first_ns, time_range.last_ns)
    where = f"_received_ns >= {time_range.first_ns} and _received_ns < {time_range.last_ns} and reason <> '{CONNECTED}'"
    if rows is None:
        return ()
    missed = 'cast(sum(greatest(coalesce("count", 1), 1)) as bigint) as missed'
    query = FileQueries(rows, {_MISSED: f"select reason, {missed} from {ROWS} where {where} group by reason"})
    made = source.tables_of_queries([query], {_MISSED: {"reason": "varchar", "missed": "bigint"}})
    found = source.query(f"select reason, sum(missed) from {made[_MISSED]} group by reason order by reason")
    return tuple((reason, int(count)) for reason, count in found)


def _with_series(
    source: ReportSource, options: ReportOptions, report: Report, other: TimeRange | None, print_line: PrintLine
) -> Report:
    time_range = report.time_range
    usual = usual_ranges(time_range, options.usual_days)
    own = None if options.own else audited.own_connections(source, time_range.first_ns - NS_PER_DAY, time_range.last_ns)
    days, stored = make_values(
        source,
        SeriesOptions(
            classes=options.classes,
            continued=options.continued,
            size=time_range.size,
            ranges=(*usual, time_range, *(() if other is None else (other,))),
            own=own,
            rollups=options.rollups,
        ),
    )
    taken = f"; {stored} of {days} days of classes were rolled up already" if stored else ""
    print_line(f"Samples rolled up{taken}")
    known_until = {row.agent: row.known_until_ns for row in report.agents}
    spans = KnownSpans.of(time_range, report.presence, known_until, audited.ends(source))
    report = attrs.evolve(
        report, charts=selection.charts(source, spans), movers=selection.movers(source, spans, options.top)
    )
    report = _with_anomalies(source, options, report, spans)
    if other is not None:
        series, left = selection.compare_series(source, time_range, other, options.top)
        report = attrs.evolve(report, comparison=RangeComparison(other=other, numbers=(), series=series, left=left))
    return report


def usual_ranges(time_range: TimeRange, days: int) -> tuple[TimeRange, ...]:
    """The hours of the day of a range, on the days before it, the oldest first.

    A range of more than a day is compared with itself and as many days before that `days` are complete.
    """
    hour = 3600 * NS
    first, last = time_range.first_ns // hour * hour, -(-time_range.last_ns // hour) * hour
    if last - first >= NS_PER_DAY:
        missing = days - int((last - first) // NS_PER_DAY)
        return (TimeRange(first - missing * NS_PER_DAY, time_range.first_ns),) if missing > 0 else ()
    return tuple(TimeRange(first - number * NS_PER_DAY, last - number * NS_PER_DAY) for number in range(days, 0, -1))


def _with_anomalies(source: ReportSource, options: ReportOptions, report: Report, spans: KnownSpans) -> Report:
    time_range = report.time_range
    step = time_range.step
    since = usual_ranges(time_range, options.usual_days)
    begin = float((since[0] if since else time_range).first_window(step))
    end = time_range.last_ns / NS
    with source.errors():
        days = anomalies.days_compared(source.connection, VALUES, since=begin, last=end)
        found = anomalies.find_anomalies(
            source.connection,
            VALUES,
            (*KEY, "unit", "counter"),
            first=float(time_range.first_window(step)),
            last=end,
            since=begin,
            step=step,
        )
    shown = found[: options.top]
    series = selection.read_series(source, [item.key for item in shown], spans)
    return attrs.evolve(
        report,
        anomaly_days=days if days >= anomalies.MIN_DAYS else 0,
        anomalies_left=len(found) - len(shown),
        anomalies=tuple(
            Anomaly(
                series=one, start=item.start, end=min(item.end, end), value=item.value, usual=item.usual,
                spread=item.spread, days=item.days,
            )
            for one, item in zip(series, shown, strict=True)
        ),
    )  # fmt: skip
