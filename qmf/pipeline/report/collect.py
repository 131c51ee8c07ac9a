"""What a report shows, asked of Spark: the lake's rows of the span, rolled up and audited by the functions of the jobs.

Only what is shown comes to this process: series are scored and chosen where they are.
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
from qmf.pipeline.audit.job import parts_of, tables_of
from qmf.pipeline.errors import LakeError
from qmf.pipeline.frames import Frames
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.report import tables
from qmf.pipeline.report.model import Chart, Mover, Report, Series
from qmf.pipeline.report.time_range import NS, Span
from qmf.pipeline.rollup.windows import rolled, values
from qmf.pipeline.spark import catalog, sinks
from qmf.pipeline.spark.queries import Say
from qmf.schema import Style

_KEY = ("package", "class", "agent", "object", "member", "style", "unit")

#: Windows of a series at least, for what moved: fewer have no halves to compare.
_FEWEST = 6

#: Charts of a class, and objects in one.
_CHARTS, _LINES = 2, 5


@attrs.frozen(kw_only=True)
class ReportOptions:
    """What to report.

    Attributes:
        lake: path, or any URL that Spark reads.
        alerts: path of the table of alerts.
        title: of the page.
        classes: whose samples; none for all.
        top: how many movers, and rows of each table.
        continued: counters outlive restarts of their agents.
        made_ns: when the report is made.
    """

    lake: str
    alerts: str
    title: str
    classes: tuple[str, ...] = ()
    top: int = 10
    continued: bool = False
    made_ns: int


def newest(spark: SparkSession, lake: str) -> int:
    """When the last row of a lake came, by its recorder's clock.

    Raises:
        LakeError: there is no lake, or no row that tells of a time.
    """
    frames = Frames(spark, lake)
    kinds = (RowKind.HEARTBEATS, RowKind.AGENTS, RowKind.SCHEMAS)
    found = reduce(DataFrame.unionByName, (frames.table(kind).select("_received_ns") for kind in kinds))
    row = found.agg(F.max("_received_ns")).first()
    if row is None or row[0] is None:
        raise LakeError(f"{lake}: no lake, or nothing in it yet")
    return int(row[0])


def collect(spark: SparkSession, options: ReportOptions, span: Span, say: Say) -> Report:
    """Ask for everything.

    Raises:
        LakeError: there is no lake, or no such class.
    """
    report = Report(title=options.title, lake=options.lake, span=span, made_ns=options.made_ns)
    report = _series(spark, options, report)
    say("Samples rolled up")
    report = _audited(spark, options, report)
    say("Agents, objects and events audited")
    return attrs.evolve(report, alerts=tables.alerts(_alerts(spark, options.alerts), span))


def _inside(frame: DataFrame, span: Span) -> DataFrame:
    return frame.where(F.col("_ts_ns").between(span.first_ns, span.last_ns - 1))


# -- series


def _series(spark: SparkSession, options: ReportOptions, report: Report) -> Report:
    span = report.span
    first, last = span.days
    frames = Frames(spark, options.lake, first=first, last=last)
    classes = [of for of in catalog.choose(catalog.tables(options.lake, spark), options.classes) if not of[0].event]
    if not classes:
        return report
    each = [values(_inside(frames.of(of), span), of) for of in classes]
    # As in the audit: what is made of many classes is planned once.
    rows = rolled(reduce(DataFrame.unionByName, each), span.size, continued=options.continued)
    series = _series_of(rows, options.continued).localCheckpoint()
    movers = _movers(series, (span.first_ns + span.last_ns) / 2 / NS, options.top)
    charts = _charts(series)
    wanted = ((F.col("package") == of[0].package) & (F.col("class") == of[0].name) for of in classes)
    told = _inside(frames.any(RowKind.OBJECTS), span)
    row = (
        (told.where(reduce(Column.__or__, wanted)) if options.classes else told)
        .groupBy("_agent", "package", "class", "_object")
        .count()
        .agg(F.coalesce(F.sum("count"), F.lit(0)), F.count("*"))
        .first()
    )
    samples, objects = (int(row[0]), int(row[1])) if row is not None else (0, 0)
    return attrs.evolve(report, movers=movers, charts=charts, samples=samples, objects=objects)


def _series_of(rolled: DataFrame, continued: bool) -> DataFrame:
    """One value for each window: gauges' means; what counters grew by since the window before, per second."""
    own = Window.partitionBy(*_KEY).orderBy("window_start")
    before = F.lag(F.struct("last", "last_ns", "last_epoch")).over(own)
    reset = F.col("last") < before["last"]
    if not continued:
        reset = reset | F.coalesce(F.col("last_epoch") != before["last_epoch"], F.lit(False))
    span = (F.col("last_ns") - before["last_ns"]) / F.lit(1e9)
    grown = F.when(reset, F.col("last")).otherwise(F.col("last") - before["last"]) / span
    is_rate = F.col("style") == Style.COUNT.value
    value = F.when(is_rate, F.when(before.isNull() | (span <= 0), F.col("rate")).otherwise(grown)).otherwise(
        F.col("mean")
    )
    told = rolled.select(*_KEY, F.unix_timestamp("window_start").cast("double").alias("t"), value.alias("value"))
    return told.where(F.col("value").isNotNull() & ~F.isnan("value"))


