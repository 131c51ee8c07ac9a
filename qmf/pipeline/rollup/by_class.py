"""Rollups of one class: all members of an object and window are aggregated in one row, then separated."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from qmf.pipeline.aggregation.members import NumberMember, number_members, window_seconds
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.rollup.by_value import rollup_values, values_of
from qmf.pipeline.rollup.counters import ORDER, SAMPLES, corrected_steps, steps_of_samples
from qmf.pipeline.rollup.schema import (
    EXACT,
    ROLLUP,
    SAMPLE_EXACT,
    extremes,
    to_rollup,
)
from qmf.pipeline.spark.watermark import watermarked
from qmf.schema import Style

#: Columns of `ROLLUP` that are aggregates of a member, unlike the steps of counters.
_MEMBER_FIELDS = [
    *("member", "style", "unit", "samples", "first_ns", "last_ns", "first_epoch", "last_epoch"),
    *("first_exact", "last_exact", "low_exact", "high_exact", "weight", "total_exact"),
    *("total", "first", "last", "low", "high"),
]


def rollup(
    samples: DataFrame,
    versions: Sequence[ClassVersion],
    size: str,
    *,
    late: str | None = None,
    continued: bool = False,
) -> DataFrame:
    """Roll up samples.

    Args:
        samples: of one class, as `qmf.pipeline.frames` or the data source returns them; a batch or a stream.
        versions: of that class.
        size: of the windows, see `window_seconds`.
        late: how long a stream waits for late data, e.g. ``10 minutes``; what comes later is dropped. Of no use in a
            batch.
        continued: counters outlive restarts of their agents, as those do that an agent only forwards (the host agent's
            belong to the kernel); then only a lower value is a restart.

    Returns:
        `ROLLUP`; no rows for classes without numbers among their statistics.
    """
    members = number_members(versions)
    with_statistics = samples.where(F.col("_statistics"))
    if late is not None:
        with_statistics = watermarked(with_statistics, late)
    if not members:
        return rollup_values(values_of(with_statistics, versions), size, continued=continued)
    window = F.window("_ts", f"{window_seconds(size)} seconds").alias("window")
    grouped = with_statistics.groupBy(window, F.col("_agent").alias("agent"), F.col("_object").alias("object")).agg(
        F.array(*(_member(member) for member in members)).alias("members")
    )
    return (
        grouped.select("window", "agent", "object", F.explode("members").alias("m"))
        .where(F.col("m.samples") > 0)
        # Once for all counters: an expression for each would make the plan too large to compile.
        .withColumn("walked", steps_of_samples(F.col("m.rows"), continued))
        .withColumn("steps", corrected_steps(F.col("walked"), F.col("m.rows"), continued))
        .select(
            F.col("window.start").alias("window_start"),
            F.col("window.end").alias("window_end"),
            F.lit(versions[0].package).alias("package"),
            F.lit(versions[0].name).alias("class"),
            "agent",
            "object",
            *(F.col(f"m.{name}").alias(name) for name in _MEMBER_FIELDS),
            F.col("steps.delta").alias("delta_exact"),
            F.col("steps.resets").alias("resets"),
        )
        .transform(to_rollup)
    )


def _member(member: NumberMember) -> Column:
    """The aggregates of one member as a struct of `_MEMBER_FIELDS` and `rows`.

    Only counters need their samples in order, as `rows`; all else is aggregated in any order.
    """
    main, low, high, count = extremes(member)
    whole = member.whole
    present = main.isNotNull()
    weight = F.lit(1).cast(EXACT)
    if count is not None:
        # A mean of no samples has no meaning.
        present = present & (count > 0)
        weight = count.cast(SAMPLE_EXACT)
    value = main.cast(SAMPLE_EXACT) if whole else main.cast(T.DoubleType())
    sample = F.when(present, F.struct(*ORDER, "_epoch", value.alias("value")))
    first, last = F.min(sample), F.max(sample)
    null = F.lit(None)

    def both(name: str, value: Column) -> dict[str, Column]:
        return {f"{name}_exact": value if whole else null, name: value}

    values: dict[str, Column] = {
        "member": F.lit(member.name),
        "style": F.lit(member.style.value),
        "unit": F.lit(member.unit),
        "samples": F.count(F.when(present, F.lit(1))),
        "first_ns": first["_ts_ns"],
        "last_ns": last["_ts_ns"],
        "first_epoch": first["_epoch"],
        "last_epoch": last["_epoch"],
        "weight": F.sum(F.when(present, weight)),
        **both("first", first["value"]),
        **both("last", last["value"]),
        **both("low", F.min(F.when(present, low))),
        **both("high", F.max(F.when(present, high))),
        **both("total", F.sum(F.when(present, value if count is None else value * weight))),
    }
    types = {field.name: field.dataType for field in ROLLUP}
    rows = F.sort_array(F.collect_list(sample)) if member.style is Style.COUNT else null
    return F.struct(
        *(values[name].cast(types[name]).alias(name) for name in _MEMBER_FIELDS), rows.cast(SAMPLES).alias("rows")
    )
