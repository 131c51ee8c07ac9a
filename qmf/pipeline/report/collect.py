"""The content of a report: the lake's rows of its time range, rolled up and audited by the functions of the jobs.

Series are scored and selected by Spark, so that only those that are shown are collected.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import attrs
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from qmf.pipeline.audit import parts
from qmf.pipeline.audit.calls import calls
from qmf.pipeline.audit.job import make_parts, make_tables
from qmf.pipeline.errors import LakeError
from qmf.pipeline.frames import Frames
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.classes import choose_classes
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.report import tables
from qmf.pipeline.report.model import ChangedSeries, Chart, Report, Series
from qmf.pipeline.report.time_range import NS, TimeRange
from qmf.pipeline.rollup.job import rolled_up_lake
from qmf.pipeline.spark import catalog, sinks
from qmf.pipeline.spark.batch_progress import PrintLine
from qmf.schema import Style

_KEY = ("package", "class", "agent", "object", "member", "style", "unit")

#: Windows of a top mover at least: fewer have no halves to compare.
_MIN_WINDOWS = 6

#: Charts of a class at most, and lines of a chart.
_CHARTS, _LINES = 2, 5


@attrs.frozen(kw_only=True)
class ReportOptions:
    """Options of a report.

    Attributes:
        lake: path, or any URL that Spark reads.
        alerts: path of the table of alerts.
        title: of the page.
        classes: whose samples to roll up; none for all.
        top: number of top movers, and of rows of each table.
        continued: counters outlive restarts of their agents.
        made_ns: time of the report.
    """

    lake: str
    alerts: str
    title: str
    classes: tuple[str, ...] = ()
    top: int = 10
    continued: bool = False
    made_ns: int


def newest(spark: SparkSession, lake: str) -> int:
    """When the last row of a lake arrived, by its recorder's clock.

    Raises:
        LakeError: there is no lake, or no row in it.
    """
    frames = Frames(spark, lake)
    kinds = (RowKind.HEARTBEATS, RowKind.AGENTS, RowKind.SCHEMAS)
    found = reduce(DataFrame.unionByName, (frames.table(kind).select("_received_ns") for kind in kinds))
    row = found.agg(F.max("_received_ns")).first()
    if row is None or row[0] is None:
        raise LakeError(f"{lake}: no lake, or nothing in it yet")
    return int(row[0])


def collect(spark: SparkSession, options: ReportOptions, time_range: TimeRange, print_line: PrintLine) -> Report:
    """Collect the whole content of a report.

    Raises:
        LakeError: there is no lake, or no such class.
    """
    report = Report(title=options.title, lake=options.lake, time_range=time_range, made_ns=options.made_ns)
    report = _add_series(spark, options, report)
    print_line("Samples rolled up")
    report = _add_audit(spark, options, report)
    print_line("Agents, objects and events audited")
    return attrs.evolve(report, alerts=tables.alerts(_alerts(spark, options.alerts), time_range))


def _inside(frame: DataFrame, time_range: TimeRange) -> DataFrame:
    return frame.where(F.col("_ts_ns").between(time_range.first_ns, time_range.last_ns - 1))


# -- series


def _add_series(spark: SparkSession, options: ReportOptions, report: Report) -> Report:
    time_range = report.time_range
    first, last = time_range.days
    frames = Frames(spark, options.lake, first=first, last=last)
    classes = choose_classes(catalog.class_versions(options.lake), options.classes)
    if not classes:
        return report
    times = (time_range.first_ns, time_range.last_ns)
    rows = rolled_up_lake(
        spark, options.lake, time_range.size, classes=options.classes, continued=options.continued, times=times
    )
    series = _series_of(rows).localCheckpoint()
    movers = _movers(series, (time_range.first_ns + time_range.last_ns) / 2 / NS, options.top)
    charts = _charts(series)
    wanted = ((F.col("package") == item[0].package) & (F.col("class") == item[0].name) for item in classes)
    all_rows = _inside(frames.any(RowKind.OBJECTS), time_range)
    row = (
        (all_rows.where(reduce(Column.__or__, wanted)) if options.classes else all_rows)
        .groupBy("_agent", "package", "class", "_object")
        .count()
        .agg(F.coalesce(F.sum("count"), F.lit(0)), F.count("*"))
        .first()
    )
    samples, objects = (int(row[0]), int(row[1])) if row is not None else (0, 0)
    return attrs.evolve(report, movers=movers, charts=charts, samples=samples, objects=objects)


def _series_of(rolled: DataFrame) -> DataFrame:
    """One value per window: the mean of gauges; the growth of counters since the window before, per second."""
    value = F.when(F.col("style") == Style.COUNT.value, F.col("rate")).otherwise(F.col("mean"))
    series = rolled.select(*_KEY, F.unix_timestamp("window_start").cast("double").alias("t"), value.alias("value"))
    return series.where(F.col("value").isNotNull() & ~F.isnan("value"))


def _movers(values: DataFrame, middle: float, top: int) -> tuple[ChangedSeries, ...]:
    """The series whose halves differ most, relative to the spread within a half: trends, not noise."""
    early, late = F.col("t") < middle, F.col("t") >= middle

    def of(half: Column, what: Column) -> Column:
        return F.when(half, what)

    scored = values.groupBy(*_KEY).agg(
        F.count("*").alias("windows"),
        F.avg(of(early, F.col("value"))).alias("before"),
        F.avg(of(late, F.col("value"))).alias("after"),
        (F.coalesce(F.stddev_pop(of(early, F.col("value"))), F.lit(0.0))
         + F.coalesce(F.stddev_pop(of(late, F.col("value"))), F.lit(0.0))).alias("noise"),
    )  # fmt: skip
    level = F.greatest(F.abs("before"), F.abs("after"))
    # A hundredth of the level counts as noise, so that series that hardly change don't come first.
    score = F.abs(F.col("after") - F.col("before")) / (F.col("noise") + level * 0.01)
    chosen = (
        scored.where((F.col("windows") >= _MIN_WINDOWS) & (level > 0))
        .withColumn("score", score)
        .where(F.col("score") > 0)
        .orderBy(F.col("score").desc(), *_KEY)
        .limit(top)
    )
    rows = chosen.collect()
    points = _points(values, chosen)
    return tuple(
        ChangedSeries(series=_to_series(row, points), before=row["before"], after=row["after"], score=row["score"])
        for row in rows
    )


def _charts(values: DataFrame) -> tuple[Chart, ...]:
    """The fastest counters of each class, each with its largest objects."""
    rates = values.where(F.col("style") == Style.COUNT.value).groupBy(*_KEY).agg(F.avg("value").alias("mean"))
    rates = rates.where(F.col("mean") > 0)
    kind = ("package", "class", "member")
    # Members have different units, so they are compared within a class only.
    total = rates.groupBy(*kind).agg(F.sum("mean").alias("total"), F.count("*").alias("objects"))
    by_class = Window.partitionBy("package", "class").orderBy(F.col("total").desc(), "member")
    members = total.withColumn("place", F.row_number().over(by_class)).where(F.col("place") <= _CHARTS)
    by_member = Window.partitionBy(*kind).orderBy(F.col("mean").desc(), "agent", "object")
    lines = (
        rates.join(members, list(kind), "inner")
        .withColumn("line", F.row_number().over(by_member))
        .where(F.col("line") <= _LINES)
    )
    rows = lines.orderBy("package", "class", "place", "line").collect()
    points = _points(values, lines)
    charts: dict[tuple[str, str, str], list[Series]] = {}
    objects: dict[tuple[str, str, str], int] = {}
    for row in rows:
        key = (row["package"], row["class"], row["member"])
        charts.setdefault(key, []).append(_to_series(row, points))
        objects[key] = row["objects"]
    return tuple(
        Chart(
            title=f"{name} {member}",
            unit=own[0].unit,
            series=tuple(own),
            more=objects[package, name, member] - len(own),
        )
        for (package, name, member), own in charts.items()
    )


_Points = dict[tuple[str, ...], tuple[tuple[float, float], ...]]
_NAME = ("package", "class", "agent", "object", "member")


def _points(values: DataFrame, chosen: DataFrame) -> _Points:
    """The points of the selected series."""
    keys = chosen.select(*_NAME).distinct()
    rows = values.join(F.broadcast(keys), list(_NAME), "left_semi").select(*_NAME, "t", "value").collect()
    found: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in _NAME), []).append((row["t"], row["value"]))
    return {key: tuple(sorted(own)) for key, own in found.items()}


def _to_series(row: Row, points: _Points) -> Series:
    key = tuple(row[name] for name in _NAME)
    return Series(
        name=row["class"],
        agent=row["agent"],
        object=row["object"],
        member=row["member"],
        unit=row["unit"],
        is_rate=row["style"] == Style.COUNT.value,
        points=points.get(key, ()),
    )


# -- audit


def _add_audit(spark: SparkSession, options: ReportOptions, report: Report) -> Report:
    time_range = report.time_range
    first, last = time_range.days_with_past
    frames = Frames(spark, options.lake, first=first, last=last)
    known = parts.known_columns(spark, catalog.class_versions(options.lake))
    presence = (RowKind.HEARTBEATS, RowKind.AGENTS, RowKind.GAPS)
    rows = {kind: frames.table(kind) for kind in presence} | {RowKind.OBJECTS: frames.any(RowKind.OBJECTS)}
    found = {name: parts.folded(name, part).localCheckpoint() for name, part in make_parts(rows, known).items()}
    typed = parts.events(frames.any(RowKind.EVENTS), known)
    untyped = parts.untyped_events(frames.table(RowKind.UNTYPED))
    inside = F.col("time_ns").between(time_range.first_ns, time_range.last_ns - 1)
    events = parts.deduplicated(typed.unionByName(untyped)).where(inside).localCheckpoint()
    made = make_tables(found, lambda _name, frame: frame.localCheckpoint())
    intervals = tables.availability_intervals(made["availability"], time_range)
    ended, ended_left = tables.last_ended(made["lives"], time_range, options.top)
    shown_calls, calls_left = tables.last_calls(calls(events), options.top)
    changes, changes_left = tables.last_changes(made["history"], time_range, options.top)
    return attrs.evolve(
        report,
        presence=intervals,
        agents=tables.agents(intervals),
        classes=tables.classes(made["lives"], time_range),
        lifetimes=tables.lifetimes(made["lives"], time_range, time_range.step),
        ended=ended,
        ended_left=ended_left,
        events=tables.event_counts(events, time_range.step),
        calls=shown_calls,
        calls_left=calls_left,
        changes=changes,
        changes_left=changes_left,
        gaps=tables.gaps(frames.table(RowKind.GAPS), time_range),
    )


def _alerts(spark: SparkSession, path: str) -> Sequence[DataFrame]:
    """The existing tables of alerts: of a batch, of a stream."""
    both = (sinks.read_table(spark, LakeTable(f"{path}/{mode}")) for mode in ("batch", "stream"))
    return [frame for frame in both if frame is not None]
