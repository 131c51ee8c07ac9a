"""Rollups of many classes together: samples become one row per value, with the same columns for all classes."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from qmf.pipeline.aggregation.members import NumberMember, number_members, window_seconds
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.rollup.counters import ORDER, SAMPLES, corrected_steps, steps_of_samples
from qmf.pipeline.rollup.schema import (
    EXACT,
    KEY,
    SAMPLE_EXACT,
    extremes,
    to_rollup,
)
from qmf.schema import Style

#: The columns that a value takes from its sample.
_SAMPLE_COLUMNS = ("_ts", *ORDER, "_epoch")

#: One statistic of a sample: the value itself and its extremes, as whole numbers or as doubles.
_VALUE = T.StructType(
    [
        *(T.StructField(name, T.StringType()) for name in ("member", "style", "unit")),
        *(T.StructField(name, SAMPLE_EXACT) for name in ("exact", "low_exact", "high_exact", "weight")),
        *(T.StructField(name, T.DoubleType()) for name in ("real", "low", "high")),
    ]
)


def values_of(samples: DataFrame, versions: Sequence[ClassVersion]) -> DataFrame:
    """Samples as one row per value of a statistic: the same columns for all classes, so that frames can be united.

    For `rollup_values`. It costs more per value than `by_class.rollup`, and less per class.

    Args:
        samples, versions: as of `by_class.rollup`.

    Returns:
        columns of the sample, of its object, and `_VALUE`; no rows for classes without numbers among their statistics.
    """
    members = number_members(versions)
    names = {
        "package": F.lit(versions[0].package),
        "class": F.lit(versions[0].name),
        "agent": F.col("_agent"),
        "object": F.col("_object"),
    }
    array = F.array(*(_value(member) for member in members)) if members else F.array().cast(T.ArrayType(_VALUE))
    exploded = samples.where(F.col("_statistics")).select(
        *_SAMPLE_COLUMNS, *(value.alias(name) for name, value in names.items()), F.explode(array).alias("value")
    )
    present = F.col("exact").isNotNull() | F.col("real").isNotNull()
    return exploded.select(*_SAMPLE_COLUMNS, *names, "value.*").where(present)


def rollup_values(values: DataFrame, size: str, *, continued: bool = False) -> DataFrame:
    """Roll up values, those of many classes together if needed.

    Args:
        values: as `values_of` returns them; a batch or a stream.
        size, continued: as of `by_class.rollup`.

    Returns:
        `ROLLUP`, the same as `by_class.rollup` makes of each class.
    """
    length = f"{window_seconds(size)} seconds"
    is_exact = F.col("exact").isNotNull()
    sample = F.struct(*ORDER, "_epoch", "exact", "real")
    amount = F.when(F.col("weight").isNull(), F.col("exact").cast(EXACT)).otherwise(
        (F.col("exact") * F.col("weight")).cast(EXACT)
    )
    weight = F.coalesce("weight", F.lit(1).cast(SAMPLE_EXACT))
    is_counter = F.col("style") == Style.COUNT.value
    # Only counters need their samples in order; all else is aggregated in any order.
    counter_sample = F.when(is_counter, F.struct(*ORDER, "_epoch", F.col("exact").alias("value")))
    grouped = values.groupBy(F.window("_ts", length).alias("window"), *KEY).agg(
        F.count("*").alias("samples"),
        F.min(sample).alias("f"),
        F.max(sample).alias("l"),
        F.sum(weight).alias("weight"),
        F.min("low_exact").alias("low_exact"),
        F.min("low").alias("low"),
        F.max("high_exact").alias("high_exact"),
        F.max("high").alias("high"),
        F.sum(amount).alias("total_exact"),
        F.sum(F.when(~is_exact, F.col("real") * weight.cast(T.DoubleType()))).alias("total"),
        F.sort_array(F.collect_list(counter_sample)).cast(SAMPLES).alias("rows"),
    )
    ends = (("f", "first"), ("l", "last"))
    return (
        grouped.withColumn("walked", F.when(is_counter, steps_of_samples(F.col("rows"), continued)))
        .withColumn("steps", F.when(is_counter, corrected_steps(F.col("walked"), F.col("rows"), continued)))
        .select(
            F.col("window.start").alias("window_start"),
            F.col("window.end").alias("window_end"),
            *KEY,
            *("samples", "weight", "total_exact", "low_exact", "high_exact"),
            *(F.col(f"{row}._ts_ns").alias(f"{name}_ns") for row, name in ends),
            *(F.col(f"{row}._epoch").alias(f"{name}_epoch") for row, name in ends),
            *(F.col(f"{row}.exact").alias(f"{name}_exact") for row, name in ends),
            *(_either(f"{row}.exact", f"{row}.real").alias(name) for row, name in ends),
            *(_either(f"{name}_exact", name).alias(name) for name in ("low", "high", "total")),
            F.col("steps.delta").alias("delta_exact"),
            F.col("steps.resets").alias("resets"),
        )
        .transform(to_rollup)
    )


def _either(exact: str, real: str) -> Column:
    return F.coalesce(F.col(exact).cast(T.DoubleType()), F.col(real))


def _value(member: NumberMember) -> Column:
    """One member of a sample as `_VALUE`: whole numbers exactly, others as double; both null where there is none."""
    main, low, high, count = extremes(member)
    if count is not None:
        # A mean of no samples has no meaning.
        main = F.when(count > 0, main)
    lowest, highest = (F.when(main.isNotNull(), extreme) for extreme in (low, high))
    null = F.lit(None)
    numbers, nulls = (main, lowest, highest), (null,) * 3
    # In the order of the fields, and cast as a whole: each call of Spark from Python costs time.
    names = (F.lit(member.name), F.lit(member.style.value), F.lit(member.unit))
    whole = member.whole
    weight = null if count is None else count
    return F.struct(*names, *(numbers if whole else nulls), weight, *(nulls if whole else numbers)).cast(_VALUE)