def _movers(values: DataFrame, middle: float, top: int) -> tuple[Mover, ...]:
    """The series whose halves differ most, measured by how much windows of a half differ: trends, not noise."""
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
    # A hundredth of the level counts as noise, so that what hardly changes at all doesn't come first.
    score = F.abs(F.col("after") - F.col("before")) / (F.col("noise") + level * 0.01)
    chosen = (
        scored.where((F.col("windows") >= _FEWEST) & (level > 0))
        .withColumn("score", score)
        .where(F.col("score") > 0)
        .orderBy(F.col("score").desc(), *_KEY)
        .limit(top)
    )
    rows = chosen.collect()
    points = _points(values, chosen)
    return tuple(
        Mover(series=_one(row, points), before=row["before"], after=row["after"], score=row["score"]) for row in rows
    )


def _charts(values: DataFrame) -> tuple[Chart, ...]:
    """The counters of each class that grow fastest, their largest objects together."""
    rates = values.where(F.col("style") == Style.COUNT.value).groupBy(*_KEY).agg(F.avg("value").alias("mean"))
    rates = rates.where(F.col("mean") > 0)
    kind = ("package", "class", "member")
    # Times grow by the second and bytes by the thousand, so members are compared within a class only.
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
        charts.setdefault(key, []).append(_one(row, points))
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
    """The points of the series that were chosen."""
    keys = chosen.select(*_NAME).distinct()
    rows = values.join(F.broadcast(keys), list(_NAME), "left_semi").select(*_NAME, "t", "value").collect()
    found: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in _NAME), []).append((row["t"], row["value"]))
    return {key: tuple(sorted(own)) for key, own in found.items()}


def _one(row: Row, points: _Points) -> Series:
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


# -- what happened


def _audited(spark: SparkSession, options: ReportOptions, report: Report) -> Report:
    span = report.span
    first, last = span.days_with_past
    frames = Frames(spark, options.lake, first=first, last=last)
    known = parts.known(spark, catalog.tables(options.lake, spark))
    presence = (RowKind.HEARTBEATS, RowKind.AGENTS, RowKind.GAPS)
    rows = {kind: frames.table(kind) for kind in presence} | {RowKind.OBJECTS: frames.any(RowKind.OBJECTS)}
    found = {name: parts.folded(name, part).localCheckpoint() for name, part in parts_of(rows, known).items()}
    typed = parts.events(frames.any(RowKind.EVENTS), known)
    untyped = parts.untyped_events(frames.table(RowKind.UNTYPED))
    inside = F.col("time_ns").between(span.first_ns, span.last_ns - 1)
    events = parts.once(typed.unionByName(untyped)).where(inside).localCheckpoint()
    made = tables_of(found, lambda _name, frame: frame.localCheckpoint())
    intervals = tables.presence(made["availability"], span)
    ended, ended_left = tables.ended(made["lives"], span, options.top)
    told, told_left = tables.told(calls(events), options.top)
    changed, changed_left = tables.changed(made["history"], span, options.top)
    return attrs.evolve(
        report,
        presence=intervals,
        agents=tables.agents(intervals),
        lives=tables.lives(made["lives"], span),
        births=tables.births(made["lives"], span, span.step),
        ended=ended,
        ended_left=ended_left,
        events=tables.event_counts(events, span.step),
        calls=told,
        calls_left=told_left,
        changes=changed,
        changes_left=changed_left,
        gaps=tables.gaps(frames.table(RowKind.GAPS), span),
    )


def _alerts(spark: SparkSession, path: str) -> Sequence[DataFrame]:
    """The tables of alerts that there are: of a batch, of a stream."""
    both = (sinks.table(spark, f"{path}/{way}") for way in ("batch", "stream"))
    return [frame for frame in both if frame is not None]
