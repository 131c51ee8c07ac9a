"""The job `rollup` over a lake: which classes, from where to where, as a batch or a stream; `rollup` has the steps.

Both write the same rows, to tables of their own (see `sinks`)::

    OUT/batch/qmf_size=1m/qmf_package=P/qmf_class=C/qmf_date=2030-01-31/*.parquet
    OUT/stream/qmf_size=1m/qmf_package=P/qmf_class=C/qmf_batch=7/*.parquet
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import reduce

import attrs
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from qmf.pipeline.frames import Frames
from qmf.pipeline.lake.columns import Table
from qmf.pipeline.lake.layout import NAME
from qmf.pipeline.rollup.windows import rolled, rollup, seconds, values
from qmf.pipeline.spark import sinks
from qmf.pipeline.spark.queries import Counted, Say, progress

#: Samples from which on a class is rolled up by itself.
LARGE = 100_000

#: The folders between a size and its days.
_FOLDERS = ("qmf_package", "qmf_class")


@attrs.frozen(kw_only=True)
class RollupOptions:
    """What to roll up.

    Attributes:
        lake: path, or any URL that Spark reads.
        out: where the tables go.
        sizes: of the windows, see `qmf.pipeline.rollup.seconds`.
        classes: names, with or without ``package:``; none for all.
        first, last: days of a batch, ``2030-01-31``, both included; None for no bound.
        late: how long a stream waits for late data.
        continued: see `qmf.pipeline.rollup.rollup`.
    """

    lake: str
    out: str
    sizes: tuple[str, ...] = ("1m",)
    classes: tuple[str, ...] = ()
    first: str | None = None
    last: str | None = None
    late: str = "10 minutes"
    continued: bool = False


def rollup_batch(spark: SparkSession, options: RollupOptions, say: Say) -> int:
    """Roll up what a lake holds.

    Args:
        spark: to run on.
        options: what.
        say: told of each size that is done, and of its classes.

    Returns:
        rows written.

    Raises:
        PipelineError: no such class, a size that is none.
    """
    _check(options)
    frames = Frames(spark, options.lake, first=options.first, last=options.last)
    classes = frames.classes(options.classes)
    # All classes in one plan: what each costs besides its rows is much, and would come one after the other. Small ones
    # share the work, too; large ones are worth a part of their own, which costs less for each row.
    small = [of for of in classes if frames.count(of) < LARGE]
    large = [of for of in classes if of not in small]
    together = [values(frames.of(of), of) for of in small]
    total = 0
    for size in options.sizes if classes else ():
        started = time.monotonic()
        each = [rollup(frames.of(of), of, size, continued=options.continued) for of in large]
        if together:
            each.append(rolled(reduce(DataFrame.unionByName, together), size, continued=options.continued))
        made = Counted(
            reduce(DataFrame.unionByName, each),
            {_what(of): (F.col("package") == of[0].package) & (F.col("class") == of[0].name) for of in classes},
        )
        dated = sinks.dated(made.frame, "window_start").withColumns(
            {folder: _escaped_column(F.col(name)) for folder, name in zip(_FOLDERS, ("package", "class"), strict=True)}
        )
        with progress(spark, f"rollup by {size}", say):
            sinks.replace(dated, _path(options, "batch", size), (*_FOLDERS, sinks.DAY))
        for of in classes:
            rows = made.rows[_what(of)]
            say(f"{_what(of)} by {size}: {frames.count(of)} samples became {rows} rows")
            total += rows
        say(f"Rolled up by {size} in {time.monotonic() - started:.1f} s")
    return total


def rollup_stream(
    spark: SparkSession, options: RollupOptions, *, every: str = "10 seconds", once: bool = False
) -> list[StreamingQuery]:
    """Roll up what comes into a lake, until the queries are stopped.

    Args:
        spark: to run on.
        options: what; days don't count.
        every: time from batch to batch.
        once: end when everything is read that is there now.

    Returns:
        a running query for each class and size.

    Raises:
        PipelineError: no such class, a size that is none.
    """
    _check(options)
    frames = Frames(spark, options.lake, stream=True)
    return [
        sinks.append(
            rollup(frames.of(of), of, size, late=options.late, continued=options.continued),
            _path(options, "stream", size, of),
            name=f"{_what(of)} by {size}",
            every=every,
            once=once,
        )
        for of in frames.classes(options.classes)
        for size in options.sizes
    ]


def rolled_up(spark: SparkSession, options: RollupOptions, by: str = "batch") -> DataFrame:
    """The tables that a rollup wrote, with their size as `qmf_size`.

    Args:
        spark: to read with.
        options: those of the rollup.
        by: ``batch`` or ``stream``.

    Raises:
        PipelineError: no such class.
    """
    classes = Frames(spark, options.lake).classes(options.classes)
    written = [
        found.drop(sinks.DAY, sinks.BATCH).withColumn("qmf_size", F.lit(size))
        for of in classes
        for size in options.sizes
        if (found := sinks.table(spark, _path(options, by, size, of))) is not None
    ]
    return reduce(DataFrame.unionByName, written)


def _check(options: RollupOptions) -> None:
    for size in options.sizes:
        seconds(size)


def _what(of: Sequence[Table]) -> str:
    return f"{of[0].package}:{of[0].name}"


def _path(options: RollupOptions, by: str, size: str, of: Sequence[Table] = ()) -> str:
    names = (of[0].package, of[0].name) if of else ()
    parts = [f"{folder}={_escaped(name)}" for folder, name in zip(_FOLDERS, names, strict=False)]
    return "/".join([options.out.rstrip("/"), by, f"qmf_size={size}", *parts])


def _escaped(name: str) -> str:
    return name if NAME.fullmatch(name) else name.encode().hex()


def _escaped_column(name: Column) -> Column:
    """`_escaped`, done by Spark."""
    return F.when(name.rlike(rf"\A{NAME.pattern}\z"), name).otherwise(F.lower(F.hex(name)))
