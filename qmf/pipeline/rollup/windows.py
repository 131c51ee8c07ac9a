"""Samples of objects as one row per object, window and member. Steps are functions from frame to frame.

What a row says depends on the member's style:

- counters: `delta` and `rate`. A value below the one before, or another epoch of the agent, is a restart: counted from
  zero, told in `resets`. Only steps between two samples of the window count; `coarser` adds the steps between windows.
  Samples count in the order of their times; where that contradicts the order in which one recorder got them, the
  agent's clock was set back, and the latter holds;
- gauges (DIRECT numbers): `first`, `last`, `low`, `high`, `mean`;
- hilos: the same, with `low` and `high` from the agent's own extremes;
- mmas: `low`, `high`, and the mean weighted by the number of samples behind each.

Whole numbers are exact in `*_exact` columns, decimal(38, 0); every number is there as a double, too. A row needs no
other window, so that late data changes one window only, streams work, and running a window again gives the same row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from qmf.pipeline.errors import PipelineError
from qmf.pipeline.lake.columns import Cell, Group, Part, Table
from qmf.pipeline.lake.columns import Column as Member
from qmf.pipeline.spark.catalog import columns_by_member
from qmf.pipeline.spark.watermark import watermarked
from qmf.schema import TYPES, Style

EXACT = T.DecimalType(38, 0)

_SECONDS_PER_DAY = 86_400
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": _SECONDS_PER_DAY}

#: Whose row it is.
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

#: Cells that can be rolled up.
_WHOLE = (Cell.INT8, Cell.INT16, Cell.INT32, Cell.INT64, Cell.DECIMAL)
_NUMBERS = (*_WHOLE, Cell.FLOAT, Cell.DOUBLE)

_ORDER = ("_ts_ns", "_run", "_seq")

#: What a value takes from its sample.
_OF_SAMPLE = ("_ts", *_ORDER, "_epoch")

#: Whole numbers of a sample: exact for all of 64 bits.
_SHORT = T.DecimalType(20, 0)

_EXACTS, _REALS = ("exact", "low_exact", "high_exact"), ("real", "low", "high")

#: One statistic of a sample: the value itself and its extremes, in the columns of one of the two kinds of numbers.
_VALUE = T.StructType(
    [
        *(T.StructField(name, T.StringType()) for name in ("member", "style", "unit")),
        *(T.StructField(name, _SHORT) for name in (*_EXACTS, "weight")),
        *(T.StructField(name, T.DoubleType()) for name in _REALS),
    ]
)

#: Samples of a counter, in order.
_ROWS = T.ArrayType(
    T.StructType(
        [
            T.StructField("_ts_ns", T.LongType()),
            T.StructField("_run", T.StringType()),
            T.StructField("_seq", T.LongType()),
            T.StructField("_epoch", T.LongType()),
            T.StructField("value", T.DecimalType(20, 0)),
        ]
    )
)


def seconds(size: str) -> int:
    """How long a window of this size is, e.g. ``1m`` or ``6h``.

    Raises:
        PipelineError: no size, or days are no multiple of it: windows would cross midnight, and with it the folders.
    """
    match = re.fullmatch(r"(\d+)([smhd])", size)
    value = int(match[1]) * _UNITS[match[2]] if match else 0
    if not value or _SECONDS_PER_DAY % value:
        raise PipelineError(f"a window is a part of a day such as 10s, 1m, 15m, 1h or 1d, not {size!r}")
    return value


def rollup(
    samples: DataFrame, of: Sequence[Table], size: str, *, late: str | None = None, continued: bool = False
) -> DataFrame:
    """Roll samples up.

    Args:
        samples: of one class, as `qmf.pipeline.spark.read` or the data source give them; a batch or a stream.
        of: the versions of that class.
        size: of the windows, see `seconds`.
        late: a stream waits this long for late data, e.g. ``10 minutes``; what comes later is dropped. No use in a
            batch.
        continued: counters go on where an agent starts anew, as those that an agent only passes on do (the host
            agent's belong to the kernel); only a lower value is a restart then.

    Returns:
        `ROLLUP`; no rows for classes without numbers among their statistics.
    """
    numbers = _numbers(of)
    told = samples.where(F.col("_statistics"))
    told = told if late is None else watermarked(told, late)
    if not numbers:
        return rolled(values(told, of), size, continued=continued)
    window = F.window("_ts", f"{seconds(size)} seconds").alias("window")
    grouped = told.groupBy(window, F.col("_agent").alias("agent"), F.col("_object").alias("object")).agg(
        F.array(*(_member(columns) for columns in numbers)).alias("members")
    )
    return (
        grouped.select("window", "agent", "object", F.explode("members").alias("m"))
        .where(F.col("m.samples") > 0)
        # Once for all counters: an expression for each would make the plan too large to compile.
        .withColumn("walked", _walk(F.col("m.rows"), _SAMPLE, continued, inner=False))
        .withColumn("steps", _corrected(F.col("walked"), F.col("m.rows"), continued))
        .select(
            F.col("window.start").alias("window_start"),
            F.col("window.end").alias("window_end"),
            F.lit(of[0].package).alias("package"),
            F.lit(of[0].name).alias("class"),
            "agent",
            "object",
            *(F.col(f"m.{name}").alias(name) for name in _MEMBER_FIELDS),
            F.col("steps.delta").alias("delta_exact"),
            F.col("steps.resets").alias("resets"),
        )
        .transform(_finished)
    )


def values(samples: DataFrame, of: Sequence[Table]) -> DataFrame:
    """Samples as one row per value of a statistic: the same columns for all classes, so that they can be united.

    For `rolled`. It costs more for each value than `rollup` does, and less for each class.

    Args:
        samples, of: as of `rollup`.

    Returns:
        `_OF_SAMPLE`, whose it is, and `_VALUE`; no rows for classes without numbers among their statistics.
    """
    numbers = _numbers(of)
    told = {
        "package": F.lit(of[0].package),
        "class": F.lit(of[0].name),
        "agent": F.col("_agent"),
        "object": F.col("_object"),
    }
    found = F.array(*(_value(columns) for columns in numbers)) if numbers else F.array().cast(T.ArrayType(_VALUE))
    exploded = samples.where(F.col("_statistics")).select(
        *_OF_SAMPLE, *(value.alias(name) for name, value in told.items()), F.explode(found).alias("value")
    )
    return exploded.select(*_OF_SAMPLE, *told, "value.*").where(F.col("exact").isNotNull() | F.col("real").isNotNull())


def rolled(each: DataFrame, size: str, *, continued: bool = False) -> DataFrame:
    """Roll values up, those of many classes together if need be.

    Args:
        each: as `values` gives them; a batch or a stream.
        size, continued: as of `rollup`.

    Returns:
        `ROLLUP`, the same as `rollup` makes of each class.
    """
    length = f"{seconds(size)} seconds"
    is_whole = F.col("exact").isNotNull()
    sample = F.struct(*_ORDER, "_epoch", "exact", "real")
    amount = F.when(F.col("weight").isNull(), F.col("exact").cast(EXACT)).otherwise(
        (F.col("exact") * F.col("weight")).cast(EXACT)
    )
    heavy = F.coalesce("weight", F.lit(1).cast(_SHORT))
    is_counter = F.col("style") == Style.COUNT.value
    # Only counters need their samples in order; all else is folded as the samples come.
    counted = F.when(is_counter, F.struct(*_ORDER, "_epoch", F.col("exact").alias("value")))
    grouped = each.groupBy(F.window("_ts", length).alias("window"), *KEY).agg(
        F.count("*").alias("samples"),
        F.min(sample).alias("f"),
        F.max(sample).alias("l"),
        F.sum(heavy).alias("weight"),
        F.min("low_exact").alias("low_exact"),
        F.min("low").alias("low"),
        F.max("high_exact").alias("high_exact"),
        F.max("high").alias("high"),
        F.sum(amount).alias("total_exact"),
        F.sum(F.when(~is_whole, F.col("real") * heavy.cast(T.DoubleType()))).alias("total"),
        F.sort_array(F.collect_list(counted)).cast(_ROWS).alias("rows"),
    )
    ends = (("f", "first"), ("l", "last"))
    return (
        grouped.withColumn("walked", F.when(is_counter, _walk(F.col("rows"), _SAMPLE, continued, inner=False)))
        .withColumn("steps", F.when(is_counter, _corrected(F.col("walked"), F.col("rows"), continued)))
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
        .transform(_finished)
    )


def coarser(finer: DataFrame, size: str, *, continued: bool = False) -> DataFrame:
    """Rollups of rollups: the same rows that the samples would give, and exactly so for whole numbers.

    Args:
        finer: `ROLLUP` of one size.
        size: of the new windows: a multiple of the old.
        continued: as of `rollup`.
    """
    length = f"{seconds(size)} seconds"
    parts = [field.name for field in ROLLUP if field.name not in (*KEY, "window_start", "window_end")]
    grouped = finer.groupBy(F.window("window_start", length).alias("window"), *KEY).agg(
        F.sort_array(F.collect_list(F.struct("first_ns", *(name for name in parts if name != "first_ns")))).alias(
            "rows"
        )
    )
    rows = F.col("rows")
    walked = _walk(rows, ("first_exact", "last_exact", "first_epoch", "last_epoch"), continued, inner=True)
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
        F.when(is_counter, walked["delta"]).alias("delta_exact"),
        F.when(is_counter, walked["resets"]).alias("resets"),
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
    return merged.transform(_finished)


#: Fields of a sample of a counter, as `_walk` wants them.
_SAMPLE = ("value", "value", "_epoch", "_epoch")


#: Columns of `ROLLUP` that are known for each member before the steps of counters are.
_MEMBER_FIELDS = [
    *("member", "style", "unit", "samples", "first_ns", "last_ns", "first_epoch", "last_epoch"),
    *("first_exact", "last_exact", "low_exact", "high_exact", "weight", "total_exact"),
    *("total", "first", "last", "low", "high"),
]


def _numbers(of: Sequence[Table]) -> list[Sequence[Member]]:
    """The columns of each member that can be rolled up."""
    return [columns for columns in columns_by_member(of).values() if _is_number(columns)]


def _is_number(columns: Sequence[Member]) -> bool:
    first = columns[0]
    return first.group is Group.STATISTIC and first.cell in _NUMBERS and TYPES[first.type].base != "absTime"


def _either(exact: str, real: str) -> Column:
    return F.coalesce(F.col(exact).cast(T.DoubleType()), F.col(real))


def _extremes(columns: Sequence[Member]) -> tuple[Column, Column, Column, Column | None]:
    """Of one member the value itself, the lowest and the highest, and of mmas the number of samples behind it."""
    by_part = {column.part: column.name for column in columns}
    style = columns[0].style
    main = F.col(by_part[Part.AVERAGE if style is Style.MMA else Part.VALUE])
    low = by_part.get(Part.LOW if style is Style.HILO else Part.MIN)
    high = by_part.get(Part.HIGH if style is Style.HILO else Part.MAX)
    weight = F.col(by_part[Part.COUNT]) if style is Style.MMA else None
    return main, F.col(low) if low else main, F.col(high) if high else main, weight


def _member(columns: Sequence[Member]) -> Column:
    """One member of a group as a struct of `_MEMBER_FIELDS` and `rows`, made of aggregates.

    Only counters need their samples in order, as `rows`; all else is folded as the samples come.
    """
    main, low, high, count = _extremes(columns)
    whole = columns[0].cell in _WHOLE
    present = main.isNotNull()
    weight = F.lit(1).cast(EXACT)
    if count is not None:
        # Without a sample behind it, it says nothing.
        present = present & (count > 0)
        weight = count.cast(_SHORT)
    value = main.cast(_SHORT) if whole else main.cast(T.DoubleType())
    sample = F.when(present, F.struct(*_ORDER, "_epoch", value.alias("value")))
    first, last = F.min(sample), F.max(sample)
    nothing = F.lit(None)

    def both(name: str, value: Column) -> dict[str, Column]:
        return {f"{name}_exact": value if whole else nothing, name: value}

    values: dict[str, Column] = {
        "member": F.lit(columns[0].member),
        "style": F.lit(columns[0].style.value),
        "unit": F.lit(columns[0].unit),
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
    rows = F.sort_array(F.collect_list(sample)) if columns[0].style is Style.COUNT else nothing
    return F.struct(
        *(values[name].cast(types[name]).alias(name) for name in _MEMBER_FIELDS), rows.cast(_ROWS).alias("rows")
    )


def _value(columns: Sequence[Member]) -> Column:
    """One member of a sample as `_VALUE`: whole numbers exactly, others as double; both null where there is none."""
    main, low, high, count = _extremes(columns)
    if count is not None:
        # Without a sample behind it, it says nothing.
        main = F.when(count > 0, main)
    lowest, highest = (F.when(main.isNotNull(), extreme) for extreme in (low, high))
    nothing = F.lit(None)
    own, other = (main, lowest, highest), (nothing,) * 3
    # In the order of the fields, and cast as a whole: each call of Spark's from Python costs.
    named = (F.lit(columns[0].member), F.lit(columns[0].style.value), F.lit(columns[0].unit))
    whole = columns[0].cell in _WHOLE
    weight = nothing if count is None else count
    return F.struct(*named, *(own if whole else other), weight, *(other if whole else own)).cast(_VALUE)


def _corrected(walked: Column, rows: Column, continued: bool) -> Column:
    """The steps of a counter: as `walked` in the order of time, or in that of arrival where time went back."""
    arrived = F.sort_array(
        F.transform(rows, lambda row: F.struct(row["_run"], row["_seq"], row["_epoch"], row["value"]))
    )
    return F.when(walked["back"], _walk(arrived, _SAMPLE, continued, inner=False)).otherwise(walked)


def _walk(rows: Column, fields: tuple[str, str, str, str], continued: bool, *, inner: bool) -> Column:
    """Add up the steps between neighbours of a list: `delta`, `resets`, and whether time went `back`.

    Args:
        rows: the list.
        fields: of a row: its first value, its last one, and the epochs of both.
        continued: see `rollup`.
        inner: rows have a `delta_exact` and `resets` of their own that count, too; otherwise each is a sample with
            `_run` and `_seq`.
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
        own = F.coalesce(row["delta_exact"], zero) if inner else zero
        resets = is_reset.cast(T.LongType()) + (F.coalesce(row["resets"], F.lit(0)) if inner else F.lit(0))
        run, seq = (state["run"], state["seq"]) if inner else (row["_run"], row["_seq"])
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


def _sum(rows: Column, name: str, kind: T.DataType) -> Column:
    """The sum of a field; null where it is null in all rows."""
    present = F.filter(rows[name], lambda value: value.isNotNull())
    added = F.aggregate(present, F.lit(0).cast(kind), lambda total, value: (total + value).cast(kind))
    return F.when(F.size(present) > 0, added)


def _finished(frame: DataFrame) -> DataFrame:
    """Add what follows from the other columns, and bring all into the table's order and types."""
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
