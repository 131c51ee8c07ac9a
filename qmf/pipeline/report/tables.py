"""The values of a report from the audit's tables. Each function queries Spark once, for the rows that are shown."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from qmf.pipeline.audit.availability import DOWN, UNKNOWN, UP
from qmf.pipeline.report.model import (
    AgentRow,
    AlertRow,
    AvailabilityInterval,
    CallRow,
    ClassObjectsRow,
    EndedObjectRow,
    PropertyChangeRow,
)
from qmf.pipeline.report.time_range import NS, TimeRange

#: Alerts that are shown at most: the newest.
_MAX_ALERTS = 200


def availability_intervals(availability: DataFrame, time_range: TimeRange) -> tuple[AvailabilityInterval, ...]:
    """The intervals that overlap the time range, cut to it."""
    rows = availability.where(
        (F.col("start_ns") < time_range.last_ns) & (F.col("end_ns") > time_range.first_ns)
    ).collect()
    found = []
    for row in sorted(rows, key=lambda row: (row["agent"], row["start_ns"])):
        cut = time_range.clipped(row["start_ns"], row["end_ns"])
        if cut:
            found.append(
                AvailabilityInterval(
                    agent=row["agent"], state=row["state"], epoch=row["epoch"], cause=row["cause"], start_ns=cut[0],
                    end_ns=cut[1],
                )
            )  # fmt: skip
    return tuple(found)


def agents(intervals: Sequence[AvailabilityInterval]) -> tuple[AgentRow, ...]:
    """A row for each agent."""
    found: dict[str, dict[str, float]] = {}
    restarts: dict[str, int] = {}
    epochs: dict[str, int | None] = {}
    for item in intervals:
        lengths = found.setdefault(item.agent, {UP: 0.0, DOWN: 0.0, UNKNOWN: 0.0})
        lengths[item.state] += (item.end_ns - item.start_ns) / NS
        if item.state == UP:
            restarted = item.cause == "restarted" or epochs.get(item.agent, item.epoch) != item.epoch
            restarts[item.agent] = restarts.get(item.agent, 0) + restarted
            epochs[item.agent] = item.epoch
    return tuple(
        AgentRow(agent=name, up=own[UP], down=own[DOWN], unknown=own[UNKNOWN], restarts=restarts.get(name, 0))
        for name, own in sorted(found.items())
    )


def classes(table: DataFrame, time_range: TimeRange) -> tuple[ClassObjectsRow, ...]:
    """A row for each class that had objects in the time range."""
    existing = table.where(
        (_began() < time_range.last_ns) & (F.coalesce("ended_ns", F.lit(time_range.last_ns)) >= time_range.first_ns)
    )
    rows = (
        existing.groupBy("class", F.when(_within(F.col("ended_ns"), time_range), F.col("ended_by")).alias("by"))
        .agg(F.count("*").alias("objects"), F.count_if(_within(_began(), time_range)).alias("created"))
        .collect()
    )
    found: dict[str, list[tuple[str | None, int, int]]] = {}
    for row in rows:
        found.setdefault(row["class"], []).append((row["by"], row["objects"], row["created"]))
    return tuple(
        ClassObjectsRow(
            name=name,
            objects=sum(item[1] for item in own),
            created=sum(item[2] for item in own),
            ended=tuple(sorted((by, count) for by, count, _ in own if by is not None)),
        )
        for name, own in sorted(found.items())
    )


def lifetimes(table: DataFrame, time_range: TimeRange, seconds: int) -> tuple[tuple[float, int, int], ...]:
    """Numbers of objects created and ended, by window."""
    born = table.where(_within(_began(), time_range)).select(
        _window(_began(), seconds), F.lit(1).alias("b"), F.lit(0).alias("e")
    )
    gone = table.where(_within(F.col("ended_ns"), time_range)).select(
        _window(F.col("ended_ns"), seconds), F.lit(0).alias("b"), F.lit(1).alias("e")
    )
    rows = born.unionByName(gone).groupBy("t").agg(F.sum("b").alias("b"), F.sum("e").alias("e")).collect()
    return tuple(sorted((float(row["t"]), int(row["b"]), int(row["e"])) for row in rows))


def last_ended(table: DataFrame, time_range: TimeRange, top: int) -> tuple[tuple[EndedObjectRow, ...], int]:
    """The objects that ended last, and the number of others that ended."""
    gone = table.where(_within(F.col("ended_ns"), time_range))
    rows, left = _first(gone.orderBy(F.col("ended_ns").desc(), "class", "object"), top)
    return tuple(
        EndedObjectRow(
            name=row["class"],
            agent=row["agent"],
            object=row["object"],
            lived=(row["ended_ns"] - row["created_ns"]) / NS if row["created_ns"] else None,
            ended_ns=row["ended_ns"],
            ended_by=row["ended_by"],
        )
        for row in rows
    ), left


def event_counts(events: DataFrame, seconds: int) -> tuple[tuple[float, int, int], ...]:
    """Events by window and severity."""
    grouped = events.select(_window(F.col("time_ns"), seconds), F.coalesce("severity", F.lit(5)).alias("severity"))
    rows = grouped.groupBy("t", "severity").count().collect()
    return tuple(sorted((float(row["t"]), int(row["severity"]), int(row["count"])) for row in rows))


def last_calls(calls: DataFrame, top: int) -> tuple[tuple[CallRow, ...], int]:
    """The last calls, and the number of others."""
    rows, left = _first(calls.orderBy(F.col("time_ns").desc(), "event_id"), top)
    names = ("time_ns", "user", "origin", "agent", "operation", "target", "result", "text")
    return tuple(CallRow(**{name: row[name] for name in names}) for row in rows), left


def last_changes(history: DataFrame, time_range: TimeRange, top: int) -> tuple[tuple[PropertyChangeRow, ...], int]:
    """The last changes of properties that had a value before, and the number of others."""
    found = history.where(_within(F.col("valid_from_ns"), time_range) & F.col("previous").isNotNull())
    rows, left = _first(found.orderBy(F.col("valid_from_ns").desc(), "class", "object", "property"), top)
    return tuple(
        PropertyChangeRow(
            time_ns=row["valid_from_ns"], name=row["class"], agent=row["agent"], object=row["object"],
            property=row["property"], previous=row["previous"], value=row["value"],
        )
        for row in rows
    ), left  # fmt: skip


def gaps(rows: DataFrame, time_range: TimeRange) -> tuple[tuple[str, int], ...]:
    """What recorders missed: reason, and number of messages or interruptions."""
    inside = rows.where(_within(F.col("_received_ns"), time_range))
    counts = inside.groupBy("reason").agg(F.sum(F.greatest("count", F.lit(1))).alias("count")).collect()
    return tuple(sorted((row["reason"], int(row["count"])) for row in counts))


def alerts(tables: Sequence[DataFrame], time_range: TimeRange) -> tuple[AlertRow, ...] | None:
    """The alerts that were open in the time range, newest first; None where there is no table."""
    if not tables:
        return None
    names = ("rule", "severity", "subject", "message", "reason", "began_ns", "at_ns")
    rows = reduce(
        DataFrame.unionByName, (table.select("alert_id", "change", *names) for table in tables)
    ).dropDuplicates(["alert_id", "change"])
    is_end = F.col("change") == "cleared"
    one = rows.groupBy("alert_id").agg(
        *(F.max_by(name, ~is_end).alias(name) for name in names if name not in ("reason", "at_ns")),
        F.min(F.when(~is_end, F.col("at_ns"))).alias("raised_ns"),
        F.max(F.when(is_end, F.col("at_ns"))).alias("cleared_ns"),
        F.max(F.when(is_end, F.col("reason"))).alias("reason"),
    )
    open_then = (F.col("began_ns") < time_range.last_ns) & (
        F.coalesce("cleared_ns", F.lit(time_range.last_ns)) >= time_range.first_ns
    )
    found = one.where(open_then).orderBy(F.col("began_ns").desc(), "alert_id").limit(_MAX_ALERTS).collect()
    return tuple(
        AlertRow(
            alert_id=row["alert_id"],
            rule=row["rule"],
            severity=int(row["severity"]),
            subject=row["subject"],
            message=row["message"],
            began_ns=row["began_ns"],
            raised_ns=row["raised_ns"] if row["raised_ns"] is not None else row["began_ns"],
            cleared_ns=row["cleared_ns"],
            reason=row["reason"] or "",
        )
        for row in found
    )


def _began() -> Column:
    """When an object was created, by its agent; or else when it was first seen."""
    return F.when(F.col("created_ns") > 0, F.col("created_ns")).otherwise(F.col("first_seen_ns"))


def _within(time_ns: Column, time_range: TimeRange) -> Column:
    return time_ns.between(time_range.first_ns, time_range.last_ns - 1)


def _window(time_ns: Column, seconds: int) -> Column:
    return (F.floor(time_ns / F.lit(seconds * NS)) * seconds).alias("t")


def _first(frame: DataFrame, top: int) -> tuple[list[Row], int]:
    rows = frame.limit(top).collect()
    return rows, frame.count() - len(rows)
