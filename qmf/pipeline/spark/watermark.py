"""A watermark that one agent with a wrong clock cannot move."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

#: The name of the metric that counts rows from the future in a stream's progress.
AHEAD = "ahead"

#: Seconds that an agent's clock may always be ahead of the recorder's.
_SKEW = 60


def watermarked(frame: DataFrame, late: str) -> DataFrame:
    """Set a watermark on `_ts` of a stream, and drop rows from the future.

    A single row from the far future would move the watermark there, and the rows of all other agents would be late. So
    rows whose time is after their arrival by more than `late` and more than a minute are dropped; the stream's progress
    counts them as `AHEAD`. A batch keeps them.

    Args:
        frame: a stream of a lake.
        late: how long to wait for late rows, e.g. ``10 minutes``.
    """
    arrived = F.expr("timestamp_micros(_received_ns div 1000)")
    allowed = F.greatest(F.expr(f"interval {late}"), F.expr(f"interval {_SKEW} seconds"))
    ahead = F.col("_ts") > arrived + allowed
    counted = frame.observe(AHEAD, F.count(F.when(ahead, F.lit(1))).alias("rows"))
    return counted.where(~ahead).withWatermark("_ts", late)
