"""The lifetimes of objects, and how they ended.

An agent publishes when an object was created and destroyed, but nothing about its objects when the agent itself ends:
then they end with it, by the recorder's clock. The end is the first of:

- destroyed: published by the agent;
- replaced: another object has the name now;
- agent restarted, agent ended, agent lost: the agent's `availability` after the last row of the object. Objects whose
  ids have no epoch outlive restarts: they only end or get lost with their agent.

An object without an end existed at the end of the recording.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from qmf.pipeline.audit.availability import DOWN, UP
from qmf.pipeline.audit.schemas import LIFE_KEY, TABLES, conform

DESTROYED, REPLACED = "destroyed", "replaced"
RESTARTED, ENDED, LOST = "agent restarted", "agent ended", "agent lost"

#: Nanoseconds in which messages that an agent sent before its goodbye may still arrive
#: (`qmf.console.aio.agents.GOODBYE_PERIOD`).
AFTERGLOW_NS = 10 * 10**9


def lives(objects: DataFrame, availability: DataFrame) -> DataFrame:
    """The lifetime of each object.

    Args:
        objects: parts, merged.
        availability: the table.

    Returns:
        `TABLES["lives"]`.
    """
    known = objects.withColumnsRenamed({"first_ns": "first_seen_ns", "last_ns": "last_seen_ns"})
    name = Window.partitionBy("package", "class", "agent", "object").orderBy("received_ns", "created_ns", "epoch")
    # Where an agent doesn't publish when objects are created, the first row of the next one is used.
    began = F.when(F.col("created_ns") > 0, F.col("created_ns")).otherwise(F.col("first_seen_ns"))
    known = known.withColumn("began", began).withColumn("next", F.lead("began").over(name))
    later = F.struct(F.greatest("next", "last_seen_ns").alias("at"), F.lit(REPLACED).alias("by"))
    known = known.withColumn("later", F.when(F.col("next").isNotNull(), later))
    ended = _with_ends(known, _ends(availability))
    by_agent = F.when((F.col("end.by") != RESTARTED) | F.col("transient"), F.col("end"))
    deleted = F.struct(F.col("deleted_ns").alias("at"), F.lit(DESTROYED).alias("by"))
    chosen = F.coalesce(
        F.when(F.col("deleted_ns").isNotNull(), deleted),
        # The earlier of the agent's end and the next object of this name; the latter at the same time.
        F.array_min(F.filter(F.array(by_agent, F.col("later")), lambda item: item.isNotNull())),
    )
    chosen_ends = ended.withColumn("chosen", chosen).select(
        *LIFE_KEY,
        *("first_seen_ns", "last_seen_ns"),
        F.col("chosen.at").alias("ended_ns"),
        F.col("chosen.by").alias("ended_by"),
    )
    times = chosen_ends.withColumn("created_ns", F.when(F.col("created_ns") > 0, F.col("created_ns")))
    return conform(times, TABLES["lives"]).withColumn("created_ns", F.coalesce("created_ns", F.lit(0)))


def _ends(availability: DataFrame) -> DataFrame:
    """When objects of an agent ended with it: agent, until (latest row that such an object can have), at, by."""
    own = Window.partitionBy("agent").orderBy("start_ns")
    is_up = F.col("state") == UP
    before = F.last(F.when(is_up, F.col("epoch")), ignorenulls=True).over(
        own.rowsBetween(Window.unboundedPreceding, -1)
    )
    is_goodbye = F.col("cause") == "goodbye"
    at = F.col("start_ns")
    frame = availability.select(
        *("agent", at.alias("at")),
        F.when((F.col("state") == DOWN) & is_goodbye, ENDED)
        .when(F.col("state") == DOWN, LOST)
        .when(is_up & ((F.col("cause") == "restarted") | (F.col("epoch") != before)), RESTARTED)
        .alias("by"),
        F.when(is_goodbye, F.least(at + AFTERGLOW_NS, F.col("end_ns"))).otherwise(at).alias("until"),
    )
    return frame.where(F.col("by").isNotNull())


def _with_ends(known: DataFrame, ends: DataFrame) -> DataFrame:
    """Each lifetime with the first end of its agent that is later than its last row, or null.

    A sort per agent instead of a join of all lifetimes with all ends.
    """
    key = F.struct(*(F.col(name) for name in known.columns))
    both = known.select("agent", F.col("received_ns").alias("order"), key.alias("life"), _no_end()).unionByName(
        ends.select(
            "agent",
            F.col("until").alias("order"),
            F.lit(None).cast(known.select(key).schema[0].dataType).alias("life"),
            F.struct("at", "by").alias("end"),
        )
    )  # fmt: skip
    # Backwards in time; at the same time, a lifetime comes first so that only later ends apply, and the earlier of two
    # ends comes last.
    back = Window.partitionBy("agent").orderBy(F.col("order").desc(), F.col("end").isNotNull(), F.col("end.at").desc())
    seen = both.withColumn("end", F.last("end", ignorenulls=True).over(back.rowsBetween(Window.unboundedPreceding, 0)))
    return seen.where(F.col("life").isNotNull()).select("life.*", "end")


def _no_end() -> Column:
    return F.lit(None).cast("struct<at:bigint,by:string>").alias("end")
