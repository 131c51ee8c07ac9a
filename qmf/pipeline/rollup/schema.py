"""The table of rollups, and what its rows are made of: sizes of windows, and members with numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from qmf.pipeline.errors import PipelineError
from qmf.pipeline.lake.columns import ClassVersion, ColumnType, LakeColumn, MemberKind, MemberPart
from qmf.pipeline.spark.catalog import columns_by_member
from qmf.schema import TYPES, Style

#: Whole numbers of a rollup.
EXACT = T.DecimalType(38, 0)

#: Whole numbers of a sample: exact for all of 64 bits.
SAMPLE_EXACT = T.DecimalType(20, 0)

_SECONDS_PER_DAY = 86_400
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": _SECONDS_PER_DAY}

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

_WHOLE = (ColumnType.INT8, ColumnType.INT16, ColumnType.INT32, ColumnType.INT64, ColumnType.DECIMAL)
_NUMBERS = (*_WHOLE, ColumnType.FLOAT, ColumnType.DOUBLE)


def window_seconds(size: str) -> int:
    """The seconds of a window of this size, e.g. ``1m`` or ``6h``.

    Raises:
        PipelineError: not a size, or a day is not a multiple of it: windows would cross midnight, and so would files.
    """
    match = re.fullmatch(r"(\d+)([smhd])", size)
    value = int(match[1]) * _UNITS[match[2]] if match else 0
    if not value or _SECONDS_PER_DAY % value:
        raise PipelineError(f"a window is a part of a day such as 10s, 1m, 15m, 1h or 1d, not {size!r}")
    return value


def number_members(versions: Sequence[ClassVersion]) -> list[Sequence[LakeColumn]]:
    """The columns of each member that can be rolled up."""
    return [columns for columns in columns_by_member(versions).values() if _is_number(columns[0])]


def is_whole(columns: Sequence[LakeColumn]) -> bool:
    """True where a member's values are whole numbers."""
    return columns[0].column_type in _WHOLE


def _is_number(column: LakeColumn) -> bool:
    return (
        column.kind is MemberKind.STATISTIC and column.column_type in _NUMBERS and TYPES[column.type].base != "absTime"
    )


def extremes(columns: Sequence[LakeColumn]) -> tuple[Column, Column, Column, Column | None]:
    """The value of a member, its lowest and its highest; for mmas also the number of samples behind the value."""
    by_part = {column.part: column.name for column in columns}
    style = columns[0].style
    main = F.col(by_part[MemberPart.AVERAGE if style is Style.MMA else MemberPart.VALUE])
    low = by_part.get(MemberPart.LOW if style is Style.HILO else MemberPart.MIN)
    high = by_part.get(MemberPart.HIGH if style is Style.HILO else MemberPart.MAX)
    weight = F.col(by_part[MemberPart.COUNT]) if style is Style.MMA else None
    return main, F.col(low) if low else main, F.col(high) if high else main, weight


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
