"""Rows of the audit's tables as the values that a report shows; each function asks Spark once, for what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from qmf.pipeline.audit.availability import DOWN, UNKNOWN, UP
from qmf.pipeline.report.model import AgentLine, AlertLine, CallLine, Changed, Ended, LifeLine, Presence
from qmf.pipeline.report.time_range import NS, Span

#: Alerts that are shown at most; the worst and newest.
_MOST_ALERTS = 200


def presence(availability: DataFrame, span: Span) -> tuple[Presence, ...]:
    """The intervals of the span, cut to it."""
    rows = availability.where((F.col("start_ns") < span.last_ns) & (F.col("end_ns") > span.first_ns)).collect()
    found = []
    for row in sorted(rows, key=lambda row: (row["agent"], row["start_ns"])):
        cut = span.clipped(row["start_ns"], row["end_ns"])
        if cut:
            found.append(
                Presence(
                    agent=row["agent"], state=row["state"], epoch=row["epoch"], cause=row["cause"], start_ns=cut[0],
                    end_ns=cut[1],
                )
            )  # fmt: skip
    return tuple(found)


def agents(intervals: Sequence[Presence]) -> tuple[AgentLine, ...]:
    """A line for each agent."""
    found: dict[str, dict[str, float]] = {}
    restarts: dict[str, int] = {}
    epochs: dict[str, int | None] = {}
    for item in intervals:
        lengths = found.setdefault(item.agent, {UP: 0.0, DOWN: 0.0, UNKNOWN: 0.0})
        lengths[item.state] += (item.end_ns - item.start_ns) / NS
        if item.state == UP:
            anew = item.cause == "restarted" or epochs.get(item.agent, item.epoch) != item.epoch
            restarts[item.agent] = restarts.get(item.agent, 0) + anew
            epochs[item.agent] = item.epoch
    return tuple(
        AgentLine(agent=name, up=own[UP], down=own[DOWN], unknown=own[UNKNOWN], restarts=restarts.get(name, 0))
        for name, own in sorted(found.items())
    )


def lives(table: DataFrame, span: Span) -> tuple[LifeLine, ...]:
    """A line for each class that had objects in the span."""
    there = table.where((_began() < span.last_ns) & (F.coalesce("ended_ns", F.lit(span.last_ns)) >= span.first_ns))
    rows = (
        there.groupBy("class", F.when(_within(F.col("ended_ns"), span), F.col("ended_by")).alias("by"))
        .agg(F.count("*").alias("objects"), F.count_if(_within(_began(), span)).alias("created"))
        .collect()
    )
    found: dict[str, list[tuple[str | None, int, int]]] = {}
    for row in rows:
        found.setdefault(row["class"], []).append((row["by"], row["objects"], row["created"]))
    return tuple(
        LifeLine(
            name=name,
            objects=sum(item[1] for item in own),
            created=sum(item[2] for item in own),
            ended=tuple(sorted((by, count) for by, count, _ in own if by is not None)),
        )
        for name, own in sorted(found.items())
    )


def births(table: DataFrame, span: Span, seconds: int) -> tuple[tuple[float, int, int], ...]:
    """Objects that came and went, by window."""
    born = table.where(_within(_began(), span)).select(
        _window(_began(), seconds), F.lit(1).alias("b"), F.lit(0).alias("e")
    )
    gone = table.where(_within(F.col("ended_ns"), span)).select(
        _window(F.col("ended_ns"), seconds), F.lit(0).alias("b"), F.lit(1).alias("e")
    )
    rows = born.unionByName(gone).groupBy("t").agg(F.sum("b").alias("b"), F.sum("e").alias("e")).collect()
    return tuple(sorted((float(row["t"]), int(row["b"]), int(row["e"])) for row in rows))


def ended(table: DataFrame, span: Span, top: int) -> tuple[tuple[Ended, ...], int]:
    """The objects that ended last, and how many more did."""
    gone = table.where(_within(F.col("ended_ns"), span))
    rows, left = _first(gone.orderBy(F.col("ended_ns").desc(), "class", "object"), top)
    return tuple(
        Ended(
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


def told(calls: DataFrame, top: int) -> tuple[tuple[CallLine, ...], int]:
    """The last calls, and how many more there are."""
    rows, left = _first(calls.orderBy(F.col("time_ns").desc(), "event_id"), top)
    names = ("time_ns", "user", "origin", "agent", "operation", "target", "result", "text")
    return tuple(CallLine(**{name: row[name] for name in names}) for row in rows), left


def changed(history: DataFrame, span: Span, top: int) -> tuple[tuple[Changed, ...], int]:
    """The last changes of properties that had a value before, and how many more there are."""
    found = history.where(_within(F.col("valid_from_ns"), span) & F.col("previous").isNotNull())
    rows, left = _first(found.orderBy(F.col("valid_from_ns").desc(), "class", "object", "property"), top)
    return tuple(
        Changed(
            time_ns=row["valid_from_ns"], name=row["class"], agent=row["agent"], object=row["object"],
            property=row["property"], previous=row["previous"], value=row["value"],
        )
        for row in rows
    ), left  # fmt: skip


def gaps(rows: DataFrame, span: Span) -> tuple[tuple[str, int], ...]:
    """What recorders missed: reason, and how many messages or times."""
    inside = rows.where(_within(F.col("_received_ns"), span))
    counts = inside.groupBy("reason").agg(F.sum(F.greatest("count", F.lit(1))).alias("count")).collect()
    return tuple(sorted((row["reason"], int(row["count"])) for row in counts))


def alerts(tables: Sequence[DataFrame], span: Span) -> tuple[AlertLine, ...] | None:
    """The alerts that were open in the span, newest first; None for no table."""
    if not tables:
        return None
    told = ("rule", "severity", "subject", "message", "reason", "began_ns", "at_ns")
    rows = reduce(
        DataFrame.unionByName, (table.select("alert_id", "change", *told) for table in tables)
    ).dropDuplicates(["alert_id", "change"])
    is_end = F.col("change") == "cleared"
    one = rows.groupBy("alert_id").agg(
        *(F.max_by(name, ~is_end).alias(name) for name in told if name not in ("reason", "at_ns")),
        F.min(F.when(~is_end, F.col("at_ns"))).alias("raised_ns"),
        F.max(F.when(is_end, F.col("at_ns"))).alias("cleared_ns"),
        F.max(F.when(is_end, F.col("reason"))).alias("reason"),
    )
    open_then = (F.col("began_ns") < span.last_ns) & (F.coalesce("cleared_ns", F.lit(span.last_ns)) >= span.first_ns)
    found = one.where(open_then).orderBy(F.col("began_ns").desc(), "alert_id").limit(_MOST_ALERTS).collect()
    return tuple(
        AlertLine(
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
    """When an object came: as its agent told, or else when it was first seen."""
    return F.when(F.col("created_ns") > 0, F.col("created_ns")).otherwise(F.col("first_seen_ns"))


def _within(time_ns: Column, span: Span) -> Column:
    return time_ns.between(span.first_ns, span.last_ns - 1)


def _window(time_ns: Column, seconds: int) -> Column:
    return (F.floor(time_ns / F.lit(seconds * NS)) * seconds).alias("t")


def _first(frame: DataFrame, top: int) -> tuple[list[Row], int]:
    rows = frame.limit(top).collect()
    return rows, frame.count() - len(rows)
