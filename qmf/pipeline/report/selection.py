"""Which series of the table of values are shown: charts of each class, top movers, what differs from another range."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from qmf.pipeline.duckdb_queries import quote_name
from qmf.pipeline.report.known_spans import KnownSpans
from qmf.pipeline.report.model import ChangedSeries, Chart, ComparedSeries, Series
from qmf.pipeline.report.series import KEY, VALUES
from qmf.pipeline.report.source import ReportSource, Row
from qmf.pipeline.report.texts import labels
from qmf.pipeline.report.time_range import NS, TimeRange

#: Windows of a top mover at least: fewer have no halves to compare.
_MIN_WINDOWS = 6

#: Charts of a class at most, of counters and of gauges; and lines of a chart.
_CHARTS, _LINES = 3, 5

#: Units that say most, in this order; then come the members in the order of the schema.
_FIRST_UNITS = ("percent", "octet", "message")

_KEY_SQL = ", ".join(quote_name(name) for name in KEY)
_SERIES_SQL = f"{_KEY_SQL}, unit, counter"


def within(time_range: TimeRange, step: int) -> str:
    """The condition for the values of a range."""
    return f"t >= {time_range.first_window(step)} and t < {time_range.last_ns / NS!r}"


def charts(source: ReportSource, spans: KnownSpans) -> tuple[Chart, ...]:
    """The charts of each class, those of gauges first, each with its largest objects."""
    time_range = spans.time_range
    units = " ".join(f"when '{unit}' then {number}" for number, unit in enumerate(_FIRST_UNITS))
    rows = source.query(
        f"""
        with lines as (
            select {_SERIES_SQL}, any_value(place) as place, max(abs(value)) as level,
                max(value) - min(value) as spread,
                sum(value) as total
            from {VALUES} where {within(time_range, time_range.step)} group by all
        ), members as (
            select package, class, member, counter, count(*) filter (level > 0) as objects,
                bool_or(spread > level * 1e-6) as moves,
                any_value(case unit {units} else {len(_FIRST_UNITS)} end) as rank, any_value(place) as place
            from lines where level > 0 group by all
        ), placed as (
            select *, row_number() over (partition by package, class, counter order by not moves, rank, place, member)
                as chart
            from members where moves or counter or rank = 0
        ), chosen as (
            select l.*, p.chart, p.objects,
                row_number() over (partition by p.package, p.class, p.member order by l.total desc, l.agent, l.object)
                as line
            from placed as p join lines as l using (package, class, member, counter)
            where p.chart <= {_CHARTS} and l.level > 0
        )
        select {_SERIES_SQL}, chart, objects from chosen where line <= {_LINES}
        order by package, class, counter, chart, line
        """
    )
    found: dict[tuple[object, ...], list[Series]] = {}
    objects: dict[tuple[object, ...], int] = {}
    for series, row in zip(read_series(source, rows, spans), rows, strict=True):
        key = (row[0], row[1], row[4])
        found.setdefault(key, []).append(series)
        objects[key] = row[-1]
    drawn: dict[tuple[object, ...], None] = {}
    charts: list[Chart] = []
    for name, own in found.items():
        # Two members may always be equal, e.g. what an exchange received and what it routed.
        same = (own[0].name, own[0].is_rate, own[0].unit, *((item.agent, item.object, item.points) for item in own))
        if same in drawn:
            continue
        drawn[same] = None
        charts.append(
            Chart(
                title=f"{own[0].name} {own[0].member}",
                unit=own[0].unit,
                series=tuple(_label(own)),
                more=objects[name] - len(own),
                is_rate=own[0].is_rate,
            )
        )
    return tuple(charts)


def _label(series: Sequence[Series]) -> Iterable[Series]:
    names = labels([(item.agent, item.object) for item in series])
    return (attrs.evolve(item, label=label) for item, label in zip(series, names, strict=True))


def movers(source: ReportSource, spans: KnownSpans, top: int) -> tuple[ChangedSeries, ...]:
    """The series whose halves differ most, relative to the spread within a half: trends, not noise."""
    time_range = spans.time_range
    middle = (time_range.first_ns + time_range.last_ns) / 2 / NS
    rows = source.query(
        f"""
        with scored as (
            select {_SERIES_SQL}, count(*) as windows,
                avg(value) filter (t < {middle!r}) as before, avg(value) filter (t >= {middle!r}) as after,
                coalesce(stddev_pop(value) filter (t < {middle!r}), 0)
                    + coalesce(stddev_pop(value) filter (t >= {middle!r}), 0) as noise
            from {VALUES} where {within(time_range, time_range.step)} group by all
        ), levels as (
            -- A hundredth of the level counts as noise, so that series that hardly change don't come first.
            select *, greatest(abs(before), abs(after)) as level from scored where windows >= {_MIN_WINDOWS}
        )
        select {_SERIES_SQL}, before, after, abs(after - before) / (noise + level * 0.01) as score
        from levels where level > 0 and before <> after order by score desc, {_KEY_SQL} limit {top}
        """
    )
    series = read_series(source, rows, spans)
    return tuple(
        ChangedSeries(series=one, before=row[7], after=row[8], score=row[9])
        for one, row in zip(series, rows, strict=True)
    )


def compare_series(
    source: ReportSource, time_range: TimeRange, other: TimeRange, top: int
) -> tuple[tuple[ComparedSeries, ...], int]:
    """The series whose means differ most from those in another range, and the number of others that differ."""
    step = time_range.step
    now, then = within(time_range, step), within(other, step)
    rows = source.query(
        f"""
        with means as (
            select {_SERIES_SQL}, avg(value) filter ({then}) as before, avg(value) filter ({now}) as after,
                coalesce(stddev_pop(value) filter ({then}), 0) + coalesce(stddev_pop(value) filter ({now}), 0) as noise
            from {VALUES} where ({now}) or ({then}) group by all
        ), levels as (
            select *, greatest(abs(coalesce(before, 0)), abs(coalesce(after, 0))) as level from means
        )
        select {_SERIES_SQL}, before, after, count(*) over () as number
        from levels where level > 0 and before is distinct from after
        order by before is null or after is null,
            abs(coalesce(after, 0) - coalesce(before, 0)) / (noise + level * 0.01) desc,
            {_KEY_SQL} limit {top}
        """
    )
    left = rows[0][-1] - len(rows) if rows else 0
    return tuple(ComparedSeries(series=_series(row), before=row[7], after=row[8]) for row in rows), left


def read_series(source: ReportSource, rows: Sequence[Row], spans: KnownSpans) -> list[Series]:
    """The series that rows begin with, with their points in a range."""
    if not rows:
        return []
    time_range = spans.time_range
    source.run(f"create or replace temp table report_wanted as select {_KEY_SQL} from {VALUES} limit 0")
    with source.errors():
        source.connection.executemany(
            "insert into report_wanted values (?, ?, ?, ?, ?)",
            [list(key) for key in dict.fromkeys(row[:5] for row in rows)],
        )
    points: dict[tuple[object, ...], list[tuple[float, float, float]]] = {}
    for *name, t, before, value in source.query(
        f"select {_KEY_SQL}, t, before, value from {VALUES} semi join report_wanted using ({_KEY_SQL}) "
        f"where {within(time_range, time_range.step)} order by t"
    ):
        points.setdefault(tuple(name), []).append((t, before, value))
    found = []
    for row in rows:
        own = points.get(tuple(row[:5]), [])
        series = _series(row)
        key = (series.name, series.agent, series.object)
        filled = spans.counter(key, own) if row[6] else spans.gauge(key, [(t, value) for t, _, value in own])
        found.append(attrs.evolve(series, points=tuple(filled)))
    return found


def _series(row: Row) -> Series:
    _package, name, agent, own, member, unit, counter = row[:7]
    return Series(name=name, agent=agent or "", object=own or "", member=member, unit=unit, is_rate=counter)
