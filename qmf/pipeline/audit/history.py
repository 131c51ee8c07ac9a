"""What properties were, and when: one row per object, property and value, with the interval in which it held.

The way of slowly changing dimensions, type 2: a row is never changed but by closing it, and the row without an end is
what holds now. Values follow each other in the order in which recorders heard of them. Times are those that the agent
told, unless its clock can't be right: a time later than that of hearing, or earlier than that of the value before, is
replaced by that of hearing. So intervals of one property neither overlap nor run backwards, whatever clocks do.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from qmf.pipeline.audit.schemas import LIFE_KEY, TABLES, shaped

CHANGED = "changed"


def history(properties: DataFrame, lives: DataFrame) -> DataFrame:
    """The history of each property.

    Args:
        properties: parts, folded.
        lives: the table.

    Returns:
        `TABLES["history"]`; `ended_by` is "changed", or what ended the object's life.
    """
    points = _ordered(properties)
    values = points.select(*LIFE_KEY, "order", "time_ns", F.explode("values").alias("property", "value"))
    own = Window.partitionBy(*LIFE_KEY, "property").orderBy("order")
    before = F.lag(F.struct("value")).over(own)
    changed = values.select(
        "*",
        before["value"].alias("previous"),
        (before.isNull() | ~before["value"].eqNullSafe(F.col("value"))).alias("new"),
    ).where("new")
    ends = lives.select(*LIFE_KEY, "ended_ns", F.col("ended_by").alias("life_ended_by"))
    closed = changed.withColumn("next_ns", F.lead("time_ns").over(own)).join(ends, list(LIFE_KEY), "left")
    is_last = F.col("next_ns").isNull()
    return shaped(
        closed.select(
            *LIFE_KEY,
            *("property", "value", "previous"),
            F.col("time_ns").alias("valid_from_ns"),
            F.when(is_last, F.greatest("ended_ns", F.when(F.col("ended_ns").isNotNull(), F.col("time_ns"))))
            .otherwise(F.col("next_ns"))
            .alias("valid_to_ns"),
            F.when(is_last, F.col("life_ended_by")).otherwise(CHANGED).alias("ended_by"),
        ),
        TABLES["history"],
    )


def _ordered(points: DataFrame) -> DataFrame:
    """Messages with their place in the order of hearing, and with times that don't run backwards."""
    run = Window.partitionBy(*LIFE_KEY, "run").orderBy("seq").rowsBetween(Window.unboundedPreceding, 0)
    heard = points.withColumn("heard", F.max("received_ns").over(run))
    own = Window.partitionBy(*LIFE_KEY).orderBy("heard", "run", "seq")
    sofar = own.rowsBetween(Window.unboundedPreceding, 0)
    told = F.least("time_ns", "heard")
    heard = heard.withColumn("told", told).withColumn(
        "before", F.max("told").over(own.rowsBetween(Window.unboundedPreceding, -1))
    )
    right = F.when(F.col("before") > F.col("told"), F.col("heard")).otherwise(F.col("told"))
    return (
        heard.withColumn("right", right)
        .withColumn("time_ns", F.max("right").over(sofar))
        .withColumn("order", F.struct("heard", "run", "seq"))
    )
