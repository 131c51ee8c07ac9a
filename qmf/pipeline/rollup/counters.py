"""The growth of counters: the steps between neighbours of a list of samples, or of rollups."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from qmf.pipeline.rollup.schema import EXACT, SAMPLE_EXACT

#: The columns that order samples in time.
ORDER = ("_ts_ns", "_run", "_seq")

#: Samples of a counter, in order.
SAMPLES = T.ArrayType(
    T.StructType(
        [
            T.StructField("_ts_ns", T.LongType()),
            T.StructField("_run", T.StringType()),
            T.StructField("_seq", T.LongType()),
            T.StructField("_epoch", T.LongType()),
            T.StructField("value", SAMPLE_EXACT),
        ]
    )
)

#: The fields of a sample that `_sum_steps` reads.
_SAMPLE_FIELDS = ("value", "value", "_epoch", "_epoch")

#: The fields of a rollup that `_sum_steps` reads.
_ROLLUP_FIELDS = ("first_exact", "last_exact", "first_epoch", "last_epoch")


def steps_of_samples(rows: Column, continued: bool) -> Column:
    """The steps of `SAMPLES`, as a struct of `delta`, `resets`, and `back`: time ran backwards in the order of arrival.

    Args:
        rows: the samples, in the order of time.
        continued: see `qmf.pipeline.rollup.by_class.rollup`.
    """
    return _sum_steps(rows, _SAMPLE_FIELDS, continued, of_rollups=False)


def corrected_steps(steps: Column, rows: Column, continued: bool) -> Column:
    """`steps_of_samples`, or the same in the order of arrival where time ran backwards."""
    arrived = F.sort_array(
        F.transform(rows, lambda row: F.struct(row["_run"], row["_seq"], row["_epoch"], row["value"]))
    )
    return F.when(steps["back"], steps_of_samples(arrived, continued)).otherwise(steps)


def steps_of_rollups(rows: Column, continued: bool) -> Column:
    """The steps between and within rollups, as a struct of `delta` and `resets`."""
    return _sum_steps(rows, _ROLLUP_FIELDS, continued, of_rollups=True)


def _sum_steps(rows: Column, fields: tuple[str, str, str, str], continued: bool, *, of_rollups: bool) -> Column:
    """Add up the steps between neighbours of a list.

    Args:
        rows: the list.
        fields: of a row: its first value, its last one, and the epochs of both.
        continued: see `qmf.pipeline.rollup.by_class.rollup`.
        of_rollups: rows have a `delta_exact` and `resets` of their own, which are added; otherwise each is a sample
            with `_run` and `_seq`.
    """
    first, last, first_epoch, last_epoch = fields
    zero = F.lit(0).cast(EXACT)
    start = F.struct(
        F.lit(None).cast(EXACT).alias("last"),
        F.lit(None).cast(T.LongType()).alias("epoch"),
        F.lit(None).cast(T.StringType()).alias("run"),
        F.lit(None).cast(T.LongType()).alias("seq"),
        zero.alias("delta"),
        F.lit(0).cast(T.LongType()).alias("resets"),
        F.lit(False).alias("back"),
    )

    def step(state: Column, row: Column) -> Column:
        value = row[first].cast(EXACT)
        reset = value < state["last"]
        if not continued:
            reset = reset | F.coalesce(row[first_epoch] != state["epoch"], F.lit(False))
        is_reset = state["last"].isNotNull() & reset
        grown = F.when(state["last"].isNull(), zero).when(is_reset, value).otherwise(value - state["last"])
        own = F.coalesce(row["delta_exact"], zero) if of_rollups else zero
        resets = is_reset.cast(T.LongType()) + (F.coalesce(row["resets"], F.lit(0)) if of_rollups else F.lit(0))
        run, seq = (state["run"], state["seq"]) if of_rollups else (row["_run"], row["_seq"])
        back = state["back"] | F.coalesce((run == state["run"]) & (seq < state["seq"]), F.lit(False))
        return F.struct(
            row[last].cast(EXACT).alias("last"),
            row[last_epoch].cast(T.LongType()).alias("epoch"),
            run.alias("run"),
            seq.alias("seq"),
            (state["delta"] + grown + own).cast(EXACT).alias("delta"),
            (state["resets"] + resets).cast(T.LongType()).alias("resets"),
            back.alias("back"),
        )

    return F.aggregate(rows, start, step)
