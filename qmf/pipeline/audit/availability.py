"""The availability of agents: when they were up, down, or not recorded.

All times are by the recorders' clocks, since the agents share no other clock. Within a run of a recorder, rows are
ordered by their arrival, so that a step of the clock doesn't reorder them. First, each run gives a list of points for
each agent, which determine the agent's state::

    added, restarted, heartbeat                up
    removed: goodbye                           down
    removed: silent                            down, since the last row: that long before the removal
    disconnected, after the last row of a run  unknown
    start of the run, connected again          down; unknown where the agent answers within `SETTLE_S`

Then the runs are merged: up where it is up in any run, else down where it is down in any run, else unknown. An agent
has no state before its first row.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from qmf.pipeline.audit.parts import CONNECTED, DISCONNECTED
from qmf.pipeline.audit.schemas import TABLES, conform

UP, DOWN, UNKNOWN = "up", "down", "unknown"

#: Seconds that agents have to answer when a recorder connects.
SETTLE_S = 10

#: Silent intervals after which the console removes an agent, and the seconds that it waits at least
#: (`qmf.console.aio.agents`). Older lakes were recorded with the same rule.
MISSED_HEARTBEATS, SHORTEST_PATIENCE_S = 3, 10

_SECOND = 10**9
_ABSENT = "absent"
_FIRST, _LAST = -1, (1 << 63) - 1


def availability(runs: DataFrame, signs: DataFrame, changes: DataFrame) -> DataFrame:
    """The intervals of each agent, without gaps from its first row to the last row of the last run.

    Args:
        runs, signs, changes: parts, merged.

    Returns:
        `TABLES["availability"]`. A restart of an agent begins another interval. The last one is `ongoing`: its
        end is that of the recording.
    """
    return _merged(_intervals(_points(runs, signs, changes)))


def _points(runs: DataFrame, signs: DataFrame, changes: DataFrame) -> DataFrame:
    """The points of each run for each agent that is known by its end: agent, run, seq, at, state, cause, ..."""
    patience = F.greatest(F.lit(float(SHORTEST_PATIENCE_S)), F.col("interval") * MISSED_HEARTBEATS)
    removed = F.col("change") == "removed"
    lost = removed & (F.col("reason") == DISCONNECTED)
    changed = changes.where(F.col("agent").isNotNull()).select(
        *("agent", "run", "seq"),
        F.col("received_ns").alias("at"),
        F.when(lost, UNKNOWN).when(removed, DOWN).otherwise(UP).alias("state"),
        F.when(removed, F.col("reason")).otherwise(F.col("change")).alias("cause"),
        F.when(~removed, F.col("epoch")).alias("epoch"),
        F.when(removed & (F.col("reason") == "silent"), (patience * _SECOND).cast("long"))
        .otherwise(F.lit(0))
        .alias("back"),
    )
    heartbeats = [
        signs.select(
            *("agent", "run", F.col(f"{which}_seq").alias("seq"), F.col(f"{which}_ns").alias("at")),
            *_as(UP, "heartbeat", F.col("epoch")),
        )
        for which in ("first", "last")
    ]
    own = changed.unionByName(heartbeats[0]).unionByName(heartbeats[1])
    first = own.groupBy("agent").agg(F.min("at").alias("since"))
    seen = first.join(runs, F.col("last_ns") >= F.col("since"), "inner")
    connections = changes.where(F.col("agent").isNull()).select(
        "run", "seq", F.col("received_ns").alias("at"), "change"
    )
    limits = [
        seen.select("agent", "run", F.lit(_FIRST).alias("seq"), F.col("first_ns").alias("at"), *_as(_ABSENT, _ABSENT)),
        seen.select(
            "agent", "run", F.lit(_LAST).alias("seq"), (F.col("last_ns") + 1).alias("at"), *_as(UNKNOWN, "not recorded")
        ),
    ]
    for change, state, cause in ((DISCONNECTED, UNKNOWN, DISCONNECTED), (CONNECTED, _ABSENT, _ABSENT)):
        found = connections.where(F.col("change") == change).join(seen.select("agent", "run"), "run", "inner")
        limits.append(found.select("agent", "run", "seq", "at", *_as(state, cause)))
    points = own
    for more in limits:
        points = points.unionByName(more)
    return points.join(first, "agent", "inner")


def _as(state: str, cause: str, epoch: Column | None = None) -> list[Column]:
    values = {
        "state": F.lit(state),
        "cause": F.lit(cause),
        "epoch": F.lit(None).cast("long") if epoch is None else epoch,
        "back": F.lit(0).cast("long"),
    }
    return [value.alias(name) for name, value in values.items()]


def _intervals(points: DataFrame) -> DataFrame:
    """The intervals between points: agent, since, state, cause, epoch, again, start, end; without unknown ones."""
    own = Window.partitionBy("agent", "run").orderBy("seq")
    sofar = own.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    ordered = points.withColumn("at", F.max("at").over(sofar))
    # Silence began after the last row, which is not earlier than the point before.
    ordered = ordered.withColumn("at", F.greatest(F.col("at") - F.col("back"), F.lag("at", 1, 0).over(own)))
    # An agent may be known before its epoch.
    coming = own.rowsBetween(Window.currentRow, Window.unboundedFollowing)
    known = (F.last("epoch", ignorenulls=True).over(sofar), F.first("epoch", ignorenulls=True).over(coming))
    ordered = ordered.withColumn("known", F.coalesce(*known))
    steps = ordered.select(
        *("agent", "since", "state", "cause", "known"),
        # Agents of libqmf2 always send the same epoch: the restart that the console saw is decisive.
        ((F.col("cause") == "restarted") & (F.col("known") == F.lag("known").over(own))).alias("again"),
        F.col("at").alias("start"),
        F.lead("at").over(own).alias("end"),
        F.lead("state").over(own).alias("next"),
    )
    short = F.col("end") - F.col("start") <= SETTLE_S * _SECOND
    settled = steps.withColumn(
        "state",
        F.when(F.col("state") != _ABSENT, F.col("state"))
        .when(short & (F.col("next") != DOWN), UNKNOWN)
        .otherwise(DOWN),
    )
    clear = settled.withColumn("start", F.greatest("start", "since")).where(F.col("end") > F.col("start"))
    return clear.where(F.col("state") != UNKNOWN).select(
        *("agent", "state", "cause", "again", "start", "end"),
        F.when(F.col("state") == UP, F.col("known")).alias("epoch"),
    )


def _merged(intervals: DataFrame) -> DataFrame:
    """Intervals that may overlap, merged to adjacent ones that don't."""
    is_up, is_down = ((F.col("state") == state).cast("int") for state in (UP, DOWN))
    starts = intervals.select(
        *("agent", F.col("start").alias("at"), is_up.alias("ups"), is_down.alias("downs")),
        *("state", "cause", "epoch", "again"),
    )
    ends = intervals.select(
        *("agent", F.col("end").alias("at"), (-is_up).alias("ups"), (-is_down).alias("downs")),
        *(F.lit(None).cast("string").alias(name) for name in ("state", "cause")),
        *(F.lit(None).cast("long").alias("epoch"), F.lit(False).alias("again")),
    )
    points = (
        starts.unionByName(ends)
        .groupBy("agent", "at")
        .agg(
            F.sum("ups").alias("ups"),
            F.sum("downs").alias("downs"),
            F.max(F.when(F.col("state") == UP, F.col("cause"))).alias("up_cause"),
            F.max(F.when(F.col("state") == DOWN, F.col("cause"))).alias("down_cause"),
            F.max("epoch").alias("epoch"),
            F.max("again").alias("again"),
        )
    )
    order = Window.partitionBy("agent").orderBy("at")
    sofar = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    states = points.select(
        *("agent", "at", "again"),
        F.when(F.sum("ups").over(sofar) > 0, UP).when(F.sum("downs").over(sofar) > 0, DOWN).otherwise(UNKNOWN)
        .alias("state"),
        F.col("up_cause"),
        F.col("down_cause"),
        F.last("epoch", ignorenulls=True).over(sofar).alias("epoch"),
    )  # fmt: skip
    before, up = F.lag("state").over(order), F.col("state") == UP
    restarted = up & (F.col("again") | (F.col("epoch") != F.lag("epoch").over(order)))
    marked = states.withColumn(
        "new", before.isNull() | (before != F.col("state")) | F.coalesce(restarted, F.lit(False))
    )
    kept = marked.where("new").select(
        *("agent", "state"),
        F.when(up, F.col("epoch")).alias("epoch"),
        F.when(up, F.coalesce("up_cause", F.lit("heartbeat")))
        .when(F.col("state") == DOWN, F.coalesce("down_cause", F.lit(_ABSENT)))
        .otherwise("not recorded")
        .alias("cause"),
        F.col("at").alias("start_ns"),
        F.lead("at").over(order).alias("end_ns"),
        F.lead("at", 2).over(order).alias("after"),
    )
    # The last one is the unknown interval after the last run; it has no end.
    closed = kept.where(F.col("end_ns").isNotNull()).withColumn("ongoing", F.col("after").isNull())
    return conform(closed, TABLES["availability"])
