"""The table of rollups, and what its rows are made of."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from qmf.pipeline.aggregation.members import NumberMember

#: Whole numbers of a rollup.
EXACT = T.DecimalType(38, 0)

#: Whole numbers of a sample: exact for all of 64 bits.
SAMPLE_EXACT = T.DecimalType(20, 0)

#: The member that a row describes.
KEY = ("package", "class", "agent", "object", "member", "style", "unit")

#: The table of rollups.
ROLLUP = T.StructType(
    [
        T.StructField("window_start", T.TimestampType()),
        T.StructField("window_end", T.TimestampType()),
        *(T.StructField(name, T.StringType()) for name in KEY),
        T.StructField("samples", T.LongType()),
        T.StructField("first_ns", T.LongType()),
        T.StructField("last_ns", T.LongType()),
        T.StructField("first_epoch", T.LongType()),
        T.StructField("last_epoch", T.LongType()),
        T.StructField("first_exact", EXACT),
        T.StructField("last_exact", EXACT),
        T.StructField("low_exact", EXACT),
        T.StructField("high_exact", EXACT),
        T.StructField("delta_exact", EXACT),
        T.StructField("resets", T.LongType()),
        T.StructField("weight", EXACT),
        T.StructField("total_exact", EXACT),
        T.StructField("total", T.DoubleType()),
        T.StructField("first", T.DoubleType()),
        T.StructField("last", T.DoubleType()),
        T.StructField("low", T.DoubleType()),
        T.StructField("high", T.DoubleType()),
        T.StructField("mean", T.DoubleType()),
        T.StructField("delta", T.DoubleType()),
        T.StructField("rate", T.DoubleType()),
    ]
)


def extremes(member: NumberMember) -> tuple[Column, Column, Column, Column | None]:
    """The value of a member, its lowest and its highest; for mmas also the number of samples behind the value."""
    count = F.col(member.count) if member.count else None
    return F.col(member.value), F.col(member.low), F.col(member.high), count


def to_rollup(frame: DataFrame) -> DataFrame:
    """Add the columns that follow from others, and bring all into the order and types of `ROLLUP`."""
    span = (F.col("last_ns") - F.col("first_ns")) / F.lit(1e9)
    delta = F.col("delta_exact").cast(T.DoubleType())
    derived = {
        "mean": F.when(F.col("weight") > 0, F.col("total") / F.col("weight").cast(T.DoubleType())),
        "delta": delta,
        "rate": F.when(span > 0, delta / span),
    }
    return frame.select(
        *((derived.get(field.name, F.col(field.name))).cast(field.dataType).alias(field.name) for field in ROLLUP)
    )
