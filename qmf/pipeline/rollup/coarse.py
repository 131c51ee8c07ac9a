"""Rollups of rollups: larger windows of smaller ones."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from qmf.pipeline.aggregation.members import window_seconds
from qmf.pipeline.rollup.counters import steps_of_rollups
from qmf.pipeline.rollup.schema import EXACT, KEY, ROLLUP, to_rollup
from qmf.schema import Style


def coarser(finer: DataFrame, size: str, *, continued: bool = False) -> DataFrame:
    """Roll rollups up to larger windows: the same rows as from the samples, exactly so for whole numbers.

    Args:
        finer: `ROLLUP` of one size.
        size: of the new windows: a multiple of the old size.
        continued: as of `rollup`.
    """
    length = f"{window_seconds(size)} seconds"
    parts = [field.name for field in ROLLUP if field.name not in (*KEY, "window_start", "window_end")]
    grouped = finer.groupBy(F.window("window_start", length).alias("window"), *KEY).agg(
        F.sort_array(F.collect_list(F.struct("first_ns", *(name for name in parts if name != "first_ns")))).alias(
            "rows"
        )
    )
    rows = F.col("rows")
    steps = steps_of_rollups(rows, continued)
    is_counter = F.col("style") == Style.COUNT.value
    merged = grouped.select(
        F.col("window.start").alias("window_start"),
        F.col("window.end").alias("window_end"),
        *KEY,
        _sum(rows, "samples", T.LongType()).alias("samples"),
        rows[0]["first_ns"].alias("first_ns"),
        F.element_at(rows, -1)["last_ns"].alias("last_ns"),
        rows[0]["first_epoch"].alias("first_epoch"),
        F.element_at(rows, -1)["last_epoch"].alias("last_epoch"),
        rows[0]["first_exact"].alias("first_exact"),
        F.element_at(rows, -1)["last_exact"].alias("last_exact"),
        F.array_min(rows["low_exact"]).alias("low_exact"),
        F.array_max(rows["high_exact"]).alias("high_exact"),
        F.when(is_counter, steps["delta"]).alias("delta_exact"),
        F.when(is_counter, steps["resets"]).alias("resets"),
        _sum(rows, "weight", EXACT).alias("weight"),
        _sum(rows, "total_exact", EXACT).alias("total_exact"),
        F.coalesce(_sum(rows, "total_exact", EXACT).cast(T.DoubleType()), _sum(rows, "total", T.DoubleType())).alias(
            "total"
        ),
        rows[0]["first"].alias("first"),
        F.element_at(rows, -1)["last"].alias("last"),
        F.array_min(rows["low"]).alias("low"),
        F.array_max(rows["high"]).alias("high"),
    )
    return merged.transform(to_rollup)


def _sum(rows: Column, name: str, type: T.DataType) -> Column:
    """The sum of a field; null where it is null in all rows."""
    present = F.filter(rows[name], lambda value: value.isNotNull())
    added = F.aggregate(present, F.lit(0).cast(type), lambda total, value: (total + value).cast(type))
    return F.when(F.size(present) > 0, added)
