"""How long objects lived, and how they ended.

An agent says when an object was created and when it was destroyed. It says nothing when it ends itself: then its
objects end with it, by the recorder's clock. So, whatever came first:

- destroyed: the agent said so;
- replaced: another object has the name now;
- agent restarted, agent ended, agent lost: what `availability` tells of the agent after the last sign of the object.
  Objects that outlive restarts, those whose ids have no epoch, are only lost or ended with their agent.

An object without an end is alive as far as is recorded.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from qmf.pipeline.audit.availability import DOWN, UP
from qmf.pipeline.audit.schemas import LIFE_KEY, TABLES, shaped

DESTROYED, REPLACED = "destroyed", "replaced"
RESTARTED, ENDED, LOST = "agent restarted", "agent ended", "agent lost"

#: Nanoseconds in which messages that an agent sent before its goodbye may still arrive
#: (`qmf.console.aio.agents.registry.GOODBYE_PERIOD`).
AFTERGLOW_NS = 10 * 10**9


def lives(objects: DataFrame, availability: DataFrame) -> DataFrame:
    """The life of each object.

    Args:
        objects: parts, folded.
        availability: the table.

    Returns:
        `TABLES["lives"]`.
    """
    known = objects.withColumnsRenamed({"first_ns": "first_seen_ns", "last_ns": "last_seen_ns"})
    name = Window.partitionBy("package", "class", "agent", "object").orderBy("received_ns", "created_ns", "epoch")
    # Where an agent doesn't tell when objects were created, the first sign of the next one must do.
    began = F.when(F.col("created_ns") > 0, F.col("created_ns")).otherwise(F.col("first_seen_ns"))
    known = known.withColumn("began", began).withColumn("next", F.lead("began").over(name))
    later = F.struct(F.greatest("next", "last_seen_ns").alias("at"), F.lit(REPLACED).alias("by"))
    known = known.withColumn("later", F.when(F.col("next").isNotNull(), later))
    ended = _with_ends(known, _ends(availability))
    by_agent = F.when((F.col("end.by") != RESTARTED) | F.col("transient"), F.col("end"))
    deleted = F.struct(F.col("deleted_ns").alias("at"), F.lit(DESTROYED).alias("by"))
    chosen = F.coalesce(
        F.when(F.col("deleted_ns").isNotNull(), deleted),
        # The agent's end before the name's next object; the latter where both are told at once.
        F.array_min(F.filter(F.array(by_agent, F.col("later")), lambda item: item.isNotNull())),
    )
    told = ended.withColumn("chosen", chosen).select(
        *LIFE_KEY,
        *("first_seen_ns", "last_seen_ns"),
        F.col("chosen.at").alias("ended_ns"),
        F.col("chosen.by").alias("ended_by"),
    )
    times = told.withColumn("created_ns", F.when(F.col("created_ns") > 0, F.col("created_ns")))
    return shaped(times, TABLES["lives"]).withColumn("created_ns", F.coalesce("created_ns", F.lit(0)))


def _ends(availability: DataFrame) -> DataFrame:
    """When objects of an agent ended with it: agent, until (last sign that such an object may have given), at, by."""
    own = Window.partitionBy("agent").orderBy("start_ns")
    is_up = F.col("state") == UP
    before = F.last(F.when(is_up, F.col("epoch")), ignorenulls=True).over(
        own.rowsBetween(Window.unboundedPreceding, -1)
    )
    said = F.col("cause") == "goodbye"
    at = F.col("start_ns")
    frame = availability.select(
        *("agent", at.alias("at")),
        F.when((F.col("state") == DOWN) & said, ENDED)
        .when(F.col("state") == DOWN, LOST)
        .when(is_up & ((F.col("cause") == "restarted") | (F.col("epoch") != before)), RESTARTED)
        .alias("by"),
        F.when(said, F.least(at + AFTERGLOW_NS, F.col("end_ns"))).otherwise(at).alias("until"),
    )
    return frame.where(F.col("by").isNotNull())


def _with_ends(known: DataFrame, ends: DataFrame) -> DataFrame:
    """Each life with the first end of its agent that is later than its last sign, or null.

    A sort per agent instead of a join of all lives with all ends.
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
    # Backwards in time; at the same time a life comes first, so that it doesn't see an end that isn't later, and the
    # earlier of two ends last.
    back = Window.partitionBy("agent").orderBy(F.col("order").desc(), F.col("end").isNotNull(), F.col("end.at").desc())
    seen = both.withColumn("end", F.last("end", ignorenulls=True).over(back.rowsBetween(Window.unboundedPreceding, 0)))
    return seen.where(F.col("life").isNotNull()).select("life.*", "end")


def _no_end() -> Column:
    return F.lit(None).cast("struct<at:bigint,by:string>").alias("end")
