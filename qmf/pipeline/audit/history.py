"""The history of properties: one row per object, property and value, with the interval in which the value was valid.

These are slowly changing dimensions of type 2: a row changes only when it is closed, and the row without an end is the
current value. Values are ordered by their arrival. Their times are the agent's, unless its clock can't be right: a time
after the arrival, or before that of the previous value, is replaced by the time of arrival. So the intervals of one
property neither overlap nor run backwards, whatever the clocks do.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from qmf.pipeline.audit.schemas import LIFE_KEY, TABLES, conform

CHANGED = "changed"


def history(properties: DataFrame, lives: DataFrame) -> DataFrame:
    """The history of each property.

    Args:
        properties: parts, merged.
        lives: the table.

    Returns:
        `TABLES["history"]`; `ended_by` is "changed", or the end of the object's lifetime.
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
    return conform(
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
    """Messages in the order of arrival, with times that don't run backwards."""
    run = Window.partitionBy(*LIFE_KEY, "run").orderBy("seq").rowsBetween(Window.unboundedPreceding, 0)
    arrived = points.withColumn("arrival", F.max("received_ns").over(run))
    own = Window.partitionBy(*LIFE_KEY).orderBy("arrival", "run", "seq")
    sofar = own.rowsBetween(Window.unboundedPreceding, 0)
    claimed = F.least("time_ns", "arrival")
    arrived = arrived.withColumn("claimed", claimed).withColumn(
        "before", F.max("claimed").over(own.rowsBetween(Window.unboundedPreceding, -1))
    )
    valid = F.when(F.col("before") > F.col("claimed"), F.col("arrival")).otherwise(F.col("claimed"))
    return (
        arrived.withColumn("valid", valid)
        .withColumn("time_ns", F.max("valid").over(sofar))
        .withColumn("order", F.struct("arrival", "run", "seq"))
    )
